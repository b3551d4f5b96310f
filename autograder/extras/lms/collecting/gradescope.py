"""Gradescope, "Export Submissions": folders `submission_123/`, and their students in `submission_metadata.yml`.

A group's submission is imported for each member. Scores and results in the file are ignored.
"""

from collections.abc import Mapping, Sequence
from datetime import timezone
from pathlib import Path
from typing import Any

import yaml

from autograder.extras.lms.collecting.collector import Collector
from autograder.extras.lms.collecting.times import read_moment
from autograder.extras.lms.identity import Described, Id, anything
from autograder.extras.lms.raw_submission import Findings, RawSubmission
from autograder.extras.lms.roster import Roster
from autograder.records import RefusedError
from autograder.source.gate import MEGABYTE
from autograder.submissions.below import files_below
from autograder.submissions.files import Entry, File, Odd
from autograder.text.names import shown
from autograder.text.yaml_loader import LOADER, check_shape

FILE_NAME = "submission_metadata.yml"
FOLDER = "submission_"
METADATA_BYTES = 64 * MEGABYTE  # with the results of a large class


class _Tolerant(LOADER):  # type: ignore[misc]
    """Reads what has a tag of Ruby's as the text, list or block that it is: no object is made."""


def _without_tag(loader: Any, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


_Tolerant.add_constructor(None, _without_tag)


class GradescopeCollector(Collector):
    """Gradescope: folders and their metadata."""

    def fits(self, entries: Sequence[Entry]) -> bool:
        """Whether these entries look like an export from Gradescope."""
        return any(entry.name == FILE_NAME for entry in entries)

    def read(self, entries: Sequence[Entry], source: Path, roster: Roster) -> Findings:
        """Return the submissions; raises RefusedError if the metadata file is unreadable."""
        metadata = _metadata(entries, source)
        folders = {entry.name: entry for entry in entries if entry.name != FILE_NAME}
        findings = Findings()
        for key, facts in metadata.items():
            folder = folders.pop(str(key), None)
            if folder is None or isinstance(folder, File | Odd) or not isinstance(facts, Mapping):
                findings.odd.append(
                    f"{FILE_NAME} lists {shown(str(key))}, but there is no such folder."
                )
                continue
            files = tuple(files_below(folder, findings.odd))
            findings.handed += [
                _handed(person, str(key), facts, files) for person in _people(facts)
            ]
        for name, entry in folders.items():
            if isinstance(entry, File | Odd) or not name.startswith(FOLDER):
                findings.odd.append(f"{shown(name)} is not a submission.")
            else:
                files = tuple(files_below(entry, findings.odd))
                findings.handed.append(RawSubmission(name, files, anything(name), where=name))
                findings.notes.append(
                    f"{FILE_NAME} names no student for {shown(name)}; the folder's name is used."
                )
        return findings


def _handed(
    person: Mapping[str, Any], key: str, facts: Mapping[str, Any], files: tuple[File, ...]
) -> RawSubmission:
    name = _text(person.get(":name"))
    keys = list(filter(None, (_text(person.get(":sid")), _text(person.get(":email")))))
    history = facts.get(":history")
    return RawSubmission(
        key=keys[0] if keys else key,
        files=files,
        described=Described(tuple(map(Id, keys or [key])), (name,)),
        name=name,
        submitted_at=_moment(facts.get(":created_at")),
        attempt=len(history) + 1 if isinstance(history, list) else None,
        where=name or key,
    )


def _people(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    people = facts.get(":submitters")
    everybody = people if isinstance(people, list) else []
    return [person for person in everybody if isinstance(person, Mapping)] or [{}]


def _metadata(entries: Sequence[Entry], source: Path) -> dict[Any, Any]:
    entry = next(entry for entry in entries if entry.name == FILE_NAME)
    if not isinstance(entry, File):
        raise RefusedError(f"{FILE_NAME} is not a file.")
    data = entry.read(METADATA_BYTES)
    try:
        text = data.decode("utf-8-sig")
        check_shape(text)
        metadata = yaml.load(text, _Tolerant)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RefusedError(
            f"{FILE_NAME} in {source} cannot be read: {' '.join(str(error).split())[:200]}."
        ) from None
    if not isinstance(metadata, dict):
        raise RefusedError(f"{FILE_NAME} in {source} holds no submissions.")
    return metadata


def _moment(value: object) -> str | None:
    """Return a time that YAML parses as a datetime, naive (then in UTC) or not, or as a string, as ISO-8601."""
    if isinstance(value, Mapping):  # Ruby's time with a zone
        value = value.get("utc")
    try:
        moment = read_moment(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).isoformat(
        timespec="seconds"
    )


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()
