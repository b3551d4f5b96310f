"""Audit a course: stubs score 0 %, right answers 100 %, every known mistake is caught and named.

Every answer is submitted as a student's would be: to the sandbox, through the grader. Mutants (automatic small changes
of the solution) and right answers with further seeds run in the grader's own process, as they are trusted and many.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from autograder.authoring.mutants import load_equivalent_mutants, mutants
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.mistakes import load_alternatives, load_mistakes
from autograder.grading.pool import Plan, graders, this_grader
from autograder.grading.suite_run import SolutionFailsError
from autograder.records import Grade, SourceFile, Submission

Kind = Literal["stub", "solution", "mistake", "alternative", "mutant"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MUTANT_SECONDS = 5.0
SECONDS_HERE = 30.0
MUTANT_SEEDS = 3


@dataclass(frozen=True)
class Case:
    """One answer to try: as a submission with some `seeds`, and `here`, in the grader's process, with others."""

    kind: Kind
    assignment: str
    name: str
    source: str
    seeds: tuple[int, ...] = ()
    here: tuple[int, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class AuditFinding:
    """The result of one case: whether it was as expected, whether a mistake was named, and the problems."""

    case: Case
    good: bool
    named: bool = False
    detail: str = ""


@dataclass
class Audit:
    """All results of one assignment."""

    assignment: str
    findings: list[AuditFinding] = field(default_factory=list)
    equivalents: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def of(self, kind: Kind) -> list[AuditFinding]:
        return [finding for finding in self.findings if finding.case.kind == kind]

    def shares(self) -> list[tuple[str, bool]]:
        """Return each column of the table as (text, whether it is as required)."""
        return [
            *(_share(self.of(kind), lambda f: f.good) for kind in ("stub", "solution", "mistake")),
            _share(self.of("mistake"), lambda f: f.named),
            _share(self.of("alternative"), lambda f: f.good),
            self._mutant_share(),
        ]

    def conclude(self) -> None:
        """Convert violations to messages."""
        for finding in self.findings:
            case = finding.case
            if case.kind == "mutant":
                if not finding.good and case.name not in self.equivalents:
                    self.problems.append(f"mutant {case.name} survives: {finding.detail}")
            elif not finding.good:
                self.problems.append(f"{case.kind} {case.name}: {finding.detail}")
            elif case.kind == "mistake" and not finding.named:
                self.problems.append(f"mistake {case.name} is caught, but not named: {finding.detail}")
        killed = {f.case.name for f in self.of("mutant") if f.good}
        self.problems.extend(
            f"mutant {name} is listed as equivalent, but a test kills it."
            for name in self.equivalents
            if name in killed
        )

    def as_record(self) -> dict[str, Any]:
        """Return the audit as a JSON-serializable dict."""
        columns = ("stub", "solution", "mistakes_caught", "mistakes_named", "alternatives", "mutants_killed")
        shares = {column: text for column, (text, _) in zip(columns, self.shares())}
        survivors = [f.case.name for f in self.of("mutant") if not f.good]
        equivalent = {name: self.equivalents[name] for name in survivors if name in self.equivalents}
        return {
            "assignment": self.assignment,
            **shares,
            "survivors": survivors,
            "equivalent": equivalent,
            "problems": self.problems,
        }

    def _mutant_share(self) -> tuple[str, bool]:
        tried = self.of("mutant")
        survivors = [f for f in tried if not f.good]
        recorded = [f for f in survivors if f.case.name in self.equivalents]
        text = f"{len(tried) - len(survivors)}/{len(tried)}"
        return (f"{text} + {len(recorded)}" if recorded else text), len(recorded) == len(survivors)


def is_an_audit(file: Path) -> bool:
    """Whether this file contains the records of an earlier audit."""
    try:
        return all(
            entry["assignment"] and "mistakes_named" in entry for entry in json.loads(file.read_bytes())
        )
    except (ValueError, TypeError, KeyError):
        return False


@dataclass(frozen=True)
class Seeds:
    """The seeds that right answers must pass, and those with which known mistakes must fail."""

    right: tuple[int, ...]
    wrong: tuple[int, ...]

    @classmethod
    def drawn(cls, run_seed: int, right: int, wrong: int) -> Seeds:
        """Derive the given numbers of seeds from the run's seed."""
        chosen = random.Random(run_seed)
        drawn = tuple(chosen.randrange(2**31) for _ in range(max(right, wrong)))
        return cls(drawn[:right], drawn[:wrong])


def audit_course(
    plan: Plan, seeds: Seeds, kinds: Sequence[str], tell: Callable[[int, int], None]
) -> list[Audit]:
    """Try the answers of these kinds for the plan's assignments; `tell(done, total)` reports progress.

    The seeds determine every random input: equal seeds give equal findings.
    Raises CourseError for a course that cannot be graded at all, InfrastructureError if the machine fails.
    """
    assignments = plan.course.select(plan.names)
    cases = [case for a in assignments for kind in kinds for case in _CASES[kind](plan.course, a, seeds)]
    audits = {a.name: Audit(a.name, equivalents=_equivalents(plan.course, a, kinds)) for a in assignments}
    found: dict[Case, AuditFinding] = {}
    for finding in _try_all(plan, cases):
        found[finding.case] = finding
        tell(len(found), len(cases))
    for case in cases:
        audits[case.assignment].findings.append(found[case])
    for audit in audits.values():
        audit.conclude()
    return list(audits.values())


def _stubs(course: Course, assignment: Assignment, seeds: Seeds) -> Iterable[Case]:
    stub = course.stub_file(assignment)
    if not stub.is_file():
        raise CourseError(f"There is no {stub.relative_to(course.root)}. Run `autograder build` first.")
    yield Case("stub", assignment.name, stub.name, stub.read_text("utf-8"), seeds.right[:1])


def _solutions(course: Course, assignment: Assignment, seeds: Seeds) -> Iterable[Case]:
    solution = course.solution_file(assignment).read_text("utf-8")
    first, *others = seeds.right
    yield Case("solution", assignment.name, f"with seed {first}", solution, (first,))
    for seed in others:
        yield Case("solution", assignment.name, f"with seed {seed}", solution, here=(seed,))


def _alternatives(course: Course, assignment: Assignment, seeds: Seeds) -> Iterable[Case]:
    for label, text in load_alternatives(course, assignment):
        yield Case("alternative", assignment.name, label, text, seeds.right[:1], seeds.right[1:])


def _mistakes(course: Course, assignment: Assignment, seeds: Seeds) -> Iterable[Case]:
    for mistake in load_mistakes(course, assignment):
        yield Case("mistake", assignment.name, mistake.id, mistake.source, seeds.wrong, hint=mistake.hint)


def _mutants(course: Course, assignment: Assignment, seeds: Seeds) -> Iterable[Case]:
    for mutant in mutants(course.solution_file(assignment).read_text("utf-8")):
        here = seeds.right[:MUTANT_SEEDS]
        yield Case("mutant", assignment.name, mutant.id, mutant.source, here=here, hint=mutant.description)


_CASES: dict[str, Callable[[Course, Assignment, Seeds], Iterable[Case]]] = {
    "stub": _stubs,
    "solution": _solutions,
    "mistake": _mistakes,
    "alternative": _alternatives,
    "mutant": _mutants,
}


def _equivalents(course: Course, assignment: Assignment, kinds: Sequence[str]) -> dict[str, str]:
    if "mutant" not in kinds:
        return {}
    return load_equivalent_mutants(course, assignment)


def _try_all(plan: Plan, cases: list[Case]) -> Iterable[AuditFinding]:
    """Yield findings as several graders complete them."""
    with graders(plan) as pool:
        running = {pool.submit(try_case, case) for case in cases}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


# ---------------------------------------------------------------------- inside a grader's process


def try_case(case: Case) -> AuditFinding:
    """Try one answer. Runs in a grader's process."""
    if case.kind == "mutant":
        return _try_mutant(case)
    findings = [_graded(case, seed) for seed in case.seeds]
    if not all(finding.good for finding in findings):
        return _first([finding for finding in findings if not finding.good], len(findings))
    for seed in case.here:
        failed = this_grader().first_failure(case.assignment, case.source, seed, SECONDS_HERE)
        if failed:
            return AuditFinding(case, False, detail=f"seed {seed}, in this process: {failed}")
    unnamed = [finding for finding in findings if not finding.named]
    return _first(unnamed or findings, len(findings)) if findings else AuditFinding(case, True)


def _first(alike: list[AuditFinding], tried: int) -> AuditFinding:
    first = alike[0]
    return (
        first if tried == 1 else replace(first, detail=f"{first.detail} So in {len(alike)} of {tried} draws.")
    )


def _graded(case: Case, seed: int) -> AuditFinding:
    try:
        return _judge(case, _grade(case, seed))
    except (CourseError, SolutionFailsError) as problem:
        return AuditFinding(case, False, detail=f"seed {seed}: {problem}")


def _grade(case: Case, seed: int) -> Grade:
    grader = this_grader()
    grader.reseed(seed)
    stem = grader.assignments[case.assignment].stem
    file = SourceFile(f"{stem}.py", case.source)
    return grader.grade(Submission("audit", case.assignment, (file,)))


def _judge(case: Case, grade: Grade) -> AuditFinding:
    missed = [test for test in grade.tests if test.outcome != "passed"]
    failed = [test for test in missed if test.outcome != "skipped"]
    seen = "; ".join(f"{test.name} {test.outcome} ({test.message})" for test in failed[:3])
    told = f"seed {grade.seed}: {grade.score:g} of {grade.max_score:g} points. {grade.problem or seen}"
    if case.kind == "stub":
        return AuditFinding(case, grade.score == 0 and grade.problem is None, detail=told)
    if case.kind != "mistake":
        return AuditFinding(case, grade.score == grade.max_score, detail=told)
    named = any(test.mistake == case.name or (test.hint and test.hint == case.hint) for test in failed)
    others = sorted({test.mistake for test in failed if test.mistake})
    detail = f"{told} Named: {', '.join(others) or 'nothing'}."
    return AuditFinding(case, grade.score < grade.max_score, named=named, detail=detail)


def _try_mutant(case: Case) -> AuditFinding:
    grader = this_grader()
    for seed in case.here:
        if grader.first_failure(case.assignment, case.source, seed, MUTANT_SECONDS):
            return AuditFinding(case, True)
    return AuditFinding(case, False, detail=case.hint)


def _share(findings: list[AuditFinding], good: Callable[[AuditFinding], bool]) -> tuple[str, bool]:
    count = sum(map(good, findings))
    return f"{count}/{len(findings)}", count == len(findings)
