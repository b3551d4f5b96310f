"""From solutions to what students receive, and the proofs that the course is right."""
