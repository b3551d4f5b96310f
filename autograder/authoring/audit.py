"""Audit a course: stubs score 0 %, right answers 100 %, trivial ones little; known mistakes are caught and named.

Every answer is submitted as a student's would be: to the sandbox, through the grader. Mutants
(automatic small changes of the solution) and right answers with further seeds run in the grader's
own process, as they are trusted and many.
"""

import itertools
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from autograder.authoring import catch, fixed_inputs, trivial
from autograder.authoring.carried_over import CarriedOver, carried_over
from autograder.authoring.fixed_inputs import SentInputs
from autograder.authoring.given_functions import called_by_accident
from autograder.authoring.mutants import load_equivalent_mutants, mutants
from autograder.authoring.names_at_home import name_at_home
from autograder.authoring.promises import broken_promises, promises
from autograder.authoring.proportion import Cost, out_of_proportion
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.document import load_document
from autograder.course.mistakes import Mistake, Weight
from autograder.course.mistakes_file import (
    load_alternatives,
    load_mistakes,
    mistakes_by_id,
    parts_of_mistakes,
)
from autograder.feedback.painter import problems_of_solution as pictures_of_solution
from autograder.grading.suite_run import SolutionFailsError
from autograder.installation.extensions import extensions, load_extension
from autograder.records import Grade, SourceFile, Submission
from autograder.runs.pool import GraderPool, Plan, graders, this_grader
from autograder.text.files import write_whole
from autograder.text.wording import joined

