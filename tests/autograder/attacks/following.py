"""Misusing the solution's names that take the place of a failed part while later parts are tried again."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import HEADS, Attack

# only in that worker, `attention` is a function of the engine's, with the server in its closure
INSIDE = """
followed = bool(getattr(attention, "__closure__", None))
if followed:
    from autograder.bridge.inside.callables import CallBack
    server = next(cell.cell_contents for cell in attention.__closure__ if type(cell.cell_contents).__name__ == "Worker")
    print("FOLLOWED", flush=True)
    def ask(path, *question):
        try:
            print("REACHED", path, question, CallBack(server, 0, path, question, {}).made(), flush=True)
        except BaseException as error:
            print("refused", path, type(error).__name__, flush=True)
"""


def inside(code: str, after: str = "") -> dict:
    lines = "\n".join(f"    {line}" for line in code.split("\n"))
    return dict(code=f"{INSIDE}{lines}\n{after}", course=HEADS, proves="FOLLOWED")


ATTACKS = [
    Attack(
        "asks_for_the_later_part",
        "asks the solution for its own class",
        **inside('ask([], "make", "Head", (4, 4, 4), {})\nask([], "call", "Head", (4, 4, 4), {})'),
    ),
    Attack(
        "answers_the_failed_part",
        "keeps the solution's function and answers with it",
        **inside(
            "kept = attention",
            "def attention(q, k, v, mask=None):\n    return globals().get('kept', lambda *x: (v, v))(q, k, v, mask)\n"
            "if followed:\n    globals()['attention'] = kept",
        ),
    ),
    Attack(
        "leaves_answers_behind",
        "writes the solution's answers where the next worker might read them",
        **inside(
            "import os, tempfile\nx = torch.arange(6.0).reshape(2, 3)\nanswers = repr(attention(x, x, x))\n"
            "for place in ('left_behind', '/tmp/left_behind', '/dev/shm/left_behind', os.path.expanduser('~/left_behind')):\n"
            "    try:\n        open(place, 'w').write(answers)\n    except OSError:\n        pass\nos.environ['LEFT'] = answers",
            "import os\nif not followed and ('LEFT' in os.environ or any(map(os.path.exists, ('left_behind', '/tmp/left_behind', '/dev/shm/left_behind')))):\n    print('REACHED the answers of another worker', flush=True)",
        ),
    ),
    Attack(
        "digs_in_the_callable",
        "looks for the solution behind the callable that answers",
        **inside(
            "for name in ('__self__', '__func__', '__globals__', '__code__', '_things', '_modules', 'kinds', 'called', 'begin', 'answer'):\n"
            "    ask(['__getattr__'], name)\n    ask([name])\n"
            "for question in (('get', 0, '', '__class__'), ('run', 0, '', '__init__', {}, {}, (), {}), ('begin', 1), ('_things',), ()):\n"
            "    ask([], *question)"
        ),
    ),
    Attack(
        "asks_for_too_much",
        "has the solution work on what does not fit into memory",
        **inside(
            "x = torch.ones(1, 1).expand(1 << 15, 1)\nfor _ in range(3):\n    ask(['nothing'])\n    try:\n        attention(x, x, x)\n    except Exception as error:\n        print(type(error).__name__, flush=True)"
        ),
    ),
]
