"""Package the students' files: the built assignments, a README and the installable autograder, as folder or archive.

All files are collected in memory, checked for solutions, hidden tests and mistakes, and only then
written.
"""

import io
import itertools
import json
import random
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path, PurePosixPath

from autograder.authoring.build import check
from autograder.authoring.hints_file import has_hints, hints_path
from autograder.authoring.kept_release import keep, kept_files, release_digest
from autograder.authoring.kit import FOLDER as KIT
from autograder.authoring.kit import SCRIPT, kit
from autograder.authoring.leaks import gives_away, words_of
from autograder.authoring.released import released
from autograder.authoring.template import filled
from autograder.course.config import CATCH_FILE, Assignment, Course, CourseError
from autograder.course.document import load_document
from autograder.course.markers import BEGIN, END
from autograder.course.mistakes_file import load_mistakes
from autograder.installation.distribution import plain_name, requirements
from autograder.records import InfrastructureError
from autograder.source.python_versions import for_students
from autograder.text.files import check_file, write_whole, zipped
from autograder.text.wording import counted, counted_are

GUIDE = "docs/students.md"
PAGES = {"README.md": "students.md", "AGENTS.md": "assistants.md"}  # each with its template
CONSTRAINTS = "constraints.txt"
REQUIREMENTS = "requirements.txt"
CONTAINER = ".devcontainer/devcontainer.json"
ENGINE = Path(__file__).parents[2]  # the folder in which the package of the engine lies
SECRET_NAMES = (
    "test_hidden.py",
    "mistakes.yml",
    "equivalent_mutants.yml",
    "alternatives",
    "solutions",
)
OTHER_ARCHIVES = (
    ".tar",
    ".gz",
    ".tgz",
    ".bz2",
    ".tbz2",
    ".xz",
    ".txz",
    ".zst",
    ".7z",
    ".rar",
    ".whl",
)


@dataclass
class Release:
    """The result of a release: its files by name, and a sentence for each leak."""

    files: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def release(
    course: Course,
    output: Path,
    names: Iterable[str] | None = None,
    wheel: Path | None = None,
    tell: Callable[[str], None] = lambda step: None,
) -> Release:
    """Write the students' files of the named assignments (all for None) to `output`: a folder, or an archive `*.zip`.

    Nothing is written if there are problems. `wheel` is the autograder's wheel to include, by
    default its own. Raises CourseError or RefusedError if the course or `output` is unusable,
    InfrastructureError if the wheel cannot be made. `tell` is called with each step.
    """
    assignments = course.select(names)
    _check_room(output)
    tell(f"Checking that {counted_are(len(assignments), 'assignment')} up to date")
    result = Release(problems=check(course, names))
    if not result.problems:
        _collect(result, course, assignments, wheel, tell)
    if result.problems:
        return result
    if _is_archive(output):
        write_whole(
            output,
            zipped((f"{output.stem}/{name}", content) for name, content in result.files.items()),
        )
    else:
        for name, content in result.files.items():
            write_whole(output / name, content)
    return result


def _collect(
    result: Release,
    course: Course,
    assignments: Sequence[Assignment],
    wheel: Path | None,
    tell: Callable[[str], None],
) -> None:
    """Collect the files and their leaks; files in which there was none before are looked at with one
    assignment, drawn at random.
    """
    digest = release_digest(course, assignments, wheel, _as_they_are(course))
    kept = kept_files(course, digest)
    if kept is None:
        tell("Building the kit")
    result.files = kept or release_files(course, assignments, wheel)
    tell(
        f"Looking for solutions, hidden tests and mistakes in {counted(len(result.files), 'file')}"
    )
    suspects = random.sample(assignments, min(1, len(assignments))) if kept else assignments
    result.problems = list(leaks(course, suspects, result.files))
    if kept or result.problems:
        return
    if digest == release_digest(course, assignments, wheel, _as_they_are(course)):
        keep(course, digest, result.files)  # else a source changed meanwhile


def _as_they_are(course: Course) -> dict[str, bytes]:
    """Return the files beside the assignments that a release takes from the course."""
    constraints = course.root / CONSTRAINTS
    files = {CONSTRAINTS: constraints.read_bytes()} if constraints.is_file() else {}
    return {**files, **_guides(course.root, GUIDE)}


