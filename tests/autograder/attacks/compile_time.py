"""Texts that are hard to parse, to compile or to read."""

from tests.autograder.attacks.field import TINY, Attack


def text(name: str, tries: str, code: str) -> Attack:
    return Attack(name, tries, code, alone=True)


ATTACKS = [
    text("nested_parentheses", "nests a hundred thousand parentheses",
         "x = " + "(" * 100_000 + ")" * 100_000),
    text("many_decorators", "decorates a function fifty thousand times",
         "@f\n" * 50_000 + "def add(a, b): return a + b"),
    text("other_encoding", "declares an encoding in which it reads differently",
         "# -*- coding: rot13 -*-\nqrs nqq(n, o): erghea n + o\n"),
    text("half_characters", "holds halves of characters",
         "x = '\ud800'\ndef add(a, b): return a - b"),
    text("constant_without_end", "has the compiler compute a constant",
         "x = (2**126) * (1 << 100) ** 99\ny = ('a' * 4096) * 4096 * 4096\nz = 9**9**9**9"),
    text("syntax_trees", "fills the memory while it is compiled",
         "x = [" + "[]," * 1_300_000 + "]"),
    Attack(
        "empty_names",
        "redefines what its text is compiled with",
        "__builtins__ = {}\n__annotations__ = 5\n__spec__ = __loader__ = __doc__ = None\n__future__ = 1",
        course=TINY,
    ),
    Attack("compiled_by_itself", "compiles and runs a text that takes gigabytes",
           "try: exec('x = [' + '0,' * 30_000_000 + ']')\nexcept MemoryError: pass", course=TINY),
]  # fmt: skip
