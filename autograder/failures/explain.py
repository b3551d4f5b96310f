"""Turn exceptions into sentences for students, with the place in their own text and without secrets.

For a hidden test under `feedback: hints`, a sentence contains no inputs, no expected values and no
text chosen by the student's code (an exception's message could contain the inputs); it names the
exception and the student's line.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from types import FrameType

from torch import nn

from autograder.bridge.outside.remote import RemoteObject
from autograder.bridge.shared import errors
from autograder.bridge.shared.errors import Frame, RemoteException, describe_error
from autograder.failures.failed_check import CheckFailed
from autograder.failures.needs import unmet_need
from autograder.records import Outcome, SourceFile
from autograder.source.magics import CELL_MAGICS
from autograder.source.text import cell_source, notebook_cells, statement_below
from autograder.text.wording import article, cut
from autograder.walls.outside.alarm import TestAlarm

MAX_MESSAGE = 2000
OTHER_CELLS = {"markdown": "a Markdown", "raw": "a raw"}
MOST_LINES = 5_000
MOST_FAILURES = 3  # of the statements at the top of a file that are told
LONGEST_FUNCTION = 200  # of a file, and of a function, in the search for a `return`
_FILE = re.compile(r"[\w.-]{1,100}\.py")
_CELL = re.compile(r"[\w.-]{1,100}\.ipynb cell \d{1,4}")
_BEGUN = re.compile(r"([ \t]*)(def|class)[ ]+(\w{1,80})")
_GIVES = re.compile(r"\([^#]*?\)\s*->(?!\s*None\b)")
_RETURNS = re.compile(r"\b(?:return|yield|raise NotImplementedError)\b")
_FEW_DIGITS = re.compile(
    r"\btorch\.(?:bfloat16|float16|half)\b|[\w)\]]\.(?:bfloat16|half)\(|\bautocast\("
)
_OTHER_MAGIC = re.compile(r"\s*%%(\w+)")
_LINE_END = re.compile(r"\r\n|\r|\n")
_OTHER_COMMAND = re.compile(r"##(?=\w*\[)")  # ##[error], ##vso[…]: commands anywhere in a line


@dataclass(frozen=True)
class Failure:
    """The outcome of a test that did not pass, and the sentence for the student."""

    outcome: Outcome
    message: str


def explain(
    error: BaseException,
    *,
    full: bool,
    is_own: Callable[[FrameType], bool] | None = None,
    file: SourceFile | None = None,
) -> Failure:
    """Return the outcome and the sentence for the exception that ended a test.

    With `full`, as for visible tests, the sentence contains all details; otherwise it quotes only
    the submitted `file`. If the code returned None, the sentence names functions of the file
    without a `return`. `is_own` selects the student's frames of a traceback if their code ran in this
    process.
    """
    if isinstance(error, (errors.StudentTimeoutError, TestAlarm)):
        return Failure("timeout", str(error) or "This test took too long.")
    if isinstance(error, errors.StudentCrashedError):
        return Failure("crashed", clean(str(error) if full else _without_details(str(error))))
    if type(error) is errors.StudentError:  # about the boundary, and not about the student's code
        return Failure("failed", clean(str(error)))
    if isinstance(error, CheckFailed):
        return Failure("failed", clean(_is_wrong(error, full, file)))
    if isinstance(error, errors.MissingNameError):
        return Failure("failed", clean(_is_missing(error, file)))
    if isinstance(error, errors.StudentRaisedError):
        return Failure("failed", clean(_raised_far_away(error.remote, full, file)))
    description = describe_error(error, is_own) if is_own else RemoteException(type(error).__name__)
    if is_own and (need := unmet_need(description, file)):
        return Failure("failed", clean(_with_place(need, description)))
    if description.frames:
        return Failure("failed", clean(_raised(description, full)))
    if needs := _missing_attribute(error, file):
        return Failure("failed", clean(needs))
    absent = no_return(file) if "NoneType" in str(error) else ""
    sentence = f"This test could not work with what your code gave back ({type(error).__name__})."
    return Failure("failed", sentence + absent)


def _is_wrong(error: CheckFailed, full: bool, file: SourceFile | None) -> str:
    sentence = str(error) if full else error.public
    sentence += no_return(file) if " None; " in sentence else ""
    return sentence + (few_digits(file) if error.could_be_rounding else "")


def _raised_far_away(error: RemoteException, full: bool, file: SourceFile | None) -> str:
    """Return the sentence about what the student's code raised in another process."""
    as_in_file = as_submitted(error, file or SourceFile("", ""))
    if need := unmet_need(error, file):
        return _with_place(need, as_in_file)
    absent = no_return(file) if "NoneType" in error.text else ""
    return _raised(error if full else as_in_file, full) + absent


def _is_missing(error: errors.MissingNameError, file: SourceFile | None) -> str:
    need = unmet_need(error.stopped, file) if error.stopped else ""
    elsewhere = cell_without_code(error.name or "", file) if file else ""
    return " ".join(filter(None, (str(error), need, elsewhere)))


