"""Names mistakes: what a student's code answered in the failing tests is compared with every known mistake's answers.

A mistake is the solution with an edit. It takes the same tests with the same seeds in this process, through the
same frames as a student's code, so both leave transcripts. In one run all students meet the same inputs, so a
mistake takes each test once. Where a whole transcript is the same, the mistake is named; where none is, nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.authoring.mistakes import Mistake
from autograder.scene import RemoteScene, Use
from autograder.session import SuiteSession, Test
from autograder.student.connection import LoopbackConnection
from autograder.student.remote import RemoteStudent
from autograder.student.transcript import Transcript

SECONDS = 10.0


@dataclass
class _Attempt:
    """What one mistake did in one test."""

    failed: bool
    transcript: Transcript


class Diagnosis:
    """The known mistakes of one assignment, taking tests as they are asked for."""

    def __init__(
        self, session: SuiteSession, mistakes: Sequence[Mistake], reference: Any, filename: str, run_seed: int
    ) -> None:
        self._session, self._mistakes, self._reference = session, mistakes, reference
        self._filename, self._run_seed = filename, run_seed
        self._scenes: dict[str, RemoteScene] = {}
        self._attempts: dict[tuple[str, str], _Attempt] = {}

    def name(self, failures: Mapping[Test, Transcript]) -> dict[str, Mistake]:
        """The mistake behind each failing test, by the test's name; tests that no mistake explains are left out.

        One mistake that explains several failures is preferred to several that explain one each.
        """
        fitting = self._all_fitting(failures)
        frequency = {m.id: sum(m in found for found in fitting.values()) for m in self._mistakes}
        order = {mistake.id: position for position, mistake in enumerate(self._mistakes)}
        return {
            name: min(found, key=lambda m: (-frequency[m.id], order[m.id]))
            for name, found in fitting.items()
            if found
        }

    def _all_fitting(self, failures: Mapping[Test, Transcript]) -> dict[str, list[Mistake]]:
        """The mistakes that fit each failure. Those that fitted an earlier one are asked first, the others only
        when none of them fits: most students make one mistake, and every attempt takes its time."""
        suspects: list[Mistake] = []
        fitting: dict[str, list[Mistake]] = {}
        for test, transcript in failures.items():
            found = self._fitting(suspects, test, transcript)
            if not found:
                others = [mistake for mistake in self._mistakes if mistake not in suspects]
                found = self._fitting(others, test, transcript)
                suspects.extend(found)
            fitting[test.name] = found
        return fitting

    def _fitting(self, mistakes: Sequence[Mistake], test: Test, transcript: Transcript) -> list[Mistake]:
        if not transcript.answers:
            return []  # nothing was asked, so nothing can be recognised
        attempts = [(mistake, self._attempt(mistake, test)) for mistake in mistakes]
        return [m for m, attempt in attempts if attempt.failed and attempt.transcript.same_as(transcript)]

    def _attempt(self, mistake: Mistake, test: Test) -> _Attempt:
        key = mistake.id, test.name
        if key not in self._attempts:
            self._attempts[key] = self._take(mistake, test)
        return self._attempts[key]

    def _take(self, mistake: Mistake, test: Test) -> _Attempt:
        scene = self._scene(mistake)
        self._session.start(self._run_seed)
        error = self._session.run(test, scene, SECONDS)
        return _Attempt(error is not None, scene.connection.transcript)

    def _scene(self, mistake: Mistake) -> RemoteScene:
        if mistake.id not in self._scenes:
            connection = LoopbackConnection(f"mistake_{mistake.id}")
            connection.request("load", text=mistake.source, filename=self._filename)
            uses: list[Use] = []
            self._scenes[mistake.id] = RemoteScene(
                connection, RemoteStudent(connection), self._reference, uses
            )
        return self._scenes[mistake.id]
