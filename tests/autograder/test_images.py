"""The pictures of the README and the guides exist, are small and up to date, and have a text alternative."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from autograder.course.config import load_course

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
GUIDES = (
    "README.md", "docs/students.md", "docs/grading.md", "docs/authoring.md", "docs/security.md",
    "docs/performance.md",
)  # fmt: skip


@pytest.fixture(scope="module")
def draw() -> SimpleNamespace:
    """The program that draws the pictures."""
    return SimpleNamespace(**runpy.run_path(str(IMAGES / "draw.py")))


@pytest.mark.parametrize("guide", GUIDES)
def test_each_guide_has_a_picture_with_alternative_text(guide: str) -> None:
    page = ROOT / guide
    found = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text("utf-8"))
    assert found
    for words, target in found:
        assert len(words.split()) >= 8, (
            f"{target} in {guide} says too little to those who cannot see it"
        )
        assert (page.parent / target).is_file()


def test_pictures_are_small_and_used() -> None:
    texts = "".join((ROOT / guide).read_text("utf-8") for guide in GUIDES)
    for image in IMAGES.glob("*.png"):
        assert image.stat().st_size < 200_000, f"{image.name} is too large"
        assert f"images/{image.name}" in texts, f"{image.name} is shown nowhere"


def test_picture_of_the_road_matches_the_course(draw: SimpleNamespace) -> None:
    with Image.open(IMAGES / "road.png") as image:
        drawn = image.info.get("Description")
    assert drawn == draw.road_in_words(load_course(ROOT)), (
        "draw it anew: python docs/images/draw.py road"
    )
