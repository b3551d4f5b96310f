"""How a test talks to a student's module: in a worker, or, for `check`, in the same process."""
