"""The trusted side of the walls: starts workers, and measures what they use."""
