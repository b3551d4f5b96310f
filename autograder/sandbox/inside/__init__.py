"""What runs in a worker, on the student's side of the wall; nothing else is imported there."""
