"""The page of one grade as Markdown, which a forge, a mail program or a notebook shows.

No text of a student or a test becomes markup, a link, a mention or a reference to an issue: signs
are escaped, and words that a forge could turn into a link stand as code.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.feedback.causes import STATES, Cause
from autograder.feedback.objections import HEADING
from autograder.feedback.pages import plain, printable
from autograder.feedback.pictures import Picture
from autograder.feedback.record import PageRecord, PartRecord
from autograder.gradebook.final_scores import number
from autograder.records import TestResult
from autograder.text.wording import begun

PICTURES = "pictures"
_PNG = b"\x89PNG\r\n\x1a\n"
_CODE = re.compile(r"`([^`\n]+)`")
# addresses, mentions, issues, labels, snippets, emoji; then tickets and commits, which have a case
_LINKED = re.compile(
    r"""://|www\.|@|mailto:|xmpp:|\[\[|\[\w+:|[#!]\d|[&%~][\w"']|\*iteration|\$|:[\w+-]+:"""
    r"""|(?-i:\b[A-Z][A-Z0-9]*-\d|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b)""",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&$^=]")
_BEGINNING = re.compile(r"^(?:[-+:]|\d+(?=[.)]))")


@dataclass(frozen=True)
class MarkdownPage:
    """A page, and the pictures to which it links by their paths beside it."""

    text: str
    pictures: Mapping[str, bytes]


def as_markdown(page: PageRecord) -> MarkdownPage:
    """Return the page as Markdown."""
    pictures: dict[str, bytes] = {}
    blocks = [*_top(page), *_body(page, pictures)]
    return MarkdownPage("\n\n".join(blocks) + "\n", pictures)


def escaped(text: str) -> str:
    """Return a text for one line of Markdown: its `names` are code, all else is only text."""
    line = " ".join(str(printable(text)).split())
    pieces = _CODE.split(line)
    marked = [_code(piece) if place % 2 else _words(piece) for place, piece in enumerate(pieces)]
    return _BEGINNING.sub(_after_backslash, _joined(filter(None, marked)))


def _joined(pieces: Iterable[str]) -> str:
    """Join pieces, with a space where the code of two would become one run of backticks."""
    joined = ""
    for piece in pieces:
        gap = " " if joined.endswith("`") and piece.startswith("`") else ""
        joined += gap + piece
    return joined


def _words(text: str) -> str:
    """Return text in which a word that a forge could turn into a link is code."""
    return " ".join(
        _code(word) if _LINKED.search(word) else _MARKUP.sub(r"\\\g<0>", word)
        for word in text.split(" ")
    )


def _after_backslash(match: "re.Match[str]") -> str:
    """Return a beginning that is not one of a list: `-` as `\\-`, and the number of `1.` before a backslash."""
    return f"{match[0]}\\" if match[0].isdecimal() else f"\\{match[0]}"


