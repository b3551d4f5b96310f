"""Modules and objects that confuse their proxies in the grader."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import Attack, on_heads


def head(body: str, before: str = "") -> str:
    """Return a head with all the right parts and a wrong answer, changed by `body`."""
    return f"""
{before}
class Wrong(Head):
    def forward(self, x):
        return self.value(x) * 0.5
class Head(Wrong):
{body}
"""


ATTACKS = [
    on_heads(
        "lying_parameters",
        "lists parameters that it does not have",
        head("""
    def named_parameters(self, *a, **k):
        for name in ("key.weight", "query.weight", "value.weight"):
            yield name, nn.Parameter(torch.zeros(5, 20))
"""),
    ),
    on_heads(
        "another_in_eval",
        "puts other weights into itself when it is converted",
        head(
            "    def double(self): return nn.Linear(3, 3)\n    def to(self, *a, **k):\n        self.key = self.query = self.value = nn.Linear(2, 2)\n        return self\n"
        ),
    ),
    on_heads(
        "itself_as_a_part",
        "is a part of itself",
        head(
            "    def __init__(self, *sizes):\n        super().__init__(*sizes)\n        self._modules['me'] = self\n"
        ),
    ),
    on_heads(
        "attributes_that_answer",
        "answers every question about it with itself",
        "class Head:\n    def __init__(self, *sizes): pass\n    def __getattr__(self, name): return self\n    def __call__(self, *a, **k): return self\n    def __len__(self): return -1\n    def __getitem__(self, key): return self",
    ),
    Attack("module_that_answers", "its module answers to every name",
           "def __getattr__(name): return lambda *a, **k: 5\ndel add, Total"),
    Attack(
        "properties_that_raise",
        "has attributes that end the process",
        "class Total:\n    def __init__(self, start=0): pass\n    @property\n    def push(self): raise SystemExit(0)\n    def __getattribute__(self, name): raise KeyboardInterrupt",
    ),
    on_heads(
        "parameters_as_large_as_the_machine",
        "has parameters without numbers, of as many as the machine can hold: tests fill them with numbers",
        head("""
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.big = nn.Parameter(torch.empty(2**15, 2**14, device="meta"))
"""),
    ),
]  # fmt: skip
