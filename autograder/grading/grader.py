"""Grading of one submission: the tests, the follow-through marks, the known mistakes, the grade."""

import time
from collections.abc import Collection, Iterable
from dataclasses import replace

from autograder.bridge.outside.local import LocalStudent, load
from autograder.bridge.outside.replay import ReplayCache
from autograder.bridge.outside.subject import Subject
from autograder.bridge.outside.transcript import Transcript
from autograder.bridge.shared.errors import StudentError
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.digests import submission_digest
from autograder.course.mistakes import Mistake
from autograder.failures.explain import clean, explain
from autograder.grading.diagnosis import Diagnosis
from autograder.grading.follow_through import FollowThrough
from autograder.grading.notes import limited_notes, notes_of
from autograder.grading.prepared import PreparedAssignment, PreparedCourse
from autograder.grading.sent_requests import sent_requests
from autograder.grading.suite_run import (
    SubmissionExaminee,
    TrustedExaminee,
    failures_of_solution,
    gives_an_answer,
)
from autograder.grading.time_limits import TaskEndedError, Watch
from autograder.grading.workers import LoadedSubmission, WorkerFactory
from autograder.records import Grade, RefusedError, SourceFile, Submission, TestResult, total
from autograder.suite.session import Ending, Test
from autograder.text.wording import LISTED, joined
from autograder.version import __version__
from autograder.walls.outside.budget import Budget
from autograder.walls.outside.launcher import Sandbox

# of processor time, for reading a submission, comparing its answers and explaining
SECONDS_BESIDE_TESTS = 60.0


