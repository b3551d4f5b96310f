"""A handwritten frame with a false length. What else a frame can claim is tried in `test_wire` and `test_worker`."""

from tests.autograder.attacks.field import HEADS, Attack
from tests.autograder.attacks.forge_results import taking_over

FOUR_GIGABYTES = """
import os, time
turn = 0
def answer(sock, number, operation, arguments):
    global turn
    turn += 1
    if operation == 'find':
        return wire.send(sock, {'id': number, 'ok': {'kind': 'function'}})
    os.write(3, b'\\xff' * 8)
    time.sleep(9)
"""
ATTACKS = [
    Attack("four_gigabytes", "announces 4 GB", taking_over(FOUR_GIGABYTES), course=HEADS,
           proves="TOOK OVER"),
]  # fmt: skip
