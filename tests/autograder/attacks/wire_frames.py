"""Handwritten frames with false lengths, numbers and shapes, and endless replies."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import HEADS, Attack
from tests.autograder.attacks.forge_results import taking_over

RAW = """
import json, os, struct, time
def push(data):
    view = memoryview(data)
    while view:
        view = view[os.write(3, view):]
def frame(header, data=b""):
    push(struct.pack("!II", len(header), len(data)) + header + data)
def reply(number, text, data=b""):
    frame(('{"!dict": [["id", %d], ["ok", %s]]}' % (number, text)).encode("utf-8", "surrogatepass"), data)
"""


def raw(body: str, course: str = HEADS) -> dict:
    """Reply to all requests but the first few with `body`, which writes bytes."""
    text = (
        RAW
        + "turn = 0\ndef answer(sock, number, operation, arguments):\n    global turn\n    turn += 1\n"
    )
    text += "    if operation == 'find':\n        return wire.send(sock, {'id': number, 'ok': {'kind': 'function'}})\n"
    return dict(code=taking_over(text + f"    {body}\n"), course=course, proves="TOOK OVER")


def tensor(header: str, data: str = "b''") -> dict:
    """Reply to a call with a tensor of this header."""
    value = '{"!dict": [["call", 1], ["result", %s], ["differentiable", [false]], ["mutated", []], ["refilled", []], ["modules", []], ["generators", []]]}'
    return raw(f"reply(number, {value!r} % {header!r}, {data})")


ATTACKS = [
    Attack("four_gigabytes", "announces 4 GB", **raw("push(b'\\xff' * 8); time.sleep(9)")),
    Attack(
        "many_replies",
        "sends a thousand replies for one question",
        **raw("[reply(number + n, 'true') for n in range(1000)]"),
    ),
    Attack(
        "huge_answers_beside_right_ones",
        "hides 30 MB beside each answer",
        **raw(
            "wire.send(sock, {'id': number, 'ok': {'call': 1, 'result': None, 'differentiable': [], 'mutated': [], 'refilled': [], "
            "'modules': [], 'generators': [], 'more': b'x' * (30 << 20)}})"
        ),
    ),
    Attack(
        "numbers_of_strangers",
        "handles with unknown numbers",
        **raw(
            "reply(number, '{\"!handle\": [' + ['-1', '1e3', '99999999999', 'null', '1048575'][turn % 5] + ', null]}')"
        ),
    ),
    Attack("closed_socket", "closes the socket and lives on", **raw("os.close(3); time.sleep(30)")),
    Attack(
        "deaf",
        "stops reading while it is sent something",
        "import time\ndef add(a, b):\n    while True: time.sleep(1)",
    ),
]