class Grader:
    """Grades submissions of a course one after another, all with the same random inputs.

    An assignment is prepared when it is first needed. For one whose modules cannot be imported,
    `grade` raises MissingModuleError.
    """

    def __init__(
        self, prepared_course: PreparedCourse, sandbox: Sandbox, run_seed: int, watch: Watch
    ) -> None:
        self.course = prepared_course.course
        self.session = prepared_course.session
        self.tests = prepared_course.tests
        self.watch = watch
        self._prepared_course = prepared_course
        self._references: dict[str, LocalStudent] = {}
        self._forbidden: dict[str, list[str]] = {}
        self.workers = WorkerFactory(sandbox, self._references, self._forbidden)
        self._follow_through: dict[str, FollowThrough] = {}
        self._begin(run_seed)

    def prepare(self, names: Collection[str]) -> bool:
        """Prepare those of these assignments that are not; return whether there were any.

        Raises CourseError, or PreparationNeededError after `prepare_no_more`.
        """
        return self._prepared_course.prepare(names)

    def prepare_all(self) -> None:
        """Prepare all assignments; raises as `prepare`, and MissingModuleError if none can be prepared."""
        self.prepare(self.tests)
        self._prepared_course.require_some()

    def prepare_no_more(self) -> None:
        """From now on, prepare nothing in this process, a fork."""
        self._prepared_course.prepare_no_more()

    def grade(self, submission: Submission) -> Grade:
        """Return the grade of one submission; no submission makes this method raise an exception.

        Raises InfrastructureError if the machine fails, CourseError if the assignment's solution
        fails its own tests.
        """
        try:
            if submission.problem:
                raise RefusedError(submission.problem)
            if submission.assignment not in self._prepared_course:
                raise RefusedError(
                    f"The course has no assignment `{clean(submission.assignment, 100)}`."
                )
            prepared = self._prepared(submission.assignment)
            if prepared.unsound:
                raise CourseError(prepared.unsound)
            with self.watch.limit(f"all of {submission.assignment}", SECONDS_BESIDE_TESTS):
                return self._graded(prepared, submission)
        except TaskEndedError:
            return refused(
                self.course,
                submission,
                "Reading it, and what it answers, takes too long.",
                self.run_seed,
            )
        except RefusedError as refusal:
            return refused(self.course, submission, str(refusal), self.run_seed)

    def _graded(self, prepared: PreparedAssignment, submission: Submission) -> Grade:
        started = time.monotonic()
        assignment = prepared.assignment
        self.workers.sandbox.warm_up(assignment.preload)  # no part of a student's time
        limits = assignment.limits
        digest = f"{self.run_seed} {submission_digest(submission)}"
        with self.watch.submission(
            digest, limits.submission_cpu_seconds, limits.submission_seconds
        ) as budget:
            file = self.choose(assignment, submission, budget)
            loaded = LoadedSubmission(self.workers, assignment, file, budget=budget)
            results, seconds = self._results(prepared, loaded)
            # the record of what it tried ends with the budget
            flags = (*limited_notes(submission.notes), *notes_of(prepared, loaded))
        return Grade(
            student=submission.student,
            assignment=assignment.name,
            status="graded",
            score=total(result.score for result in results),
            max_score=assignment.points,
            tests=results,
            seed=self.run_seed,
            isolation=self.workers.sandbox.tier,
            seconds=round(time.monotonic() - started, 3),
            submission_sha256=submission_digest(submission),
            suite_sha256=prepared.suite_sha256,
            autograder=__version__,
            flags=flags,
            test_seconds=seconds,
        )

    def assignment(self, name: str) -> Assignment:
        """Return one of this grader's assignments, prepared; raises CourseError, or MissingModuleError if one of its
        modules is missing.
        """
        return self._prepared(name).assignment

    def load(self, assignment: Assignment, file: SourceFile) -> LoadedSubmission:
        """Return a submission whose functions can be called in workers; the caller closes it."""
        self._prepared(assignment.name)
        return LoadedSubmission(self.workers, assignment, file)

    def choose(
        self, assignment: Assignment, submission: Submission, budget: Budget | None = None
    ) -> SourceFile:
        """Return the file to grade; raises RefusedError if two files were changed and their code differs."""
        if len(submission.files) == 1:
            return submission.files[0]
        try:
            outlines = {
                file.name: self.workers.outline(assignment, file, budget)
                for file in submission.files
            }
        except StudentError:
            sentence = (
                "There are two files, and at least one of them cannot be read. Hand in one file."
            )
            raise RefusedError(sentence) from None
        untouched = self._prepared(assignment.name).stub_outline
        changed = [file for file in submission.files if outlines[file.name] != untouched]
        if len({outlines[file.name] for file in changed}) > 1:
            names = " and ".join(sorted(outlines))
            raise RefusedError(f"{names} hold different code. Hand in the one that counts.")
        return (changed or list(submission.files))[0]

    def reseed(self, run_seed: int) -> None:
        """Start another run, with other inputs; the recorded answers of mistakes are dropped."""
        if run_seed != self.run_seed:
            self._begin(run_seed)

    def first_failure(self, name: str, text: str, run_seed: int, seconds: float) -> str | None:
        """Run trusted code in this process, without a sandbox; return its first failing test with the error, or None.

        Loading and each test may use `seconds` of processor time.
        """
        assignment = self.assignment(name)
        try:
            with self.watch.limit("loading", seconds):
                loaded = load(text, f"{assignment.stem}.py", f"trusted_{assignment.stem}")
        except TaskEndedError as ended:
            return f"loading it {ended}"
        student = LocalStudent(loaded.module, loaded.failures)
        subject = Subject(student, self.workers.references[name])
        examinee = TrustedExaminee(subject, self.watch, "trusted code in", seconds)
        for ending in self.session.examine(examinee, run_seed, self.tests[name]):
            if error := ending.error:
                return f"{ending.test.name} ({type(error).__name__}: {error})"[:500]
        return None

    def sent_requests(self, name: str, run_seed: int) -> dict[str, str]:
        """Return a digest of what each hidden test sends to the solution in a run with this seed."""
        return sent_requests(self.session, self._prepared(name), run_seed, self.watch)

    def diagnosis(self, name: str) -> Diagnosis:
        """Return what names the known mistakes of an assignment, anew in each run."""
        if name not in self._diagnoses:
            self._diagnoses[name] = Diagnosis(
                self.session, self._prepared(name), self.run_seed, self.watch
            )
        return self._diagnoses[name]

    def close(self) -> None:
        self.session.close()
        self.workers.close()

    def _begin(self, run_seed: int) -> None:
        self.run_seed = run_seed
        self._cache = ReplayCache()
        self._diagnoses: dict[str, Diagnosis] = {}

    def _prepared(self, name: str) -> PreparedAssignment:
        """Return an assignment, with which workers can be opened."""
        prepared = self._prepared_course.prepared(name)
        self._references[name] = prepared.reference
        self._forbidden[name] = prepared.forbidden
        return prepared

    def _results(
        self, prepared: PreparedAssignment, loaded: LoadedSubmission
    ) -> tuple[tuple[TestResult, ...], tuple[float, ...]]:
        assignment = prepared.assignment
        try:
            examinee = SubmissionExaminee(loaded, self._cache, self.watch)
            endings = examinee.endings(self.session, self.run_seed, prepared.tests)
            in_doubt = [ending.test for ending in endings if examinee.may_be_ours(ending)]
            for failure in failures_of_solution(
                self.session, in_doubt, prepared.reference, self.watch, self.run_seed
            ):
                raise failure
            follow_through = self._follow_through_of(prepared)
            again = (
                follow_through.again(loaded, endings, self.run_seed)
                if self.course.follow_through
                else {}
            )
        finally:
            loaded.close()
        diagnosis = self.diagnosis(assignment.name)
        missed = [ending.test.name for ending in endings if not ending.passed]
        # what is wrong in the later part itself
        retried = [retry.ending for retry in again.values()]
        names = diagnosis.name(_transcripts(retried), missed)
        named = {**diagnosis.name(_transcripts(endings), missed), **names}
        results = []
        for ending in endings:
            name = ending.test.name
            retry = again.get(name)
            shown = retry.ending if retry and name in names else ending
            result = self._result(shown, loaded.file, named.get(name))
            if retry and retry.followed:
                result = self._followed(result, retry.used)
            results.append(result)
        return tuple(results), tuple(ending.seconds for ending in endings)

    def _follow_through_of(self, prepared: PreparedAssignment) -> FollowThrough:
        name = prepared.assignment.name
        if name not in self._follow_through:
            self._follow_through[name] = FollowThrough(
                prepared, self.workers, self.session, self.watch
            )
        return self._follow_through[name]

    def _followed(self, result: TestResult, used: tuple[str, ...]) -> TestResult:
        names = joined([f"`{name}`" for name in used], LISTED)
        message = f"Right, once {names} {'is' if len(used) == 1 else 'are'} right."
        score = round(result.max_score * self.course.follow_through, 6)
        return replace(result, outcome="followed", score=score, message=message, to_try=None)

    def _result(self, ending: Ending, file: SourceFile, mistake: Mistake | None) -> TestResult:
        if ending.error is None:
            return ending.result(None)
        messages = self.course.feedback.graded if ending.test.hidden else "full"
        result = ending.result(explain(ending.error, full=messages == "full", file=file))
        if messages == "both":
            full = explain(ending.error, full=True, file=file)
            result = replace(result, full_message=full.message)
        if messages == "full":
            assignment = self.course.assignment(ending.test.item.path.parent.name)
            result = ending.with_input(result, f"test_{assignment.stem}.py")
        if mistake is None:
            return result
        return replace(result, hint=mistake.hint, mistake=mistake.id or None)


def refused(course: Course, submission: Submission, problem: str, run_seed: int) -> Grade:
    """Return the grade of a refused submission: 0 points, with the reason as a sentence."""
    assignment = course.find(submission.assignment)
    return Grade(
        student=submission.student,
        assignment=submission.assignment,
        status="refused",
        score=0.0,
        max_score=assignment.points if assignment else 0.0,
        problem=clean(problem),
        seed=run_seed,
        submission_sha256=submission_digest(submission),
        autograder=__version__,
    )


def _transcripts(endings: Iterable[Ending]) -> dict[Test, Transcript]:
    return {
        ending.test: ending.transcript
        for ending in endings
        if ending.failed and ending.transcript is not None and gives_an_answer(ending)
    }
