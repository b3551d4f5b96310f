"""Integration with nbgrader: its commands grade with this engine, and its gradebook takes over the grades."""
