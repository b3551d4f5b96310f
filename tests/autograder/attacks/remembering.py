"""Attacks on the replay cache: early replies, replays, crashes during a replay, overfilling."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import TINY, Attack
from tests.autograder.tiny_course import ALTERNATIVE

# answers every question as the engine does, but with the frames in hand
TAKEOVER = """
import os, random, select, socket, sys, time
from autograder.bridge.inside import worker as engine
from autograder.bridge.shared import wire
_frame = sys._getframe()
while not {"server", "sock", "number"} <= set(_frame.f_locals):
    _frame = _frame.f_back
server, sock, number = (_frame.f_locals[name] for name in ("server", "sock", "number"))
print("TOOK OVER", flush=True)
wire.send(sock, {"id": number, "ok": {"errors": [], "stopped": [], "absent": []}})
def honest(number, operation, arguments, **more):
    reply = {"id": number, **engine.answer(server, operation, arguments), **more}
    return wire.dumps(reply, server.register)
def push(frame):
    wire.send_frame(sock, frame)
requests, tests = 0, 0
"""
LOOP = """
while True:
    number, operation, arguments = wire.receive(sock, max_text=wire.MAX_DATA)
    if operation == "seed":
        tests += 1
        engine.answer(server, operation, arguments)
        AT_SEED
        continue
    requests += 1
    BODY
"""
NEVER = "pass"


def speaking(body: str, at_seed: str = NEVER, before: str = "", course: str = TINY) -> dict:
    """Insert `body` between the engine and the student's answers, to handle each request."""
    loop = LOOP.replace("AT_SEED", at_seed).replace("BODY", body)
    return dict(code=f"{TAKEOVER}{before}\n{loop}", course=course, proves="TOOK OVER")


def rightly(body: str) -> dict:
    """As `speaking`, with correct answers, which keep all their points."""
    spoken = speaking(body)
    return {**spoken, "code": f"{ALTERNATIVE}\n{spoken['code']}", "alone": True, "gains": 10}


HONEST = "push(honest(number, operation, arguments))"
LOOK = "time.sleep(.02); more = select.select([sock], [], [], 0)[0]; print('REACHED' if more else 'alone', operation); "
OLD = "frame = old.setdefault((operation, str(arguments.get('target', arguments.get('name')))), honest(number, operation, arguments)); push(frame)"
AHEAD = "; [push(honest(number + n, 'find', {'name': 'add'})) for n in (1, 2, 3)]"

ATTACKS = [
    Attack("looks_ahead", "looks whether the next question is there before this one is answered",
           **speaking(LOOK + HONEST)),
    Attack("answers_ahead", "answers three questions more than were asked",
           **speaking(HONEST + AHEAD)),
    Attack("answers_before_the_test", "replies to the first request of a test before it is sent",
           **speaking(HONEST, "push(wire.dumps({'id': 1, 'ok': {'kind': 'function'}}))")),
    Attack("replays", "gives the frames of earlier tests again",
           **speaking(OLD, before="old = {}")),
    Attack("dies_after_its_answer", "answers and is dead before the test is over",
           **speaking(HONEST + "; os._exit(0)")),
    Attack(
        "dies_in_an_answer",
        "sends half of an answer and dies",
        **speaking(
            "frame = honest(number, operation, arguments); push(frame[:len(frame) // 2]); os._exit(0)"
        ),
    ),
    Attack("one_byte_more", "sends a byte that belongs to nothing",
           **speaking(HONEST + "; push(b'{')")),
    Attack("slow", "takes nearly all the time that there is for each answer",
           **speaking("time.sleep(.4); " + HONEST)),
    Attack("other_words_each_time", "gives the same answers in other bytes, a megabyte each",
           **speaking("push(honest(number, operation, arguments, more=os.urandom(1 << 20)))")),
    Attack(
        "asks_back_differently",
        "asks back a thousand times before each answer, never the same",
        **speaking(
            "[(wire.send(sock, dict(callback=0, path=[str(random.random())], args=(os.urandom(999),), kwargs={}, grad=True)), wire.receive(sock)) for _ in range(1000)]; "
            + HONEST
        ),
    ),
    Attack("right_words_and_more", "correct answers, each with an extra key",
           **rightly("push(honest(number, operation, arguments, more=random.random()))")),
    Attack("right_words_and_answers_ahead",
           "right answers, and the next test's first answer behind each",
           **rightly(HONEST + "; push(wire.dumps({'id': 1, 'ok': {'kind': 'function'}}))")),
]  # fmt: skip
