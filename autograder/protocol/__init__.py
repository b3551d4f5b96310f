"""The protocol between the grader and a worker: wire format, errors, and the server in the worker."""
