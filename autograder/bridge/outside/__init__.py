"""The trusted side of the bridge: stands for what a student's module holds."""
