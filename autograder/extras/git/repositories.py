"""Which repository is whose: a table, or an address with `{student}` and a roster."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from autograder.course.config import Course
from autograder.extras.git.command import without_password
from autograder.extras.git.environment import PROTOCOLS
from autograder.extras.lms.roster import Person, Roster
from autograder.extras.lms.sheet import Sheet, read_sheet
from autograder.records import RefusedError
from autograder.text.names import shown

# titles of the columns by meaning, also those of GitHub Classroom's table of grades
COLUMNS = {
    "student": ("student", "roster_identifier", "student id", "id", "login", "github_username"),
    "url": ("url", "repository", "clone_url", "student_repository_url"),
    "assignment": ("assignment",),
    "branch": ("branch", "tag"),
    "path": ("path", "folder"),
}
PLACEHOLDER = "{student}"
ACCOUNT = "{github}"
ADDRESS_LENGTH = 200  # in messages
_SITE = "github"
# every reader takes these apart alike: there is no second @, and no escape in a name that ssh gets
_HOST = r"(?P<host>[\w.][\w.-]*(?::\d+)?)"
_HTTPS = re.compile(rf"https://(?:[\w.+~%:-]+@)?{_HOST}/\S+", re.ASCII)
_SSH = re.compile(rf"ssh://(?:[\w.+]+@)?{_HOST}/\S+", re.ASCII)
_SHORT_SSH = re.compile(r"[\w.+]+@(?P<host>[\w.][\w.-]*):(?![-/])\S+", re.ASCII)
_ON_THIS_MACHINE = re.compile(r"file:///\S+", re.ASCII)
_REMOTE = {"https": (_HTTPS, ":443"), "ssh": (_SSH, ":22")}
_BRANCH = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|\.lock(?:/|$)|/\.|@\{))[\w./+@-]+(?<![/.])")


@dataclass(frozen=True)
class Repository:
    """A student's repository for one assignment, or for all if `assignment` is empty.

    `student` is empty if the table does not say whose it is: such a repository is named and left out.
    `branch` is a branch or a tag, empty for the one that the repository shows first; `path` is a
    folder in it.
    """

    student: str
    url: str
    assignment: str = ""
    branch: str = ""
    path: str = ""

    @property
    def nobodys(self) -> str:
        """The sentence about a repository without a student."""
        return f"the address {self.shown_url} belongs to no student, so it is left out."

    @property
    def shown_url(self) -> str:
        """The address for messages, without a password."""
        address = without_password(self.url)
        return (
            address if address.isprintable() and len(address) <= ADDRESS_LENGTH else shown(address)
        )


def read_repositories(
    source: str, course: Course, roster: Roster, assignment: str = "", branch: str = ""
) -> list[Repository]:
    """Return the repositories of a table or of an address with a placeholder.

    `assignment` and `branch` are for all that do not name their own. Raises RefusedError for a
    table that cannot be read, and for addresses and names that git could take for something else.
    """
    if PLACEHOLDER in source or ACCOUNT in source:
        named = _of_pattern(source, roster)
    elif "://" in source or _SHORT_SSH.fullmatch(source):
        raise RefusedError(
            f"The address {shown(source)} has no {PLACEHOLDER} where each student's name belongs."
        )
    else:
        named = _of_table(read_sheet(Path(source)), course)
    whole = [
        Repository(
            repository.student,
            repository.url,
            repository.assignment or assignment,
            repository.branch or branch,
            repository.path,
        )
        for repository in named
    ]
    if not whole:
        raise RefusedError(f"{shown(source)} names no repository.")
    _check(whole)
    if not any(repository.student for repository in whole):
        raise RefusedError(f"{shown(source)}: {whole[0].nobodys}")
    return whole


def check_branch(branch: str) -> str:
    """Return the name of a branch; raises RefusedError if it cannot be one."""
    if not _BRANCH.fullmatch(branch):
        raise RefusedError(f"{shown(branch)} is not the name of a branch or a tag.")
    return branch


def digest_of(url: str) -> str:
    """Return a name for the files about a repository, which does not tell its address."""
    return hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def by_url(repositories: Iterable[Repository]) -> list[list[Repository]]:
    """Return the repositories with the same address together, in the order of the first ones."""
    groups: dict[str, list[Repository]] = {}
    for repository in repositories:
        groups.setdefault(repository.url, []).append(repository)
    return list(groups.values())


def _of_pattern(pattern: str, roster: Roster) -> list[Repository]:
    if not roster.people:
        raise RefusedError(
            f"{pattern} needs the students: say --roster, or put roster.csv beside course.yml."
        )
    repositories = []
    for person in roster.people:
        account = _account(person)
        if ACCOUNT in pattern and not account:
            raise RefusedError(
                f"The roster has no {_SITE} account of {shown(person.name or person.id)}."
            )
        words = {PLACEHOLDER: person.id, ACCOUNT: account}
        repositories.append(Repository(person.id, _filled(pattern, words)))
    return repositories


def _filled(pattern: str, words: Mapping[str, str]) -> str:
    for placeholder, word in words.items():
        pattern = pattern.replace(placeholder, quote(word, safe="@+"))
    return pattern


def _account(person: Person) -> str:
    return next(
        (identifier.text for identifier in person.described.ids if identifier.site == _SITE), ""
    )


def _of_table(sheet: Sheet, course: Course) -> list[Repository]:
    missing = [meaning for meaning in ("student", "url") if sheet.column(*COLUMNS[meaning]) is None]
    if missing:
        raise RefusedError(
            f"{sheet.name} has no column `{missing[0]}`; `student` and `url` are needed."
        )
    repositories = []
    for row in range(len(sheet.rows)):
        cells = {meaning: sheet.first_filled(row, *names) for meaning, names in COLUMNS.items()}
        if not cells["url"]:
            continue  # a student who has not joined yet
        if cells["assignment"]:
            cells["assignment"] = course.assignment(cells["assignment"]).name
        repositories.append(Repository(**cells))
    return repositories


def _check(repositories: Sequence[Repository]) -> None:
    taken: dict[tuple[str, str], Repository] = {}
    for repository in repositories:
        whose = shown(repository.student)
        if repository.student.startswith("-"):
            raise RefusedError(
                f"The name {whose} begins with a hyphen, and git could take it for an option."
            )
        if not _place(repository.url):
            raise RefusedError(
                f"{whose}: {repository.shown_url} is not the address of a repository. It begins with "
                f"{', '.join(f'{name}://' for name in PROTOCOLS)} or is like git@forge.example:course/ada.git."
            )
        if repository.branch:
            check_branch(repository.branch)
        if repository.path.startswith(("-", "/")) or ".." in repository.path.split("/"):
            raise RefusedError(
                f"{whose}: {shown(repository.path)} is not a folder inside the repository."
            )
        if repository.student and (repository.student, repository.assignment) in taken:
            what = f" for {repository.assignment}" if repository.assignment else ""
            raise RefusedError(f"{whose} has two repositories{what}; one of them must count.")
        taken[repository.student, repository.assignment] = repository
    _check_places(repositories)


def _check_places(repositories: Sequence[Repository]) -> None:
    """Refuse addresses at several places: your token or key for one would meet what somebody else named there."""
    students: dict[str, list[str]] = {}
    for repository in repositories:
        students.setdefault(_place(repository.url), []).append(shown(repository.student))
    if len(students) > 1:
        places = [_whose(place, names) for place, names in students.items()]
        raise RefusedError(
            f"The addresses lead to several places: {'; '.join(places)}. Your token or key for one of them could "
            "be used for an address that somebody else chose. Correct the addresses, or name each place in a "
            "table of its own."
        )


def _whose(place: str, students: Sequence[str]) -> str:
    more = f" and {len(students) - 1} more" if len(students) > 1 else ""
    return f"{shown(place)} ({students[0]}{more})"


def _place(url: str) -> str:
    """Return the protocol and the host of an address, for which the same token or key counts; else an empty text."""
    if _ON_THIS_MACHINE.fullmatch(url):
        return "this machine"
    protocol = url.partition("://")[0] if "://" in url else "ssh"
    pattern, usual_port = _REMOTE.get(protocol, (_HTTPS, ""))
    address = pattern.fullmatch(url) if "://" in url else _SHORT_SSH.fullmatch(url)
    if not address:
        return ""
    host = address["host"].removesuffix(usual_port).casefold().rstrip(".")
    return f"{protocol}://{host}"
