"""The files in `grades/`: journal, run state, stored texts, submission times, lateness and final scores."""
