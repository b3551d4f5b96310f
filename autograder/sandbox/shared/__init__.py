"""What both sides of the sandbox's wall use: messages, values, errors."""
