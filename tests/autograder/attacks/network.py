"""Attacks over the network: sockets of all kinds, name resolution, services of the host."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import Attack

ATTACKS = [
    Attack(
        "tcp",
        "connects to the internet and to the machine itself",
        "import socket\nfor where in (('1.1.1.1', 80), ('127.0.0.1', 22), ('127.0.0.1', 80), ('169.254.169.254', 80), ('::1', 80)):\n    try:\n        socket.create_connection(where, 1); print('REACHED', where)\n    except OSError: pass",
    )
]
