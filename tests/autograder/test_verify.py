"""`doctor --verify` tests real boundaries: each cell becomes "open" when its boundary is removed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.walls.doctor import verify
from autograder.walls.doctor.doctor import MatrixCell, TierReport
from autograder.walls.inside.jail import TIERS
from autograder.walls.inside.trials import LEFT_BEHIND
from tests.autograder.sampling import sampled

# takes one wall down in the fork server, before any worker is forked; the trials stay the same
WITHOUT = """
from autograder.walls.inside import jail, landlock, seccomp, zygote
from autograder.walls.inside.trials import run
{removal}
"""
REMOVALS = {
    "limits": "jail.limit_resources = lambda *_: None",
    "filter": "jail.Walls.filter_calls = lambda self: None",
    "output": "zygote.redirect_output = lambda limit: None",
    "deadline": "zygote.Zygote.seconds_to_deadline = lambda self: None\n"
    "zygote.Zygote.enforce_deadlines = lambda self: None",
    "privileges": "jail.drop_privileges = lambda: jail.no_new_privileges()",
    "descriptors": "zygote.os.closerange = lambda *_: None",
    "landlock": "landlock.restrict = lambda *_: None",
    "scratch": "cover = jail.cover_shared_files\njail.cover_shared_files = lambda scratch_mb: cover(64)",
    "processes": "hide = jail.mount\njail.mount = lambda source, target, *rest: "
    "target != '/proc' and hide(source, target, *rest)",
}  # fmt: skip


@pytest.fixture(scope="module")
def columns() -> dict[str, TierReport]:
    return {column.tier: column for column in verify.verify()}


@pytest.fixture
def without(tiers) -> Iterator[Callable[[str, str, set[str]], TierReport]]:
    """Return the column of a tier whose workers lack one boundary."""
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # not one of pytest's: those are closed to other users
        os.chmod(folder, 0o755)

        def of(tier: str, removal: str, only: set[str]) -> TierReport:
            if not tiers[tier].works:
                pytest.skip(tiers[tier].reason)
            Path(folder, "walls_down.py").write_text(WITHOUT.format(removal=REMOVALS[removal]))
            return verify.verify_tier(tier, "walls_down:run", [Path(folder)], only)

        yield of


def opened(column: TierReport) -> set[str]:
    return {cell.wall for cell in column.cells if cell.verdict == "open"}


# ------------------------------------------------------------------ as it is


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_promised_boundaries_hold(columns, tiers, tier):
    column = columns[tier]
    assert column.works == tiers[tier].works, column.reason
    if not column.works:
        pytest.skip(column.reason)
    assert [cell for cell in column.cells if cell.verdict == "open"] == []
    assert [cell.wall for cell in column.cells] == list(verify.WALLS)


@pytest.mark.slow
def test_boundary_without_a_promise_is_shown_as_not_promised(columns):
    verdicts = {tier: {c.wall: c.verdict for c in column.cells} for tier, column in columns.items()}
    if columns["unsafe"].works:
        for wall in ("tests and solutions", "names of hidden files"):
            assert verdicts["unsafe"][wall] == "not promised"
    if columns["landlock"].works:
        assert verdicts["landlock"]["names of hidden files"] == "not promised"
    if columns["namespaces"].works:
        assert set(verdicts["namespaces"].values()) == {"held"}


@pytest.mark.slow
def test_verify_leaves_no_files_or_processes(columns):
    assert columns
    places = [Path(place) for place in ("/", "/tmp", "/dev/shm", Path.home())]
    assert [
        file for place in places if place.is_dir() for file in place.glob(f"{LEFT_BEHIND}_*")
    ] == []
    assert verify.TOKEN_NAME not in os.environ


# ------------------------------------------------------------------ walls taken down


WALLS_DOWN = [
    (
        "namespaces",
        "limits",
        {
            "memory",
            "number of threads",
            "descriptors",
            "processor time",
            "size of a file",
            "limits stay",
        },
    ),
    ("namespaces", "filter", {"network", "new processes", "other programs", "signals to others", "system-call filter"}),
    ("landlock", "filter", {"network", "new processes", "system-call filter", "nothing left over"}),
    ("landlock", "landlock", {"tests and solutions", "files of the system", "processes hidden"}),
    ("namespaces", "scratch", {"scratch space"}),
    ("namespaces", "processes", {"processes hidden"}),
    ("namespaces", "privileges", {"no rights to gain"}),
    ("namespaces", "output", {"output"}),
    ("namespaces", "deadline", {"wall clock"}),
    ("namespaces", "descriptors", {"descriptors"}),
]  # fmt: skip
SAMPLE = (("namespaces", "filter"), ("landlock", "landlock"))


@pytest.mark.parametrize(
    ("tier", "removal", "expected"), sampled(WALLS_DOWN, lambda case: case[:2] in SAMPLE)
)
def test_removed_boundary_is_reported_as_open(without, tier, removal, expected):
    column = without(tier, removal, expected)
    assert column.works, column.reason
    assert opened(column) == expected, column.cells
    assert not verify.is_sound([column])
    assert all(cell.found for cell in column.cells if cell.verdict == "open")


def test_tier_that_cannot_isolate_a_worker_does_not_work(tiers, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    column = verify.verify_tier("namespaces")
    assert (column.works, column.cells) == (False, ())
    assert "no bubblewrap" in column.reason


# ------------------------------------------------------------------ the command


def column(tier: str, verdict: str = "held", works: bool = True) -> TierReport:
    cells = (
        MatrixCell("memory", "held"),
        MatrixCell("network", verdict, () if verdict == "held" else ("make a socket",)),
    )
    return TierReport(
        tier, works, "" if works else "There is no kernel for it.", cells=cells if works else ()
    )


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ([column("namespaces"), column("landlock"), column("unsafe", "not promised")], 0),
        ([column("namespaces"), column("landlock", works=False), column("unsafe", "open")], 0),
        ([column("namespaces"), column("landlock", "not promised")], 0),
        ([column("namespaces"), column("landlock", "open")], 1),
        ([column("namespaces", "open"), column("landlock")], 1),
        ([column("namespaces", works=False), column("landlock", works=False), column("unsafe")], 1),
    ],
)
def test_exit_code_is_1_if_a_promised_boundary_is_open(monkeypatch, columns, code):
    monkeypatch.setattr(verify, "verify", lambda: columns)
    assert CliRunner().invoke(app, ["doctor", "--verify"]).exit_code == code
    done = CliRunner().invoke(app, ["doctor", "--verify", "--json"])
    assert done.exit_code == code
    assert [entry["tier"] for entry in json.loads(done.stdout)] == [each.tier for each in columns]


def test_table_lists_operations_that_succeeded(monkeypatch):
    shown = [
        column("namespaces", "open"),
        column("landlock", works=False),
        column("unsafe", "not promised"),
    ]
    monkeypatch.setattr(verify, "verify", lambda: shown)
    text = CliRunner().invoke(app, ["doctor", "--verify"]).stdout
    row = next(line for line in text.splitlines() if "network" in line)
    assert row.split() == ["network", "open", "–", "not", "promised"]
    assert "namespaces, network: a worker could make a socket." in text
    assert "landlock does not work here: There is no kernel for it." in text
