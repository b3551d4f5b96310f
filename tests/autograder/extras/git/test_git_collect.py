"""Collecting from repositories: only what changed is fetched, and a hand-in is when the course first saw it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.extras.git.collecting import GitReport, collect_from_git
from autograder.extras.git.command import Limits
from autograder.extras.git.repositories import Repository, read_repositories
from autograder.extras.lms.collecting import CollectOptions, collect
from autograder.extras.lms.roster import Roster, read_roster
from autograder.gradebook.final_scores import what_counts
from autograder.gradebook.journal import Journal, grades_at
from autograder.gradebook.texts import put
from autograder.gradebook.times import keep_times
from autograder.records import Grade, InfrastructureError, RefusedError
from autograder.submissions.collected import Collected, read_collected
from autograder.submissions.find import find_submissions
from tests.autograder.student_repositories import (
    NEEDS_GIT,
    StudentRepository,
    copy_of,
    make_repository,
    write_table,
)
from tests.autograder.tiny_course import FILES, write_tiny_course

pytestmark = NEEDS_GIT

NAME = "01_adding"
Gather = Callable[..., GitReport]
FIRST = datetime(2026, 11, 2, 10, tzinfo=timezone.utc)
DAY = timedelta(days=1)
OTHER = """\
  - name: 02_taking
    title: Taking away
    minutes: 10
    parts:
      - {name: take, title: Two numbers, points: 4}
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The tiny course with a due date and a second assignment that exists only in course.yml."""
    root = write_tiny_course(tmp_path_factory.mktemp("course"))
    text = FILES["course.yml"].replace(
        "minutes: 10\n", "minutes: 10\n    due: 2026-11-03 12:00\n", 1
    )
    (root / "course.yml").write_text(
        text + OTHER + "late: {percent_a_day: 10}\nattempts: best\n", "utf-8"
    )
    return load_course(root)


@pytest.fixture
def gather(course: Course, tmp_path: Path) -> Gather:
    """Collect from repositories by student, at a moment, into `tmp_path / "submitted"`."""

    def run(
        repositories: dict[str, StudentRepository],
        now: datetime = FIRST,
        assignment: str = "",
        branch: str = "",
        limits: Limits = Limits(),  # noqa: B008
        **options: object,
    ) -> GitReport:
        listed = [
            Repository(student, one.url, assignment, branch)
            for student, one in repositories.items()
        ]
        chosen = CollectOptions(tmp_path / "submitted", **options)  # type: ignore[arg-type]
        return collect_from_git(
            listed, course, chosen, "repositories.csv", lambda *_: None, limits, lambda: now
        )

    return run


def answer(number: int) -> str:
    return f"def add(a, b):\n    return a + b + {number} - {number}\n"


def collected(folder: Path, student: str, assignment: str = NAME) -> Collected:
    return read_collected(folder / "submitted")[student, assignment]


def text_of(folder: Path, student: str) -> str:
    return (folder / "submitted" / student / NAME / "adding.py").read_text("utf-8")


def test_only_changed_heads_are_fetched(tmp_path: Path, gather: Gather) -> None:
    first_one = make_repository(tmp_path, "template", {"adding.py": answer(0)})
    students = {f"s{n:02d}": copy_of(first_one, tmp_path / f"s{n:02d}.git") for n in range(9)}
    first = gather(students)
    assert (first.fetched, first.failed, dict(first.counts)) == (9, 0, {"new": 9})
    for student in ("s03", "s05"):
        students[student].commit({"adding.py": answer(99)})
    second = gather(students, FIRST + DAY)
    assert (second.fetched, second.failed) == (2, 0)
    assert dict(second.counts) == {"unchanged": 7, "replaced": 2}
    assert "9 repositories: 2 fetched, 7 unchanged. 9 submissions" in second.summary
    assert text_of(tmp_path, "s05") == answer(99)


def test_whole_way_from_the_command_line(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(tmp_path, "ada", {f"work/{NAME}/adding.py": answer(1)})
    write_table(tmp_path, {"ada": repository})
    monkeypatch.chdir(tmp_path)
    words = ("collect", "--from", "git", "repositories.csv", "--course", str(course.root))
    done = CliRunner().invoke(app, words)
    told = "1 repository: 1 fetched, 0 unchanged. 1 submission of 1 student: 1 new.\n"
    assert (done.exit_code, done.stdout) == (0, told)
    record = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert (record["repositories"], record["fetched"]) == (1, 0)
    assert record["submissions"] == {"unchanged": 1}
    assert [one.files[0].text for one in find_submissions(Path("submitted"), course)] == [answer(1)]


def test_repository_that_cannot_be_read_stops_no_other(tmp_path: Path, gather: Gather) -> None:
    ada = make_repository(tmp_path, "ada", {"adding.py": answer(1)})
    gone = StudentRepository(tmp_path / "gone.git")
    empty = make_repository(tmp_path, "empty")
    report = gather({"gone": gone, "empty": empty, "ada": ada})
    assert (report.failed, dict(report.counts), len(report.odd)) == (1, {"new": 1}, 1)
    assert report.notes == [
        f"repositories.csv: empty has handed in nothing at {empty.url}: there is no commit yet."
    ]
    assert f"gone: {gone.url} was not collected: git says: " in report.odd[0]


def test_address_with_a_password_is_not_told(tmp_path: Path, gather: Gather) -> None:
    class Secret(StudentRepository):
        @property
        def url(self) -> str:
            return "https://course:secret@localhost:1/ada.git"

    report = gather({"ada": Secret(tmp_path)})
    assert report.failed == 1 and "https://localhost:1/ada.git" in report.odd[0]
    told = " ".join([*report.odd, *(str(path) for path in tmp_path.rglob("*"))])
    assert "secret" not in told


# ------------------------------------------------------------------ times and attempts


def test_forged_date_of_a_commit_and_a_later_look_change_no_time(
    tmp_path: Path, gather: Gather
) -> None:
    repository = make_repository(tmp_path, "ada")
    before_due = int((FIRST - 30 * DAY).timestamp())
    repository.commit({"adding.py": answer(1)}, date=before_due)
    for days in (5, 6, 7):
        gather({"ada": repository}, FIRST + days * DAY)
    assert collected(tmp_path, "ada").submitted_at == "2026-11-07T10:00:00+00:00"


def test_commit_that_changes_other_files_is_no_new_hand_in(tmp_path: Path, gather: Gather) -> None:
    repository = make_repository(tmp_path, "ada", {"adding.py": answer(1)})
    gather({"ada": repository}, FIRST)
    repository.commit({"adding.py": answer(1), "taking.py": "def take(a, b):\n    return a - b\n"})
    gather({"ada": repository}, FIRST + DAY)
    assert collected(tmp_path, "ada").submitted_at == "2026-11-02T10:00:00+00:00"
    assert collected(tmp_path, "ada", "02_taking").submitted_at == "2026-11-03T10:00:00+00:00"


STUB = "def add(a, b):\n    raise NotImplementedError\n"
CELL = {"cell_type": "code", "source": STUB, "metadata": {}, "outputs": [], "execution_count": None}
NOTEBOOK = json.dumps({"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def released(course: Course) -> Iterator[None]:
    """The stub and the notebook as students received them."""
    assignment = course.assignment(NAME)
    texts = {course.stub_file(assignment): STUB, course.notebook_file(assignment): NOTEBOOK}
    files = list(texts)
    files[0].parent.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        file.write_text(text, "utf-8")
    yield
    for file in files:
        file.unlink()


def renamed_branch(one: StudentRepository) -> StudentRepository:
    one.git("branch", "-m", "main", "trunk")
    return one


def another_branch(one: StudentRepository) -> StudentRepository:
    one.commit({"adding.py": answer(1), "x.txt": "x"}, branch="dev")
    one.git("symbolic-ref", "HEAD", "refs/heads/dev")
    return one


def committed(**files: str | tuple[str, str]) -> Callable[[StudentRepository], StudentRepository]:
    def road(one: StudentRepository) -> StudentRepository:
        one.commit(
            {name.replace("__", "/").replace("_py", ".py"): text for name, text in files.items()}
        )
        return one

    return road


def moved_away(one: StudentRepository) -> StudentRepository:
    one.path.rename(one.path.with_name("moved.git"))
    return StudentRepository(one.path.with_name("moved.git"))


def in_sha256(one: StudentRepository) -> StudentRepository:
    return make_repository(one.path.parent, "newer", {"adding.py": answer(1)}, "sha256")


ROADS: dict[str, Callable[[StudentRepository], StudentRepository]] = {
    "a branch is renamed": renamed_branch,
    "another branch with the same work is the first": another_branch,
    "an untouched notebook comes beside it": committed(
        adding_py=answer(1), **{"adding.ipynb": NOTEBOOK}),
    "the untouched stub lies in a folder beside it": committed(
        adding_py=answer(1), x__adding_py=STUB),
    "another file comes beside it": committed(adding_py=answer(1), **{"notes.txt": "x"}),
    "the file is moved": committed(**{f"{NAME}/adding.py": answer(1)}),
    "the file is renamed": committed(**{"adding-1.py": answer(1)}),
    "the file can be executed": committed(adding_py=("100755", answer(1))),
    "the commit is made anew": committed(adding_py=answer(1)),
    "the repository has another address": moved_away,
    "the repository is made anew with other names of objects": in_sha256,
}  # fmt: skip


@pytest.mark.parametrize("road", ROADS)
def test_unchanged_work_keeps_its_first_time(
    tmp_path: Path, gather: Gather, released: None, road: str
) -> None:
    repository = make_repository(tmp_path, "ada", {"adding.py": answer(1)})
    gather({"ada": repository}, FIRST)
    repository = ROADS[road](repository)
    report = gather({"ada": repository}, FIRST + DAY)
    assert collected(tmp_path, "ada").submitted_at == "2026-11-02T10:00:00+00:00"
    assert dict(report.counts) == {"unchanged": 1}
    (tmp_path / "submitted/collected.json").unlink()
    gather({"ada": repository}, FIRST + 2 * DAY)
    assert collected(tmp_path, "ada").submitted_at == "2026-11-02T10:00:00+00:00", "as it was seen"
    repository.commit(
        {"adding.py": answer(2)}, repository.git("symbolic-ref", "--short", "HEAD").strip()
    )
    gather({"ada": repository}, FIRST + 3 * DAY)
    assert collected(tmp_path, "ada").submitted_at == "2026-11-05T10:00:00+00:00"


def test_earlier_work_in_a_new_commit_is_handed_in_anew(tmp_path: Path, gather: Gather) -> None:
    repository = make_repository(tmp_path, "ada", {"adding.py": answer(1)})
    gather({"ada": repository}, FIRST)
    for days, version in enumerate((2, 1), 1):
        repository.commit({"adding.py": answer(version), "days.txt": str(days)})
        gather({"ada": repository}, FIRST + days * DAY)
    assert collected(tmp_path, "ada").submitted_at == "2026-11-04T10:00:00+00:00"


@pytest.mark.parametrize("by_git_first", [True, False])
def test_work_from_git_and_from_a_folder_has_the_earlier_time(
    tmp_path: Path, course: Course, gather: Gather, by_git_first: bool
) -> None:
    """A folder has no time; a table says what counts, also when the work comes once more without it."""
    (tmp_path / "work/ada" / NAME).mkdir(parents=True)
    (tmp_path / "work/ada" / NAME / "adding.py").write_text(answer(1), "utf-8")
    repository = make_repository(tmp_path, "ada", {"adding.py": answer(1)})

    def from_folder(**options: object) -> None:
        collect([tmp_path / "work"], course, CollectOptions(tmp_path / "submitted", **options))  # type: ignore[arg-type]

    doors = [lambda: gather({"ada": repository}, FIRST), from_folder]
    for door in doors if by_git_first else reversed(doors):
        door()
    assert collected(tmp_path, "ada").submitted_at == "2026-11-02T10:00:00+00:00"
    table = f"student,assignment,submitted_at\nada,{NAME},2026-11-05 09:00+02:00\n"
    (tmp_path / "times.csv").write_text(table, "utf-8")
    from_folder(times=tmp_path / "times.csv")
    gather({"ada": repository}, FIRST + DAY)
    assert collected(tmp_path, "ada").submitted_at == "2026-11-05T09:00:00+02:00"


def test_table_of_times_counts_more_than_what_was_seen_and_those_whom_it_lacks_are_named(
    tmp_path: Path, gather: Gather
) -> None:
    table = f"student,assignment,submitted_at\nada,{NAME},2026-11-01 09:00\n"
    (tmp_path / "times.csv").write_text(table, "utf-8")
    names = ("ada", "ben", "eve")
    students = {name: make_repository(tmp_path, name, {"adding.py": answer(1)}) for name in names}
    report = gather(students, FIRST, times=tmp_path / "times.csv")
    assert report.odd == [
        "times.csv has no time, or several times, for: ben, eve. What counts is the time in the "
        "download or, for a repository, when the course first saw the work."
    ]
    assert collected(tmp_path, "ada").submitted_at == "2026-11-01T09:00:00+00:00"
    assert collected(tmp_path, "ben").submitted_at == "2026-11-02T10:00:00+00:00"


def graded(folder: Path, course: Course, score: float) -> None:
    """Grade what is collected with this score, as a run would; its suite stands for all."""
    stored = put(folder / "grades", find_submissions(folder / "submitted", course))
    keep_times(folder / "grades", folder / "submitted", stored)
    with Journal(folder / "grades") as journal:
        for one in stored:
            key = one.submission.student, one.submission.assignment
            journal.append(Grade(*key, "graded", score, 10, submission_sha256=one.digest))


def test_forced_push_backwards_loses_no_attempt(
    tmp_path: Path, course: Course, gather: Gather
) -> None:
    repository = make_repository(tmp_path, "ada")
    early = repository.commit({"adding.py": answer(1)})
    gather({"ada": repository}, FIRST)
    graded(tmp_path, course, 4)
    repository.commit({"adding.py": answer(2)})
    gather({"ada": repository}, FIRST + DAY / 24)
    graded(tmp_path, course, 9)
    repository.move("main", early)
    report = gather({"ada": repository}, FIRST + 9 * DAY)
    assert dict(report.counts) == {"older": 1} and text_of(tmp_path, "ada") == answer(2)
    repository.commit({"adding.py": answer(3)})
    gather({"ada": repository}, FIRST + 9 * DAY)
    graded(tmp_path, course, 5)
    effective = what_counts(tmp_path / "grades", course, grades_at(tmp_path / "grades"))
    (grade,) = effective.grades
    assert (grade.score, effective.finals[grade.key].days) == (9, 0)
    assert len(effective.attempts(grade)) == 3
    earlier = (tmp_path / "submitted/.earlier/ada" / NAME).glob("*/adding.py")
    assert {file.read_text("utf-8") for file in earlier} == {answer(1), answer(2)}


def test_tag_stands_for_the_hand_in(tmp_path: Path, gather: Gather) -> None:
    repository = make_repository(tmp_path, "ada", {"adding.py": answer(1)})
    (note,) = gather({"ada": repository}, FIRST, branch="final").notes
    assert "there is no branch or tag final." in note
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@school.example")
    repository.git(*author, "tag", "-a", "-m", "done", "final", "main")
    repository.commit({"adding.py": answer(2)})
    gather({"ada": repository}, FIRST + DAY, branch="final")
    assert text_of(tmp_path, "ada") == answer(1)
    assert collected(tmp_path, "ada").submitted_at == "2026-11-03T10:00:00+00:00"


def test_times_that_cannot_be_read_stop_the_command(tmp_path: Path, gather: Gather) -> None:
    repository = make_repository(tmp_path, "ada", {"adding.py": answer(1)})
    gather({"ada": repository})
    (file,) = (tmp_path / "submitted-git/seen").iterdir()
    file.write_text("{", "utf-8")
    with pytest.raises(InfrastructureError, match="holds the times of hand-in"):
        gather({"ada": repository})


# ------------------------------------------------------------------ which files


def test_files_are_fetched_alone_where_the_server_can(tmp_path: Path, gather: Gather) -> None:
    repository = make_repository(
        tmp_path, "ada", {"adding.py": answer(1), "data.csv": "large" * 1000}
    )
    repository.git("config", "uploadpack.allowFilter", "true")
    gather({"ada": repository})
    assert text_of(tmp_path, "ada") == answer(1)
    (store,) = (tmp_path / "submitted-git/stores").iterdir()
    (listed,) = repository.git("rev-parse", "main:data.csv").split()
    held = StudentRepository(store).git("cat-file", "--batch-check", given=f"{listed}\n")
    assert held == f"{listed} missing\n"
    repository.commit({"adding.py": answer(2), "data.csv": "large" * 1000})
    assert gather({"ada": repository}, FIRST + DAY).fetched == 1
    assert text_of(tmp_path, "ada") == answer(2)


# ------------------------------------------------------------------ whose repository


def repositories(course: Course, source: str, roster: Roster = Roster()) -> list[Repository]:  # noqa: B008
    return read_repositories(source, course, roster)


def test_table_names_assignments_branches_and_folders(tmp_path: Path, course: Course) -> None:
    table = tmp_path / "repositories.csv"
    rows = f"student,url,assignment,branch,path\nada,https://forge.example/a.git,{NAME},main,work\nben,,,,\n"
    table.write_text(rows, "utf-8")
    assert repositories(course, str(table)) == [
        Repository("ada", "https://forge.example/a.git", NAME, "main", "work")
    ]


CLASSROOM = """\
assignment_name,github_username,roster_identifier,student_repository_url,submission_timestamp
Adding,octo-ada,ada,file://{0}/ada.git,2026-11-01 22:10:00 UTC
Adding,octo-ben,,file://{0}/ben.git,2026-11-01 23:12:00 +0100
Adding,,,file://{0}/cy.git,2026-11-01 22:14:00 UTC
"""


def test_one_table_of_github_classroom_has_repositories_times_and_people(
    tmp_path: Path, course: Course
) -> None:
    """Ben has not linked the account, and nothing says whose the last repository is."""
    for name in ("ada", "ben", "cy"):
        make_repository(tmp_path, name, {"adding.py": answer(1)})
    table = tmp_path / "classroom.csv"
    table.write_text(CLASSROOM.format(tmp_path), "utf-8")
    people = read_roster(table)
    assert [person.id for person in people.people] == ["ada", "octo-ben"]
    options = CollectOptions(
        tmp_path / "submitted", course.assignment(NAME), roster=people, times=table
    )
    listed = read_repositories(str(table), course, people)
    report = collect_from_git(listed, course, options, "classroom.csv", lambda *_: None)
    assert report.odd == [
        f"classroom.csv: the address file://{tmp_path}/cy.git belongs to no student, so it is left out."
    ]
    times = {name: collected(tmp_path, name).submitted_at for name in ("ada", "octo-ben")}
    assert times == {"ada": "2026-11-01T22:10:00+00:00", "octo-ben": "2026-11-01T23:12:00+01:00"}


def test_address_is_filled_in_from_the_roster(tmp_path: Path, course: Course) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text("student,name,github_username\nada l,Ada Lovelace,octo-ada\n", "utf-8")
    people = read_roster(roster)
    found = repositories(course, "ssh://git@forge.example/course/{student}.git", people)
    assert found == [Repository("ada l", "ssh://git@forge.example/course/ada%20l.git")]
    found = repositories(course, "git@github.com:course/adding-{github}.git", people)
    assert found == [Repository("ada l", "git@github.com:course/adding-octo-ada.git")]


NO_ADDRESSES = [
    *("--upload-pack=touch /tmp/x", "ext::sh -c id", "ssh://-oProxyCommand=id/x"),
    *("git://forge.example/a.git", "http://forge.example/a.git", "git@forge.example:-x"),
    *("/srv/ada.git", "file://elsewhere/ada.git", "https://evil.example#@forge.example/a.git"),
    *("https://evil.example\\@forge.example/a", "https://a@b@forge.example/a"),
    *("ssh://%24%28id%29@forge.example/a", "ssh://git@$(id)/a", "git@a.example:b://c"),
]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        *((f"ada,{address},,,", "is not the address of a repository") for address in NO_ADDRESSES),
        ("-ada,https://forge.example/a.git,,,", "begins with a hyphen"),
        ("ada,https://forge.example/a.git,,--all,", "--all is not the name of a branch or a tag"),
        ("ada,https://forge.example/a.git,,a..b,", "a..b is not the name of a branch or a tag"),
        ("ada,https://forge.example/a.git,,a:b,", "a:b is not the name of a branch or a tag"),
        ("ada,https://forge.example/a.git,,,../x", "../x is not a folder inside the repository"),
        ("ada,https://a.example/a\nada,https://b.example/b,,,", "ada has two repositories"),
        (",https://forge.example/a.git,,,", "belongs to no student"),
    ],
)
def test_what_git_could_misunderstand_is_refused(
    tmp_path: Path, course: Course, row: str, sentence: str
) -> None:
    table = tmp_path / "repositories.csv"
    table.write_text(f"student,url,assignment,branch,path\n{row}\n", "utf-8")
    with pytest.raises(RefusedError, match=sentence.replace("..", r"\.\.")):
        repositories(course, str(table))


FORGE = "https://forge.example/course"
PLACES = [
    *("https://evil.example", "https://forge.example:8443", "https://forge.example.evil.example"),
    *("ssh://git@forge.example", "git@forge.example:x", "file:///srv"),
]


@pytest.mark.parametrize("other", PLACES)
def test_addresses_of_a_table_lead_to_one_place(tmp_path: Path, course: Course, other: str) -> None:
    """A token or a key is for the place that the instructor named; a student's row names no further one."""
    table = tmp_path / "repositories.csv"
    rows = [f"ada,{FORGE}/ada.git", "ben,https://x@Forge.Example.:443/ben.git"]
    table.write_text("\n".join(["student,url", *rows]), "utf-8")
    assert len(repositories(course, str(table))) == 2
    table.write_text("\n".join(["student,url", *rows, f"eve,{other}/eve.git"]), "utf-8")
    with pytest.raises(RefusedError, match=r"forge.example \(ada and 1 more\).* \(eve\)"):
        repositories(course, str(table))


def test_address_needs_a_place_for_the_student_and_a_roster(course: Course) -> None:
    with pytest.raises(RefusedError, match="has no {student}"):
        repositories(course, "https://forge.example/course.git")
    with pytest.raises(RefusedError, match="needs the students"):
        repositories(course, "https://forge.example/{student}.git")


# ------------------------------------------------------------------ a server
