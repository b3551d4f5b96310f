"""The trusted side of the wall: starts workers, and stands for what they hold."""
