"""How this program is installed: its name among packages, and pip with a choice of PyTorch's build."""
