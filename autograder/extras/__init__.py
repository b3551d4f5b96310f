"""What the core does not need, and never imports."""