def leaks(
    course: Course, assignments: Iterable[Assignment], files: dict[str, bytes]
) -> Iterator[str]:
    """Yield the leaks in the files of a release, one sentence per leak, including the contents of the wheel."""
    texts = dict(_texts(files))
    for name, text in texts.items():
        if set(PurePosixPath(name.partition(":")[2] or name).parts) & set(SECRET_NAMES):
            yield f"{name} must not be released."
        # the engine's own code contains the markers
        if ":" not in name and (BEGIN in text or END in text):
            yield f"{name} contains a marker of a solution."
    for assignment in assignments:
        prefix = f"assignments/{assignment.name}/"
        shown = {
            n: text
            for n, text in texts.items()
            if n.startswith(prefix) or not n.startswith("assignments/")
        }
        shown = {name: text for name, text in shown.items() if not _is_of_the_engine(name, text)}
        yield from gives_away(course, assignment, shown.items())
        yield from _mistakes_in(course, assignment, shown, prefix)


def _is_of_the_engine(name: str, text: str) -> bool:
    """Whether a file of the kit is the engine's own, which is the same for every course and keeps no secret."""
    installer = name == f"{KIT}/{SCRIPT}"
    member = f"autograder/installation/{SCRIPT}" if installer else name.partition(":")[2]
    if not member.startswith("autograder/") or ".." in PurePosixPath(member).parts:
        return False
    file = ENGINE / member
    return file.is_file() and file.read_bytes().decode("utf-8", "replace") == text


def _mistakes_in(
    course: Course, assignment: Assignment, shown: dict[str, str], prefix: str
) -> Iterator[str]:
    """Yield readable hints, and names of mistakes beside the stub; elsewhere these can be everyday words.

    The guides, and the engine's README in its wheel, may quote a hint as an example.
    """
    quoting = (f"{PurePosixPath(GUIDE).parent}/", f"{KIT}/")
    shown = {
        n: text
        for n, text in shown.items()
        if not (n.startswith(quoting) and n.endswith((".md", "/METADATA")))
    }
    for mistake in load_mistakes(course, assignment):
        for name, text in shown.items():
            if mistake.hint in text or (name.startswith(prefix) and mistake.id in words_of(text)):
                yield f"{name} gives away the mistake `{mistake.id}` of {assignment.name}."


