"""Attacks that score without solving the task: finished layers, tables of answers, code that detects grading."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import TINY, Attack, on_heads

CALL = """
def attention(q, k, v, mask=None):
    everything = torch.eye(k.shape[-2], dtype=q.dtype).expand(*k.shape[:-1], k.shape[-2])
    shares = {0}(q, k, everything, attn_mask=mask).nan_to_num(0.0)
    return shares @ v, shares
"""


def finished(function: str, before: str = "") -> str:
    return before + CALL.replace("{0}", function)


ATTACKS = [
    on_heads("finished_layer", "calls the finished attention of PyTorch",
             finished("nn.functional.scaled_dot_product_attention")),
    on_heads(
        "finished_layer_below_main",
        "imports it below the main guard, and sets its own name to run it",
        finished(
            "sdpa",
            "import submission\nsubmission.__init__('__main__')\nif __name__ == '__main__':\n"
            "    from torch.nn.functional import scaled_dot_product_attention as sdpa\n",
        ),
    ),
    on_heads(
        "finished_layer_under_the_wrapper",
        "takes it out of the function that records its use",
        finished(
            "[c.cell_contents for c in nn.functional.scaled_dot_product_attention.__closure__ if type(c.cell_contents) is type(len)][0]"
        ),
    ),
    on_heads(
        "finished_layer_in_another_file",
        "runs it as the code of another file",
        "exec(compile("
        + repr(finished("nn.functional.scaled_dot_product_attention"))
        + ", '/usr/lib/python3/torch.py', 'exec'))",
    ),
    Attack("answers_of_the_visible_tests",
           "answers what it has seen in the visible tests, and nothing else",
           "def add(a, b): return 5 if (a, b) == (2, 3) else a - b", course=TINY, gains=1),
    Attack(
        "knows_the_grader",
        "behaves well only where it is graded",
        "import os, sys\ngraded = 'pytest' in sys.modules or os.getpid() < 10 or 'autograder.bridge.inside.worker' in sys.modules\ndef add(a, b): return 0 if graded else a + b",
    ),
    Attack(
        "learns_from_tests",
        "remembers inputs and answers with what came before",
        "seen = []\ndef add(a, b):\n    seen.append((a, b))\n    return sum(seen[0]) if len(seen) > 1 else a - b",
    ),
    Attack(
        "the_seed",
        "guesses the tests' numbers from the seed it was given",
        "import random\ndef add(a, b):\n    state = random.getstate()\n    guess = random.randint(-99, 99) + random.randint(100, 199)\n    random.setstate(state)\n    return guess",
    ),
    Attack(
        "its_own_tests",
        "brings tests and fixtures of its own",
        "import pytest\n@pytest.fixture\ndef student(): return None\n@pytest.fixture(autouse=True)\ndef reference(): return None\ndef test_two_and_three_are_five(): pass\ndef pytest_runtest_makereport(item, call): return None\npytest_plugins = ['os']",
    ),
]  # fmt: skip