def failed_alone(
    failures: Iterable[RemoteException], absent: Collection[str]
) -> list[RemoteException]:
    """Return what failed at the top of a file and did not stop it.

    Without what waits for unwritten code, and without what needs a module that is `absent`, which
    is told anyway.
    """
    return [
        failure
        for failure in failures
        if not (failure.stops_the_rest or failure.took_too_long)
        and not failure.says_unwritten
        and not any(f"'{name}'" in failure.text for name in absent)
    ]


def sentences_about(
    failures: Sequence[RemoteException], file: SourceFile | None = None
) -> Iterator[str]:
    """Yield a sentence about each of the first statements that failed while the file was loaded.

    With a `file`, as for a page, the sentence holds no text that its code chose.
    """
    for failure in failures[:MOST_FAILURES]:
        shown = failure if file is None else _statement_as_submitted(failure, file)
        yield clean(errors.failed_statement(shown))
    more = len(failures) - MOST_FAILURES
    if more > 0:
        yield f"{more} more {'line' if more == 1 else 'lines'} of the file failed, too."


def _statement_as_submitted(failure: RemoteException, file: SourceFile) -> RemoteException:
    """Return a failure at the top of a file without text that the student's code could choose."""
    top = failure.statement
    shown = as_submitted(replace(failure, frames=(top,) if top else ()), file)
    return replace(
        shown, frames=tuple(replace(frame, function="<module>") for frame in shown.frames)
    )


def cell_without_code(name: str, file: SourceFile) -> str:
    """Return the sentence about the cell that defines a name and does not run it; nothing if there is none.

    Without a parser, which the text could exhaust.
    """
    begins = re.compile(
        rf"^(?:(?:async[ ]+def|def|class)[ ]+{re.escape(name)}\b|{re.escape(name)}[ ]*(?::[^=\n]*)?=[^=])",
        re.MULTILINE,
    )
    for number, kind, text in _cells(file):
        if not begins.search(text):
            continue
        if kind == "code" and (magic := _magic_above(text)):
            return f"Cell {number} defines `{name}` below `{magic}`: its code does not run."
        if kind in OTHER_CELLS:
            return (
                f"Cell {number} defines `{name}` and is no code cell, but {OTHER_CELLS[kind]} cell: "
                "its code does not run."
            )
    return ""


def names_in_cells_without_code(names: Iterable[str], file: SourceFile) -> Iterator[str]:
    """Yield a sentence about each of these names that is defined in such a cell and in no code cell."""
    code = [text for _, kind, text in _cells(file) if kind == "code" and not _magic_above(text)]
    for name in names:
        bound = re.compile(rf"\b(?:def|class)[ ]+{re.escape(name)}\b|^{re.escape(name)}\b", re.M)
        if not any(map(bound.search, code)):
            yield from filter(None, [cell_without_code(name, file)])


def _magic_above(text: str) -> str:
    """Return the magic above a cell's code that does not run it, such as `%%writefile`; nothing if it runs."""
    match = _OTHER_MAGIC.match(text)
    return match[0].strip() if match and match[1] not in CELL_MAGICS else ""


def _cells(file: SourceFile) -> Iterator[tuple[int, str, str]]:
    """Yield the number, the kind and the text of each cell of a notebook; nothing if it cannot be read."""
    with suppress(ValueError, TypeError, AttributeError, RecursionError):
        cells = notebook_cells(file.text) if file.is_notebook else []
        for number, cell in enumerate(cells, start=1):
            yield number, str(cell.get("cell_type")), cell_source(cell)


def _missing_attribute(error: BaseException, file: SourceFile | None) -> str:
    """Return the sentence about an attribute that a test needs and an object of the file's classes does not have."""
    if not isinstance(error, AttributeError) or not isinstance(error.name, str) or file is None:
        return ""
    owner = error.obj
    if isinstance(owner, nn.Module):
        kind = str(owner._get_name())
    else:
        kind = owner._kind if isinstance(owner, RemoteObject) else type(owner).__name__
    return f"Your {kind} has no `{error.name}`; this test needs it." if _defines(file, kind) else ""


def as_submitted(error: RemoteException, file: SourceFile) -> RemoteException:
    """Return the exception without text that the student's code could choose at run time.

    A worker could report inputs as the name of an exception or a function, or as a line that does
    not exist.
    """
    names = (
        name
        for name in (error.type, *error.bases)
        if name in errors.EXCEPTIONS or _defines(file, name)
    )
    steps = [_step_of(file, frame) for frame in error.frames[-1:]]
    frames = tuple(step for step in steps if step is not None)
    return replace(error, type=next(names, "Exception"), text="", frames=frames)


def _step_of(file: SourceFile, frame: Frame) -> Frame | None:
    """Return the frame with its line of code from the file; None if it cannot belong to it."""
    if file.is_notebook:
        where = _CELL.fullmatch(frame.file)
        lines = file.text.count("\\n") + 1
        code, before, below = (
            text if _is_in_notebook(text, file) else ""
            for text in (frame.code, frame.before, frame.below)
        )
    else:
        where = _FILE.fullmatch(frame.file)
        numbered = _LINE_END.split(file.text)
        lines = len(numbered)
        above = [line.strip() for line in numbered[: max(frame.line, 0)] if line.strip()]
        code = cut(numbered[frame.line - 1].strip()) if 1 <= frame.line <= lines else ""
        before = above[-2] if code and len(above) > 1 else ""
        below = cut(statement_below(numbered, frame.line))
    if where is None or not 1 <= frame.line <= lines:
        return None
    is_defined = all(_defines(file, name) for name in frame.function.split("."))
    function = frame.function if is_defined else ""
    return replace(frame, code=code, function=function, before=before, shapes="", below=below)


