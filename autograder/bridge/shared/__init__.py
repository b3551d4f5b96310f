"""What both sides of the bridge use: messages, values, errors."""