def _texts(files: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    for name, content in files.items():
        if not zipfile.is_zipfile(io.BytesIO(content)):
            yield name, content.decode("utf-8", "replace")
            continue
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield f"{name}:{member}", archive.read(member).decode("utf-8", "replace")


def release_files(
    course: Course, assignments: Iterable[Assignment], wheel: Path | None
) -> dict[str, bytes]:
    """Return the files of a release by name, without looking for leaks in them."""
    files: dict[str, bytes] = {}
    for assignment in assignments:
        names = [*released(course, assignment)]
        names += [hints_path(course, assignment)] if has_hints(course, assignment) else []
        files |= {course.label(file): file.read_bytes() for file in names}
    installers = _kit(wheel)
    files |= {f"{KIT}/{name}": content for name, content in installers.items()}
    needed = [f"./{KIT}/{name}" for name in installers if name != SCRIPT] + _packages(assignments)
    files[REQUIREMENTS] = "".join(f"{line}\n" for line in needed).encode()
    files |= _as_they_are(course)
    words = _words(course, list(assignments), files)
    files |= {name: filled(template, words).encode("utf-8") for name, template in PAGES.items()}
    container = {"course": json.dumps(course.title), "install": words["install"]}
    files[CONTAINER] = filled("devcontainer.json", container).encode("utf-8")
    return dict(sorted(files.items()))


def _guides(root: Path, name: str) -> dict[str, bytes]:
    """Return the guide for students, if the course has one, and the files beside it that it refers to."""
    guides: dict[str, bytes] = {}
    names = [name]
    while names:
        file = root / (name := names.pop())
        if name not in guides and file.is_file():
            guides[name] = file.read_bytes()
            links = (
                re.findall(r"\]\(([\w./-]+)", guides[name].decode("utf-8"))
                if file.suffix == ".md"
                else []
            )
            names += [
                (PurePosixPath(name).parent / link).as_posix() for link in links if ".." not in link
            ]
    return guides


def _kit(wheel: Path | None) -> dict[str, bytes]:
    try:
        return kit(wheel)
    except InfrastructureError as error:
        raise InfrastructureError(f"{error} Pass a wheel with --wheel.") from None


def _packages(assignments: Iterable[Assignment]) -> list[str]:
    """Return the packages of the modules that assignments preload, without those that the engine requires."""
    packages_of_modules = metadata.packages_distributions()
    roots = {
        module.partition(".")[0] for assignment in assignments for module in assignment.preload
    }
    names = itertools.chain.from_iterable(
        packages_of_modules.get(root, [root]) for root in roots - sys.stdlib_module_names
    )
    needed = set(map(plain_name, names))
    return sorted(
        needed - {requirement.name for requirement in requirements() if requirement.extra is None}
    )


def _words(course: Course, assignments: list[Assignment], files: Container[str]) -> dict[str, str]:
    constrained = f" -c {CONSTRAINTS}" if CONSTRAINTS in files else ""
    gaps = {
        a.name: dict.fromkeys(gap.function for gap in load_document(course, a).gaps)
        for a in assignments
    }
    return {
        "course": course.title,
        "python": for_students(),
        "install": f"python {KIT}/{SCRIPT} -r {REQUIREMENTS}{constrained}",
        "example": f"assignments/{assignments[0].name}" if assignments else "assignments",
        "catch": _line_about_programs(assignments, files),
        "table": "\n".join(_table(course, assignments)),
        "hours": f"{sum(a.minutes for a in assignments) / 60:.2g}",
        "guide": f"\n[{GUIDE}]({GUIDE}) explains all of this in detail.\n"
        if GUIDE in files
        else "",
        "gaps": "\n".join(
            f"| `assignments/{name}` | `{'`, `'.join(functions)}` |"
            for name, functions in gaps.items()
        ),
    }


def _line_about_programs(assignments: Iterable[Assignment], files: Container[str]) -> str:
    """Return the line about catching mistakes, for the first assignment that has some."""
    for assignment in assignments:
        folder = f"assignments/{assignment.name}"
        if f"{folder}/{CATCH_FILE}" in files:
            return (
                f"autograder catch {folder}  # once a part passes: tell wrong programs from yours\n"
            )
    return ""


def _table(course: Course, assignments: list[Assignment]) -> Iterator[str]:
    due = any(assignment.due for assignment in assignments)
    yield f"| folder | | minutes (estimated) | points |{f' due ({course.timezone}) |' if due else ''}"
    yield f"|---|---|---|---|{'---|' if due else ''}"
    for a in assignments:
        when = f" {a.due:%Y-%m-%d %H:%M}" if a.due else ""
        title = a.title.replace("|", "\\|")
        yield f"| `assignments/{a.name}` | {title} | {a.minutes} | {a.points:g} |{f'{when} |' if due else ''}"


def _check_room(output: Path) -> None:
    """Check that the output is an empty folder or an earlier release, which can be replaced."""
    if _is_archive(output):
        check_file(output, "`release`", _is_a_release)
    elif output.name.lower().endswith(OTHER_ARCHIVES):
        raise CourseError(
            f"{output} cannot be written: a release is a folder, or an archive that ends in .zip."
        )
    elif output.exists() and not output.is_dir():
        raise CourseError(
            f"{output} is a file; a release is a folder, or an archive that ends in .zip."
        )
    elif output.exists() and any(entry.name != ".git" for entry in output.iterdir()):
        raise CourseError(
            f"{output} already exists and is not empty; remove it or choose another folder."
        )


def _is_archive(output: Path) -> bool:
    return output.suffix.lower() == ".zip"


def _is_a_release(archive: Path) -> bool:
    """Whether an earlier release wrote this file: its requirements begin with the wheel in its kit."""
    try:
        with zipfile.ZipFile(archive) as opened:
            (top,) = {name.partition("/")[0] for name in opened.namelist()}
            return opened.read(f"{top}/{REQUIREMENTS}").startswith(f"./{KIT}/".encode())
    except (
        OSError,
        ValueError,
        KeyError,
        RuntimeError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
    ):
        return False
