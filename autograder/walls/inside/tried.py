"""What a worker tries in vain, by the kernel's report, and a person is told of."""

NETWORK = "network"
PROGRAM = "program"
