"""The trusted side of the sandbox: proxies for a student's module, connections, and the replay cache."""
