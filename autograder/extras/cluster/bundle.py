"""The files of a course in one archive for graders on other machines, with the versions that must be the same there."""

import hashlib
import io
import platform
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import autograder
from autograder.course.config import Course
from autograder.course.digests import suite_digests
from autograder.course.reading import FILE_NAME, load_course
from autograder.records import InfrastructureError
from autograder.runs.pool import Plan
from autograder.text.files import add_files, zipped
from autograder.text.wording import listed

SAME_PACKAGES = ("torch", "numpy")
NOT_NEEDED = {"__pycache__", "alternatives"}


@dataclass(frozen=True)
class Bundle:
    """The course of a plan as an archive with its digest; `versions` and `suites` are those of the coordinator."""

    archive: bytes
    digest: str
    versions: Mapping[str, str]
    suites: Mapping[str, str]  # suite digests by assignment
    # the run's seed, the sandbox's tier, the assignments
    plan: tuple[int, str, tuple[str, ...] | None]

    @classmethod
    def of(cls, plan: Plan) -> "Bundle":
        files = course_files(plan.course, plan.names)
        archive = b"".join(zipped((plan.course.label(file), file.read_bytes()) for file in files))
        digest = hashlib.sha256(archive).hexdigest()
        suites = suite_digests(plan.course, plan.names)
        return cls(archive, digest, versions(), suites, (plan.run_seed, plan.tier, plan.names))

    def unpack(self, folder: Path) -> Plan:
        """Write the course into an empty private folder; raises InfrastructureError if grades could differ here."""
        if hashlib.sha256(self.archive).hexdigest() != self.digest:
            raise InfrastructureError("The course arrived damaged. Run the command again.")
        here = versions()
        others = [
            f"{name} {here[name]} instead of {wanted}"
            for name, wanted in self.versions.items()
            if here[name] != wanted
        ]
        if others:
            raise InfrastructureError(
                f"It has {listed(others)}. Install the same versions as on this machine."
            )
        with zipfile.ZipFile(io.BytesIO(self.archive)) as archive:
            archive.extractall(folder)
        run_seed, tier, names = self.plan
        plan = Plan(load_course(folder / FILE_NAME), run_seed, tier, 1, names)
        if suite_digests(plan.course, names) != self.suites:
            raise InfrastructureError(
                "It reads the suites of the course differently. Install the same packages there."
            )
        return plan


def versions() -> dict[str, str]:
    """Return the versions on which a score may depend; that of the engine includes a digest of its files."""
    engine = hashlib.sha256()
    # tables and programs in data files count, too
    add_files(engine, Path(autograder.__file__).parent)
    packages = {name: metadata.version(name) for name in SAME_PACKAGES}
    python = ".".join(platform.python_version_tuple()[:2])
    return {
        "Python": python,
        **packages,
        "autograder": f"{autograder.__version__} ({engine.hexdigest()[:8]})",
    }


def course_files(course: Course, names: Sequence[str] | None) -> Iterator[Path]:
    """Yield the files of the course that graders of these assignments read; None stands for all assignments."""
    yield course.root / FILE_NAME
    for assignment in course.select(names):
        for folder in (course.solution_folder(assignment), course.suite_folder(assignment)):
            inside = (
                f
                for f in sorted(folder.rglob("*"))
                if NOT_NEEDED.isdisjoint(f.relative_to(folder).parts)
            )
            yield from filter(Path.is_file, inside)
        stub = course.stub_file(assignment)
        if stub.is_file():
            yield stub
