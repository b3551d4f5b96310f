"""Commands that students run on their own machine: check, watch, hint, progress and pack."""