Kind = Literal["stub", "trivial", "solution", "mistake", "alternative", "mutant"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PROOFS = "autograder.proofs"  # the entry points of functions (assignment, seeds) -> Proof, which run in a grader
MUTANT_SECONDS = 5.0
SECONDS_HERE = 30.0
MUTANT_SEEDS = 3
PROOF_SEEDS = 3
REFUSES = (
    "It raises the solution's exceptions; if they are the lesson, course.yml can have a "
    "`share_for_refusals` for this assignment."
)
MOST_NAMES = 6  # of answers with one problem
_SEED = re.compile(r"^seed \d+: ")


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
    weight: Weight | None = None
    exception: str = ""
    part: str = ""


@dataclass(frozen=True)
class AuditFinding:
    """The result of one case: whether it was as expected, whether a mistake was named, and the problems.

    `score`, `max_score` and `missed`, the tests that did not pass, are of one grading, and so is what
    a mistake `cost`. `wrong_name` is a sentence about the name
    that `check` gives it, if it is another's.
    """

    case: Case
    good: bool
    named: bool = False
    detail: str = ""
    score: float = 0.0
    max_score: float = 0.0
    cost: Cost | None = None
    missed: tuple[str, ...] = ()
    wrong_name: str = ""

    @property
    def loss(self) -> float:
        return self.max_score - self.score


class Proof(Protocol):
    """What an extension found out about an assignment; `problems` are sentences."""

    @property
    def problems(self) -> tuple[str, ...]: ...

    def as_record(self) -> Mapping[str, Any]: ...


@dataclass
class Audit:
    """All results of one assignment."""

    assignment: str
    findings: list[AuditFinding] = field(default_factory=list)
    equivalents: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    unpromised: int = 0
    sent: list[SentInputs] = field(default_factory=list)
    proofs: dict[str, Proof] = field(default_factory=dict)
    carried: CarriedOver = CarriedOver()

    def of(self, kind: Kind) -> list[AuditFinding]:
        return [finding for finding in self.findings if finding.case.kind == kind]

    def shares(self) -> list[tuple[str, bool]]:
        """Return each column of the table as (text, whether it is as required)."""
        return [
            _share(f.good for f in self.of("stub")),
            self._trivial_share(),
            _share(f.good for f in self.of("solution")),
            _share(f.good for f in self.of("mistake")),
            _share(f.named for f in self.of("mistake")),
            _share(f.good for f in self.of("alternative")),
            self._mutant_share(),
        ]

    def conclude(self) -> None:
        """Convert violations to messages."""
        self.problems += [inputs.problem for inputs in self.sent if inputs.problem]
        for proof in self.proofs.values():
            self.problems += proof.problems
        self.problems += _by_cause(f for f in self.findings if not f.good)
        for finding in self.findings:
            case = finding.case
            if not finding.good:
                if case.kind == "mutant" and case.name not in self.equivalents:
                    self.problems.append(f"mutant {case.name} survives: {finding.detail}")
            elif case.kind == "mistake" and not finding.named:
                self.problems.append(
                    f"mistake {case.name} is caught, but not named: {finding.detail}"
                )
            elif case.kind == "mistake":
                self.problems.extend(_out_of_proportion(finding))
            if finding.wrong_name:
                self.problems.append(finding.wrong_name)
        killed = {f.case.name for f in self.of("mutant") if f.good}
        listed = (name for name in self.equivalents if name in killed)
        self.problems += [
            f"mutant {name} is listed as equivalent, but a test kills it." for name in listed
        ]

    def as_record(self) -> dict[str, Any]:
        """Return the audit as a JSON-serializable dict."""
        columns = (
            "stub",
            "trivial",
            "solution",
            "mistakes_caught",
            "mistakes_named",
            "alternatives",
            "mutants_killed",
        )
        shares = {column: text for column, (text, _) in zip(columns, self.shares())}
        survivors = [f.case.name for f in self.of("mutant") if not f.good]
        return {
            "assignment": self.assignment,
            **shares,
            "survivors": survivors,
            "equivalent": {
                name: self.equivalents[name] for name in survivors if name in self.equivalents
            },
            "trivial_answers": {f.case.name: round(f.score, 2) for f in self.of("trivial")},
            "losses": [[f.case.name, round(f.loss, 2), f.case.weight] for f in self.losses()],
            "unpromised": self.unpromised,
            **{name: proof.as_record() for name, proof in self.proofs.items()},
            "in_alternatives": self.carried.sentence,
            "wrong_names_in_alternatives": self.carried.wrong_names,
            "fixed_inputs": {inputs.test: inputs.reason for inputs in self.sent if inputs.fixed},
            "problems": self.problems,
        }

    def losses(self) -> list[AuditFinding]:
        """Return the findings about mistakes, the most expensive mistake first."""
        return sorted(self.of("mistake"), key=lambda finding: -finding.loss)

    def _trivial_share(self) -> tuple[str, bool]:
        tried = self.of("trivial")
        worst = max((f.score / f.max_score for f in tried if f.max_score), default=0.0)
        return (f"{worst:.0%}" if tried else "0/0"), all(f.good for f in tried)

    def _mutant_share(self) -> tuple[str, bool]:
        tried = self.of("mutant")
        survivors = [f for f in tried if not f.good]
        recorded = [f for f in survivors if f.case.name in self.equivalents]
        text = f"{len(tried) - len(survivors)}/{len(tried)}"
        return (f"{text} + {len(recorded)}" if recorded else text), len(recorded) == len(survivors)


def _by_cause(failing: Iterable[AuditFinding]) -> Iterator[str]:
    """Yield a sentence for each cause of failures, mutants left out: the answers, and what all of them say."""
    causes: dict[str, list[AuditFinding]] = {}
    for finding in failing:
        if finding.case.kind != "mutant":
            causes.setdefault(_SEED.sub("", finding.detail), []).append(finding)
    for findings in causes.values():
        names = [f"{finding.case.kind} {finding.case.name}" for finding in findings]
        yield f"{joined(names, MOST_NAMES)}: {findings[0].detail}"


def is_an_audit(file: Path) -> bool:
    """Whether this file contains the records of an earlier audit."""
    try:
        return all(
            entry["assignment"] and "mistakes_named" in entry
            for entry in json.loads(file.read_bytes())
        )
    except (ValueError, TypeError, KeyError):
        return False


def audit_course(
    plan: Plan, right: int, wrong: int, kinds: Sequence[str], tell: Callable[[int, int], None]
) -> list[Audit]:
    """Try the answers of these kinds for the plan's assignments; `tell(done, total)` reports progress.

    Right answers must pass with the first `right` seeds, and known mistakes fail with the first
    `wrong` ones, of those that the plan's seed determines. They determine every random input: equal
    seeds give equal findings. Raises CourseError for a course that cannot be graded at all,
    InfrastructureError if the machine fails.
    """
    assignments = plan.course.select(plan.names)
    chosen = random.Random(plan.run_seed)
    drawn = tuple(chosen.randrange(2**31) for _ in range(max(right, wrong)))
    cases = list[Case]()
    for assignment, kind in itertools.product(assignments, kinds):
        cases += _cases(plan.course, assignment, drawn[:right], drawn[:wrong], kind)
    audits = {assignment.name: Audit(assignment.name) for assignment in assignments}
    if "mutant" in kinds:
        for assignment in assignments:
            of_mutants = [case for case in cases if case.kind == "mutant"]
            names = {case.name for case in of_mutants if case.assignment == assignment.name}
            equivalents = load_equivalent_mutants(plan.course, assignment, names)
            audits[assignment.name].equivalents = equivalents
    run_seeds = tuple(chosen.randrange(2**31) for _ in range(fixed_inputs.RUNS))
    finding_of: dict[Case, AuditFinding] = {}
    with graders(plan) as pool:
        try:
            tried = [a.name for a in assignments if "solution" in kinds]
            sent = {name: pool.submit(fixed_inputs.sent_inputs, name, run_seeds) for name in tried}
            undrawn = {name: pool.submit(pictures_of_solution, name) for name in tried}
            with_mistakes = [a.name for a in assignments if "mistake" in kinds]
            caught = {name: pool.submit(catch.problems_of, name) for name in with_mistakes}
            carrying = {name: pool.submit(carried_over, name) for name in with_mistakes}
            proofs = {
                (name, proof): pool.submit(load_extension(PROOFS, proof), name, drawn[:PROOF_SEEDS])
                for name, proof in itertools.product(tried, extensions(PROOFS))
            }
            for finding in _try_all(pool, cases):
                finding_of[finding.case] = finding
                tell(len(finding_of), len(cases))
            for name in tried:
                audits[name].sent = sent[name].result()
                audits[name].problems += undrawn[name].result()
            for (name, proof), future in proofs.items():
                audits[name].proofs[proof] = future.result()
            for name in with_mistakes:
                audits[name].problems += caught[name].result()
                audits[name].carried = carrying[name].result()
        finally:
            pool.shutdown(cancel_futures=True)
    for case in cases:
        audits[case.assignment].findings.append(finding_of[case])
    for assignment in assignments:
        audit = audits[assignment.name]
        audit.unpromised = sum(not words for words in promises(plan.course, assignment).values())
        audit.problems.extend(broken_promises(plan.course, assignment))
        audit.problems.extend(called_by_accident(plan.course, assignment))
        audit.conclude()
    return list(audits.values())


def record_failing_tests(course: Course, audits: Iterable[Audit]) -> None:
    """Write which tests each mistake does not pass: grading tries those first that fail the same tests."""
    for audit in audits:
        if findings := audit.of("mistake"):
            lines = [
                f" {json.dumps(finding.case.name)}: {json.dumps(finding.missed)}"
                for finding in findings
            ]
            file = course.failing_tests_file(course.assignment(audit.assignment))
            write_whole(file, "{\n" + ",\n".join(lines) + "\n}\n")


def _cases(
    course: Course,
    assignment: Assignment,
    right: tuple[int, ...],
    wrong: tuple[int, ...],
    kind: str,
) -> Iterable[Case]:
    """Yield the answers of one kind; raises CourseError for a stub that was not built."""
    name = assignment.name
    solution = load_document(course, assignment).text
    first = right[:1]
    others = right[1:]
    if kind == "stub":
        yield _stub(course, assignment, first)
    elif kind == "trivial":
        for label, source in trivial.trivial_answers(course, assignment):
            yield Case("trivial", name, label, source, first)
    elif kind == "solution":
        yield Case("solution", name, f"with seed {first[0]}", solution, first)
        for seed in others:
            yield Case("solution", name, f"with seed {seed}", solution, here=(seed,))
    elif kind == "alternative":
        for label, source in load_alternatives(course, assignment):
            yield Case("alternative", name, label, source, first, others)
    elif kind == "mistake":
        yield from _mistake_cases(course, assignment, solution, wrong)
    else:
        for mutant in mutants(solution):
            yield Case(
                "mutant",
                name,
                mutant.id,
                mutant.source,
                (),
                right[:MUTANT_SEEDS],
                mutant.description,
            )


def _stub(course: Course, assignment: Assignment, seeds: tuple[int, ...]) -> Case:
    stub = course.stub_file(assignment)
    if not stub.is_file():
        raise CourseError(f"There is no {course.label(stub)}. Run `autograder build` first.")
    return Case("stub", assignment.name, stub.name, stub.read_text("utf-8"), seeds)


def _mistake_cases(
    course: Course, assignment: Assignment, solution: str, seeds: tuple[int, ...]
) -> Iterator[Case]:
    for mistake, part in parts_of_mistakes(load_mistakes(course, assignment), solution):
        yield Case(
            "mistake",
            assignment.name,
            mistake.id,
            mistake.source,
            seeds,
            (),
            mistake.hint,
            mistake.weight,
            mistake.exception,
            part,
        )


def _try_all(pool: GraderPool, cases: list[Case]) -> Iterable[AuditFinding]:
    running = {pool.submit(try_case, case) for case in cases}
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()


def try_case(case: Case) -> AuditFinding:
    """Try one answer. Runs in a grader's process."""
    if case.kind == "mutant":
        failures = (
            this_grader().first_failure(case.assignment, case.source, s, MUTANT_SECONDS)
            for s in case.here
        )
        return AuditFinding(case, any(failures), detail=case.hint)
    findings = [_graded(case, seed) for seed in case.seeds]
    if not all(finding.good for finding in findings):
        return _first([finding for finding in findings if not finding.good], len(findings))
    for seed in case.here:
        if failed := this_grader().first_failure(case.assignment, case.source, seed, SECONDS_HERE):
            return AuditFinding(case, False, detail=f"seed {seed}, in this process: {failed}")
    unnamed = [finding for finding in findings if not finding.named]
    chosen = _first(unnamed or findings, len(findings)) if findings else AuditFinding(case, True)
    return replace(chosen, wrong_name=_wrong_name(case)) if case.kind == "mistake" else chosen


def _wrong_name(case: Case) -> str:
    course = this_grader().course
    return name_at_home(
        course, course.assignment(case.assignment), _mistakes(case.assignment)[case.name]
    ).problem


@cache
def _mistakes(assignment: str) -> dict[str, Mistake]:
    """Return an assignment's mistakes by id, read once in a grader's process."""
    course = this_grader().course
    return mistakes_by_id(course, course.assignment(assignment))


def _first(alike: list[AuditFinding], tried: int) -> AuditFinding:
    first = alike[0]
    return (
        first
        if tried == 1
        else replace(first, detail=f"{first.detail} So in {len(alike)} of {tried} draws.")
    )


def _graded(case: Case, seed: int) -> AuditFinding:
    grader = this_grader()
    assignment = grader.assignment(case.assignment)
    file = SourceFile(f"{assignment.stem}.py", case.source)
    submission = Submission("audit", case.assignment, (file,))
    try:
        grader.reseed(seed)
        return _judge(case, grader.grade(submission))
    except (CourseError, SolutionFailsError) as problem:
        return AuditFinding(case, False, detail=f"seed {seed}: {problem}")


def _judge(case: Case, grade: Grade) -> AuditFinding:
    missed = [test for test in grade.tests if test.outcome != "passed"]
    failed = [test for test in missed if test.outcome != "skipped"]
    seen = "; ".join(f"{test.name} {test.outcome} ({test.message})" for test in failed[:3])
    sentence = (
        f"seed {grade.seed}: {grade.score:g} of {grade.max_score:g} points. {grade.problem or seen}"
    )
    if case.kind == "stub":
        return AuditFinding(case, grade.score == 0 and grade.problem is None, detail=sentence)
    tried = AuditFinding(case, False, detail=sentence, score=grade.score, max_score=grade.max_score)
    if case.kind == "trivial":
        limit = trivial.limit_of(this_grader().assignment(case.assignment), case.name)
        good = grade.score <= limit * grade.max_score
        return replace(tried, good=good, detail=_earned(grade, limit, "raise " in case.source))
    if case.kind != "mistake":
        return replace(tried, good=grade.score == grade.max_score)
    named = any(test.mistake == case.name or case.hint in (test.hint or "") for test in failed)
    others = sorted({test.mistake for test in failed if test.mistake})
    detail = f"{sentence} Named: {', '.join(others) or 'nothing'}."
    good = grade.score < grade.max_score
    names = tuple(test.name for test in missed)
    if not named:
        detail += _not_recorded(case, names)
    return replace(
        tried, good=good, named=named, detail=detail, cost=_cost(case, grade), missed=names
    )


def _cost(case: Case, grade: Grade) -> Cost:
    of_part = [test for test in grade.tests if test.part == case.part]
    return Cost(
        lost=grade.max_score - grade.score,
        of_all=grade.max_score,
        lost_in_part=sum(test.lost for test in of_part),
        of_part=sum(test.max_score for test in of_part),
        part=case.part,
        failures=[test.message or "" for test in of_part if test.outcome == "failed"],
    )


def _not_recorded(case: Case, missed: Sequence[str]) -> str:
    """Return a sentence if a mistake fails tests on which grading does not try it."""
    recorded = _mistakes(case.assignment)[case.name].fails
    unknown = [] if recorded is None else [name for name in missed if name not in recorded]
    if not unknown:
        return ""
    return f" failing_tests.json does not know that it fails {', '.join(unknown)}: add --record."


def _earned(grade: Grade, limit: float, refuses: bool) -> str:
    passed = sorted((t for t in grade.tests if t.score), key=lambda test: -test.score)
    tests = ", ".join(f"{test.name} {test.score:g}" for test in passed)
    advice = f" {REFUSES}" if refuses and limit == trivial.LIMIT else ""
    return f"{grade.score:g} of {grade.max_score:g} points, at most {limit:.0%} are allowed: {tests}.{advice}"


def _out_of_proportion(finding: AuditFinding) -> Iterable[str]:
    """Yield what is wrong with the costs of a mistake, or with its exception."""
    case = finding.case
    if finding.cost is None:
        return
    problems = list(out_of_proportion(case.name, case.weight, finding.cost))
    if case.exception and not problems:
        yield f"mistake {case.name} has an exception that it does not need."
    if not case.exception:
        yield from problems


def _share(good: Iterable[bool]) -> tuple[str, bool]:
    values = list(good)
    return f"{sum(values)}/{len(values)}", all(values)
