"""Answers of misleading types: lying subclasses, disguised objects, unusual tensors."""

from tests.autograder.attacks.field import Attack, on_heads


def both(value: str) -> str:
    """Return an attention function whose two results are the same unusual value."""
    return f"\ndef attention(q, k, v, mask=None):\n    return {value}, {value}\n"


def everywhere(value: str) -> str:
    """Return an unusual value in place of every expected number."""
    return f"""
def add(a, b):
    return {value}
class Total:
    def __init__(self, start=0): pass
    def push(self, number): return {value}
"""


ATTACKS = [
    on_heads(
        "tensor_that_agrees",
        "a tensor whose comparisons are always true",
        """
class Agreeable(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("allclose", "equal", "isclose", "eq", "__eq__", "all"):
            return torch.tensor(True)
        return super().__torch_function__(function, types, args, kwargs or {})
right = attention
def attention(q, k, v, mask=None):
    output, weights = right(q, k, v, mask)
    return output.as_subclass(Agreeable), weights.as_subclass(Agreeable)
""",
    ),
    Attack(
        "object_that_agrees",
        "an object that equals everything and calls itself an int",
        "class Same:\n    __class__ = int\n    def __eq__(s, o): return True\n    def __index__(s): return 5\n"
        "    def __getattr__(s, n): return s\n    def __call__(s, *a): return s"
        + everywhere("Same()"),
    ),
    on_heads(
        "huge_arrays",
        "answers everything with 60 MB of numpy",
        "import numpy\nX = numpy.zeros(60 << 20, 'u1')\ndef attention(*a, **k): return X\ncausal_mask = attention\n"
        "class Head:\n    def __init__(self, *a): pass\n    def __call__(self, x): return X",
    ),
    on_heads("parameters_as_answers", "parameters that learn", both("nn.Parameter(q)")),
    on_heads(
        "shared_storage",
        "two answers that are one memory",
        "def attention(q, k, v, mask=None):\n"
        "    table = torch.zeros(10_000, dtype=q.dtype)\n"
        "    return (table.as_strided((*q.shape[:-1], v.shape[-1]), (0,) * q.ndim),\n"
        "            table.as_strided((*q.shape[:-1], k.shape[-2]), (0,) * q.ndim))",
    ),
]
