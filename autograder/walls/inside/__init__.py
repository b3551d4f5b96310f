"""What shuts a worker in from inside, before its code runs."""
