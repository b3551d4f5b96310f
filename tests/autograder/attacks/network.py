"""Attacks over the network: sockets of all kinds, name resolution, services of the host."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import Attack

ATTACKS = [
    Attack(
        "tcp",
        "connects to the internet and to the machine itself",
        "import socket\nfor where in (('1.1.1.1', 80), ('127.0.0.1', 22), ('127.0.0.1', 80), ('169.254.169.254', 80), ('::1', 80)):\n    try:\n        socket.create_connection(where, 1); print('REACHED', where)\n    except OSError: pass",
    ),
    Attack(
        "services_of_the_machine",
        "talks to docker, dbus, the display",
        "import glob, socket\nfor path in ('/var/run/docker.sock', '/run/docker.sock', '/run/dbus/system_bus_socket', '/tmp/.X11-unix/X0', *glob.glob('/run/**/*.sock', recursive=True), *glob.glob('/tmp/**/*.sock', recursive=True)):\n    try: socket.socket(socket.AF_UNIX).connect(path); print('REACHED', path)\n    except OSError: pass",
    ),
    Attack(
        "socket_pairs",
        "makes a socket without making one",
        "import socket\ntry:\n    a, b = socket.socketpair(); a.sendmsg([b'x'], [], 0, '/run/docker.sock'); print('REACHED')\nexcept (OSError, TypeError): pass",
    ),
    Attack(
        "descriptors_to_the_grader",
        "hands its open files to the grader",
        "import gc, socket\nfor thing in gc.get_objects():\n    if isinstance(thing, socket.socket):\n        try: socket.send_fds(thing, [b'\\0' * 8], [0, 1, 2] * 20)\n        except (OSError, ValueError): pass",
    ),
    Attack(
        "another_use_of_the_socket",
        "turns the only socket it has to another address",
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\naddress = b'\\x02\\0\\0\\x50\\x01\\x01\\x01\\x01' + bytes(8)\nfor number in (42, 49, 50, 48):\n    if libc.syscall(number, 3, address if number != 48 else 2, 16) == 0: print('REACHED' if number != 48 else '')",
    ),
]
