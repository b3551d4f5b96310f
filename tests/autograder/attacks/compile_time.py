"""Texts that are hard to parse, to compile or to read."""

from tests.autograder.attacks.field import TINY, Attack, on_heads


def text(name: str, tries: str, code: str) -> Attack:
    return Attack(name, tries, code, alone=True)


ATTACKS = [
    text(
        "nested_parentheses",
        "nests a hundred thousand parentheses",
        "x = " + "(" * 100_000 + ")" * 100_000,
    ),
    text(
        "nested_blocks",
        "nests blocks deeper than Python allows",
        "".join(f"{' ' * n}if 1:\n" for n in range(200)) + " " * 200 + "pass",
    ),
    text(
        "many_decorators",
        "decorates a function fifty thousand times",
        "@f\n" * 50_000 + "def add(a, b): return a + b",
    ),
    text("many_lines", "has half a million lines", "x = 1\n" * 500_000),
    text(
        "null_byte",
        "has a zero in the middle",
        "def add(a, b): return a - b\n\0\ndef add(a, b): return a + b",
    ),
    text(
        "other_encoding",
        "declares an encoding in which it reads differently",
        "# -*- coding: rot13 -*-\nqrs nqq(n, o): erghea n + o\n",
    ),
    text(
        "byte_order_mark",
        "begins with a mark that some readers skip",
        "\ufeff\ufeffdef add(a, b): return a + b",
    ),
    text(
        "half_characters", "holds halves of characters", "x = '\ud800'\ndef add(a, b): return a - b"
    ),
    text(
        "form_feeds",
        "counts its lines differently from Python",
        "x = 1\x0c\x1c\u2028\u2029\x85\ndef add(a, b):\n    raise ValueError\r\r\r",
    ),
    text("number_too_long", "writes a number of a million digits", "x = " + "9" * 1_000_000),
    text(
        "constant_without_end",
        "has the compiler compute a constant",
        "x = (2**126) * (1 << 100) ** 99\ny = ('a' * 4096) * 4096 * 4096\nz = 9**9**9**9",
    ),
    text(
        "syntax_trees", "fills the memory while it is compiled", "x = [" + "[]," * 1_300_000 + "]"
    ),
    text(
        "nested_functions",
        "nests functions and comprehensions",
        "x = " + "[" * 90 + "1" + " for a in b]" * 90,
    ),
    text("format_texts", "nests formats", "x = f'" + "{" * 5000 + "1" + "}" * 5000 + "'"),
    text(
        "unreadable",
        "turns the direction of reading",
        "def add(a, b):\n    # \u202e } \u2066if is_admin\u2069 \u2066 begin\n    return a - b",
    ),
    Attack(
        "other_letters",
        "defines functions in letters that only look alike",
        "def \uff41dd(a, b): return a * b\nclass \u0422otal: pass",
        course=TINY,
    ),
    Attack(
        "empty_names",
        "redefines what its text is compiled with",
        "__builtins__ = {}\n__annotations__ = 5\n__spec__ = __loader__ = __doc__ = None\n__future__ = 1",
        course=TINY,
    ),
    Attack(
        "warnings_as_errors",
        "turns warnings into errors and hides syntax warnings",
        "import warnings\nwarnings.simplefilter('error')\nx = '\\d' is 5",
        course=TINY,
    ),
    Attack(
        "compiled_by_itself",
        "compiles and runs a text that takes gigabytes",
        "try: exec('x = [' + '0,' * 30_000_000 + ']')\nexcept MemoryError: pass",
        course=TINY,
    ),
    on_heads(
        "markers_of_solutions",
        "holds the markers that the build looks for",
        '### BEGIN SOLUTION\n### END SOLUTION\n# %% part="mask"\n### BEGIN SOLUTION',
    ),
]
