"""What a student's code needs and the machine that runs it does not have: a module, a newer Python, a graphics card."""

import re

from autograder.bridge.shared.errors import RemoteException
from autograder.records import SourceFile
from autograder.source.python_versions import Newer, dotted, newer_name, newer_syntax, present

_NO_MODULE = re.compile(r"No module named '([\w.]{1,100})'")
_NO_NAME = re.compile(r"cannot import name '(\w{1,100})' from '([\w.]{1,100})'")
_NO_CARD = re.compile(
    r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available"
)
SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")


def unmet_need(error: RemoteException, file: SourceFile | None) -> str:
    """Return a sentence about what is missing, or nothing.

    The error is a claim of the student's side: only names from the text of the file are quoted from
    it.
    """
    if error.type in SYNTAX_ERRORS and error.frames:
        newer = newer_syntax(error.frames[-1].code)
        return _too_old(f"cannot read {error.frames[-1].place}", newer) if newer else ""
    if file is None:
        return ""
    if "ImportError" in (error.type, *error.bases):
        return _missing(error.text, file)
    if _NO_CARD.search(error.text) and _stands_in("cuda", file):
        return "Your code asks for the device `cuda`, and there is none where it runs."
    return ""


def _missing(text: str, file: SourceFile) -> str:
    if match := _NO_MODULE.match(text):
        name = match[1]
        words = match[1].split(".")
        sentence = f"Your code uses `{name}`, and there is no such module where it runs."
    elif match := _NO_NAME.match(text):
        name = f"{match[2]}.{match[1]}"
        words = [match[1], *match[2].split(".")]
        sentence = f"Your code uses `{name}`, and there is no such name where it runs."
    else:
        return ""
    if not all(_stands_in(word, file) for word in words):
        return ""
    newer = newer_name(name)
    return _too_old(f"has no `{name}`", newer) if newer else sentence


def _too_old(what: str, newer: Newer) -> str:
    return f"Python {dotted(present())}, which runs your code, {what}: {newer.needs}."


def _stands_in(word: str, file: SourceFile) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", file.text) is not None
