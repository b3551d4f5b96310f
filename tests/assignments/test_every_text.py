"""What stands in every assignment's text: the map of the whole Transformer, and minutes and difficulty of each part."""

import re
from pathlib import Path

import pytest

from autograder.course.config import load_course

COURSE = load_course(Path(__file__).resolve().parents[2])
HERE = "you are here"
ROWS = (
    ("        the next word", "07 trained, and writing · 14 fine-tuned · 15 trained well"),
    ("              ↑", ""),
    ("  ┌───────────────────────┐", "06 all of it, counted"),
    ("  │      feed-forward     │", "05 the whole block · 08 one that reads a second text"),
    ("  │           ↑           │", "09 the same, with gaps to fill · 10 ready-made"),
    ("  │       attention       │ × N", "03 one head · 04 many heads · 11 tested · 13 with a cache"),
    ("  └───────────────────────┘", ""),
    ("              ↑", ""),
    ("   vectors + positions", "01 vectors · 02 positions · 12 positions that turn"),
    ("              ↑", ""),
    ("        words of a text", "00 why not one word after the other"),
)


def the_map(number: str) -> str:
    """The map with a mark at one assignment, as comments of a py:percent document."""
    lines = []
    for drawing, words in ROWS:
        items = [f"▶ {item} ({HERE})" if item.startswith(number) else item for item in words.split(" · ")]
        lines.append(f"# {drawing:34}{' · '.join(items)}".rstrip())
    return "\n".join(["# ```", *lines, "# ```"])


@pytest.mark.parametrize("assignment", COURSE.assignments, ids=lambda assignment: assignment.name)
def test_the_map_stands_at_the_head_and_shows_where_you_are(assignment):
    text = COURSE.solution_file(assignment).read_text("utf-8")
    drawn = the_map(assignment.name[:2])
    assert drawn.count(HERE) == 1
    head = text.split("\n# %%\n")[0]
    assert drawn in head, f"the head of {assignment.name} needs this map:\n{drawn}"


def test_every_assignment_has_a_place_on_the_map():
    numbers = sorted(item[:2] for _, words in ROWS for item in words.split(" · ") if words)
    assert numbers == [f"{number:02}" for number in range(16)]


@pytest.mark.parametrize("assignment", COURSE.assignments, ids=lambda assignment: assignment.name)
def test_each_part_says_its_minutes_and_difficulty(assignment):
    text = COURSE.solution_file(assignment).read_text("utf-8")
    told = re.findall(r"^# ## Part \d.*\n#\n# (\d+) minutes, (●{1,3}○{0,2})$", text, re.MULTILINE)
    assert len(told) == len(re.findall(r"^# ## Part \d", text, re.MULTILINE)) >= len(assignment.parts)
    assert sum(int(minutes) for minutes, _ in told) == assignment.minutes
    assert {len(difficulty) for _, difficulty in told} == {3}