def _is_in_notebook(line: str, file: SourceFile) -> bool:
    return any(json.dumps(line, ensure_ascii=ascii)[1:-1] in file.text for ascii in (True, False))


def no_return(file: SourceFile | None) -> str:
    """Name functions with an annotated result and no `return`, without a parser, which the text could exhaust."""
    lines = _lines(file) if file else []
    names = []
    owner = ""
    for number, line in enumerate(lines):
        begun = _BEGUN.match(line)
        if begun is None:
            continue
        indent, kind, name = begun.groups()
        if kind == "class" or not indent:
            owner = f"{name}." if kind == "class" else ""
        body = _block(lines[number : number + LONGEST_FUNCTION], indent)
        if kind == "def" and _GIVES.match(body, len(begun[0])) and not _RETURNS.search(body):
            names.append(f"`{owner if indent else ''}{name}`")
    if not names:
        return ""
    verb = "has" if len(names) == 1 else "have"
    return f" {' and '.join(names[:2])} {verb} no `return`."


def few_digits(file: SourceFile | None) -> str:
    """Name the number type with few digits in which the file computes."""
    code = "\n".join(_lines(file)) if file else ""
    match = _FEW_DIGITS.search(code)
    if match is None:
        return ""
    half = "bfloat16" not in code and ("float16" in code or "half" in match[0])
    return f" Your code computes in {'float16' if half else 'bfloat16'}, which keeps three digits; this test needs more."


def _block(lines: list[str], indent: str) -> str:
    """Return the function that starts in the first line, up to the next line that is not indented further."""
    deeper = (f"{indent} ", f"{indent}\t", f"{indent})")
    inside = takewhile(lambda line: not line.strip() or line.startswith(deeper), lines[1:])
    return "\n".join([lines[0], *inside])


def _lines(file: SourceFile) -> list[str]:
    code = file.text
    if file.is_notebook:
        code = "\n".join(text for _, kind, text in _cells(file) if kind == "code")
    return [line.partition("#")[0] for line in _LINE_END.split(code)[:MOST_LINES]]


def _defines(file: SourceFile, name: str) -> bool:
    return (
        name.isidentifier()
        and re.search(rf"(?:\b|\\n)(?:class|def)\s+{name}\b", file.text) is not None
    )


def _without_details(sentence: str) -> str:
    """Drop the details after a colon: they describe an unreadable answer, and the student's code chose them."""
    return sentence.partition(":")[0].rstrip(".") + "."


def clean(text: str, limit: int = MAX_MESSAGE) -> str:
    """Return the text without control characters and without commands for a terminal or a CI service."""
    text = text if len(text) <= limit else text[:limit] + " …"
    text = "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return "\n".join(_harmless(line) for line in text.split("\n"))


def _harmless(line: str) -> str:
    line = _OTHER_COMMAND.sub("#\N{ZERO WIDTH SPACE}#", line)
    return line.replace("::", ":\N{ZERO WIDTH SPACE}:") if line.lstrip().startswith("::") else line


def _raised(error: RemoteException, full: bool) -> str:
    where = error.frames[-1] if error.frames else None
    if error.says_unwritten:
        name = f"`{where.function}`" if where and where.function else "This part"
        if where and where.below:
            return stops_before_code(where)
        if where and _is_code(where.before):
            return f"Below your code, {name} still has the line `{where.code}` (in {where.place}): delete it."
        return f"{name} is not written yet{_at(error)}."
    said = f": {error.text}" if full and error.text else ""
    what = f"Your code raised {article(error.type)}{said}"
    line = f"\n    {where.code}" if where and where.code else ""
    shapes = f"\n    where {where.shapes}" if full and where and where.shapes else ""
    return f"{what.rstrip('.')}{_at(error)}.{line}{shapes}"


def stops_before_code(frame: Frame) -> str:
    """Return the sentence about a line that raises above code of the same function, as the stub's line does."""
    name = f"`{frame.function}`" if frame.function else "this part"
    place = f"{frame.place[:1].upper()}{frame.place[1:]}"
    return f"{place} stops {name} before your code: delete it.\n    {frame.code}"


def _with_place(sentence: str, error: RemoteException) -> str:
    code = error.frames[-1].code if error.frames else ""
    return f"{sentence.rstrip('.')}{_at(error)}." + (f"\n    {code}" if code else "")


def _is_code(line: str) -> bool:
    """Whether a line is a statement, not a comment, a header or the end of a docstring, as above an unwritten gap."""
    return bool(line) and not line.startswith("#") and not line.endswith((":", '"""', "'''"))


def _at(error: RemoteException) -> str:
    return f" ({error.frames[-1].place})" if error.frames else ""
