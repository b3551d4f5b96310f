"""What answers in a student's process, on the student's side; nothing else is imported there."""
