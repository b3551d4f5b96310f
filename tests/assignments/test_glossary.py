"""The glossary: its terms are in order, and each is used in the assignments that it names."""

import re
from pathlib import Path

import pytest

from autograder.course.reading import load_course

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(
    r"^\| (?!term |---)(.+?) \| (.+?) \| (.*?) ?\| ([\d, ]+) \|$", (ROOT / "docs/glossary.md").read_text("utf-8"), re.M
)


def spellings(term: str) -> list[str]:
    """`key–value cache` and `token, tokenizer` as lists of what may stand in a text."""
    outside, inside = re.sub(r"\([^)]*\)", "", term), re.findall(r"\(([^)]*)\)", term)
    words = [word for part in [outside, *inside] for word in re.split(r", | and ", part)]
    return [word.strip(" `").lower().removesuffix("s") for word in words]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The text of each assignment by its number, in lower case, without marks of emphasis."""
    course = load_course(ROOT)
    solutions = {a.name[:2]: course.solution_file(a).read_text("utf-8") for a in course.assignments}
    return {number: re.sub(r"\s+(# )?", " ", text.replace("*", "")).lower() for number, text in solutions.items()}


def test_terms_are_in_alphabetical_order() -> None:
    terms = [term.lower() for term, *_ in ROWS]
    assert len(terms) > 50
    assert terms == sorted(terms)


@pytest.mark.parametrize(("term", "numbers"), [(row[0], row[3]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_term_is_used_where_it_is_introduced(texts: dict[str, str], term: str, numbers: str) -> None:
    for number in numbers.split(", "):
        assert any(word in texts[number] for word in spellings(term)), f"{term} is not in assignment {number}"
