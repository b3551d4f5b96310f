"""What a test calls `student`: the same module, in this process or across the sandbox's wall."""