def _code(text: str) -> str:
    """Return a text as code in a line, with fences for itself alone: `_joined` keeps neighbours apart."""
    text = " ".join(text.split()) or " "
    fence = "`" * (_longest_run(text) + 1)
    gap = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{gap}{text}{gap}{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _prose(text: str) -> str:
    """Return a message of several lines; those that are indented stand as a block of code."""
    blocks = list[str]()
    code = list[str]()
    for line in [*str(printable(text)).split("\n"), ""]:
        if line.startswith("    "):
            code.append(line[4:])
            continue
        if code:
            blocks.append(_fenced("\n".join(code)))
            code = []
        if line.strip():
            blocks.append(escaped(line))
    return "\n\n".join(blocks)


def _fenced(code: str) -> str:
    fence = "`" * max(3, _longest_run(code) + 1)
    return f"{fence}text\n{code}\n{fence}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _items(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _top(page: PageRecord) -> Iterator[str]:
    yield f"# {escaped(page.title)}"
    who = escaped(page.student)
    if page.name not in ("", page.student):
        who = f"{escaped(page.name)}, {who}"
    files = " and ".join(_code(str(printable(name))) for name in page.files)
    yield f"Feedback for {who}{f' on {files}' if files else ''}"
    if page.handed_in:
        yield f"Handed in {escaped(page.handed_in)}"


def _body(page: PageRecord, pictures: dict[str, bytes]) -> Iterator[str]:
    if page.standing == "excused":
        yield "**Excused**"
        yield from _decided(page)
        return
    if page.standing == "refused":
        yield from _refused(page)
        yield from _decided(page)
        return
    which = " in the visible tests" if page.visible_only else ""
    yield f"**{number(page.score)} of {number(page.max_score)} points{which}**"
    if page.late:
        yield f"{escaped(page.late)}."
    yield from _decided(page)
    yield escaped(page.word)
    yield from map(_prose, page.loading)
    for place, part in enumerate(page.parts, start=1):
        yield from _part(part, place, pictures)
    if page.objection:
        yield f"## {HEADING}"
        yield page.how_to_object
        yield _fenced(page.objection)


def _refused(page: PageRecord) -> Iterator[str]:
    yield "**Not graded**"
    yield _quoted(_prose(page.problem))
    points = number(page.max_score)
    counts = f" Until then, this submission counts 0 of {points} points." if page.max_score else ""
    yield f"Correct the problem and hand in your file again.{counts}"


def _decided(page: PageRecord) -> Iterator[str]:
    if page.decisions:
        yield _items([escaped(sentence) for sentence in page.decisions])


def _part(part: PartRecord, place: int, pictures: dict[str, bytes]) -> Iterator[str]:
    points = f" ({number(part.score)} of {number(part.points)})" if part.points else ""
    yield f"## {escaped(part.title)}{points}"
    if part.works:
        yield _items([f"✓ {escaped(title)}" for title in part.works])
    for reason, titles in part.followed.items():
        yield _prose(reason)
        yield _items([f"✓ {escaped(title)}" for title in titles])
    for cause in part.causes:
        yield from _cause(cause)
    yield from _drawn(part.pictures, place, pictures)
    for reason, waiting in part.waiting.items():
        yield _prose(reason)
        yield _items([_costing(test) for test in waiting])


def _cause(cause: Cause) -> Iterator[str]:
    if cause.question:
        name = f"**{escaped(begun(cause.mistake))}**\n\n" if cause.mistake else ""
        yield _quoted(f"{name}{_prose(cause.question)}")
    for failure in cause.failures:
        yield _items([f"✗ {_costing(test)}: {STATES[test.outcome]}" for test in failure])
        yield _prose(failure[0].message or "")
        if failure[0].to_try:
            yield _prose(failure[0].to_try)


def _costing(test: TestResult) -> str:
    cost = f" (−{number(test.lost)})" if test.lost > 0 else ""
    return f"{escaped(test.title)}{cost}"


def _drawn(drawn: Sequence[Picture], place: int, pictures: dict[str, bytes]) -> Iterator[str]:
    for picture in drawn:
        image = _image(picture)
        if image is None:
            reason = f"{picture.title}: {picture.problem}" if picture.problem else picture.title
            yield f"No picture yet of {escaped(reason)}"
            continue
        path = f"{PICTURES}/part-{place}-{len(pictures) + 1}.png"
        pictures[path] = image
        yield f"### Your code’s picture: {escaped(picture.title)}"
        yield f"What to look for: {escaped(plain(picture.look_for))}"
        described = _alternative(f"{picture.title}: {picture.words}")
        yield f"![{described}]({path})"


def _alternative(title: str) -> str:
    """Return a title for the place of a picture that is not shown, where code cannot stand."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(plain(str(printable(title))).split()))


def _image(picture: Picture) -> bytes | None:
    try:
        image = base64.b64decode(picture.image, validate=True)
    except binascii.Error:
        return None
    return image if image.startswith(_PNG) else None
