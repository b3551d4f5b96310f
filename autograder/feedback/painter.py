"""Draw the pictures for the feedback, after grading and on request, in parallel processes."""

import base64
import io
import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from autograder.bridge.outside.subject import RemoteSubject
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.bridge.shared.errors import StudentError, StudentTimeoutError
from autograder.course.document import load_document
from autograder.failures.explain import explain
from autograder.feedback.gallery import NoSentenceError, PictureFunction, load_gallery
from autograder.feedback.pictures import Picture, failing_parts, keep_pictures, picture_file
from autograder.gradebook import texts
from autograder.grading.time_limits import TaskEndedError, Watch
from autograder.grading.workers import LoadedSubmission
from autograder.records import Grade, InfrastructureError, RefusedError, SourceFile
from autograder.runs.pool import Plan, graders, this_grader

MOST = 6  # maximum number of pictures on a page
SECONDS = 30.0  # limit of one picture: of processor time here, and of waiting for the worker
INCHES = 20.0
DOTS = 100
COLOURS = 96
SEED = 0
PATIENT = 300.0  # seconds of a picture that is drawn for its author


@dataclass(frozen=True)
class Job:
    """The pictures of one grade, and the file to store them in."""

    folder: Path
    grade: Grade
    file: Path


def draw_pictures(
    plan: Plan, folder: Path, grades: Iterable[Grade], tell: Callable[[int, int], None]
) -> list[str]:
    """Draw the pictures missing in `folder` with `plan.jobs` processes; return the reason for each that is not drawn.

    `tell` is called with the number done and the total. A picture that a student's code cannot
    produce is replaced by a message. If the machine fails, finished pictures are kept and the
    others can be drawn later.
    """
    folder = folder.absolute()  # graders work in another current folder
    files = ((grade, picture_file(folder, plan.course, grade)) for grade in grades)
    jobs = [Job(folder, grade, file) for grade, file in files if file and not file.is_file()]
    plan = replace(plan, names=tuple(sorted({job.grade.assignment for job in jobs})))
    problems = list[str]()
    done = 0
    tell(done, len(jobs))
    try:
        for job, problem in _draw(plan, jobs) if jobs else ():
            if problem:
                problems.append(f"{job.grade.student}, {job.grade.assignment}: {problem}")
            done += 1
            tell(done, len(jobs))
    except InfrastructureError as error:
        problems.append(f"Pictures of {len(jobs) - done} submissions are not drawn: {error}")
    return problems


def _draw(plan: Plan, jobs: list[Job]) -> Iterator[tuple[Job, str]]:
    """Draw in parallel; yield each job when it is done, with the reason if there is none.

    Raises InfrastructureError.
    """
    pool = graders(plan)
    try:
        waiting = {pool.submit(draw_one, job): job for job in jobs}
        for future in as_completed(waiting):
            error = future.exception()
            if error is not None and not isinstance(error, RefusedError):
                raise error
            if error is None:
                keep_pictures(waiting[future].file, future.result())
            yield waiting[future], str(error or "")
    except BrokenProcessPool:
        raise InfrastructureError(
            "a process that drew them was ended from outside, perhaps because memory was short. "
            "`autograder report --pictures --jobs 1` draws them one after another."
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def draw_one(job: Job) -> list[Picture]:
    """Draw the pictures of one grade. Raises RefusedError if its text is not stored."""
    submission = texts.get(job.folder, job.grade)
    if submission is None:
        raise RefusedError(
            "the graded text is no longer stored. `autograder grade` stores it again."
        )
    grader = this_grader()
    assignment = grader.assignment(job.grade.assignment)
    file = grader.choose(assignment, submission)
    gallery = pictures_in(grader.course.pictures_file(assignment))
    wanted = [drawing for part in failing_parts(job.grade) for drawing in gallery.get(part, [])]
    return drawn_pictures(grader.load(assignment, file), wanted[:MOST], grader.watch)


@cache
def pictures_in(file: Path) -> dict[str, list[PictureFunction]]:
    """Return the picture functions of a file, by part; a grader reads it once."""
    return load_gallery(file)


def problems_of_solution(name: str) -> list[str]:
    """Return a sentence for each picture of an assignment's solution that is not drawn. Runs in a grader's process."""
    grader = this_grader()
    assignment = grader.course.assignment(name)
    pictures = grader.course.pictures_file(assignment)
    if not pictures.is_file():
        return []
    solution = load_document(grader.course, assignment).text
    limits = assignment.limits.model_copy(update={"call_seconds": PATIENT})
    file = SourceFile(f"{assignment.stem}.py", solution)
    loaded = grader.load(assignment.model_copy(update={"limits": limits}), file)
    wanted = list(itertools.chain.from_iterable(pictures_in(pictures).values()))
    drawn = drawn_pictures(loaded, wanted, Watch(), PATIENT)
    label = grader.course.label(pictures)
    return [f"{label}, {picture.title}: {picture.problem}" for picture in drawn if picture.problem]


def drawn_pictures(
    loaded: LoadedSubmission,
    wanted: Sequence[PictureFunction],
    watch: Watch,
    seconds: float = SECONDS,
) -> list[Picture]:
    """Draw these pictures of a submission, and close it; what cannot be drawn has a `problem`."""
    with closing(loaded):
        return [_picture(drawing, loaded, watch, seconds) for drawing in wanted]


def _picture(
    drawing: PictureFunction,
    loaded: LoadedSubmission,
    watch: Watch,
    seconds: float,
    again: bool = True,
) -> Picture:
    blank = Picture(drawing.part, drawing.title, drawing.look_for)
    try:
        with watch.limit(f"{drawing.part} {drawing.name}", seconds):
            subject = loaded.subject()
            with subject.connection.ending_at(time.monotonic() + seconds):
                image, words = _image(drawing, subject)
                return replace(blank, image=image, words=words)
    except InfrastructureError:
        raise
    except Exception as error:
        if again and isinstance(error, StudentTimeoutError) and error.starved:
            return _picture(drawing, loaded, watch, seconds, again=False)
        return replace(blank, problem=_sentence(error, loaded.file))


def _image(drawing: PictureFunction, subject: RemoteSubject[WorkerConnection]) -> tuple[str, str]:
    """Return a picture as base64, and its sentence."""
    subject.begin(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure, words = drawing.drawn(subject.student)
        if max(figure.get_size_inches()) > INCHES:
            raise ValueError("the figure is too large")
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=DOTS)
    return base64.b64encode(_small(drawn)).decode(), words


def _small(drawn: io.BytesIO) -> bytes:
    from PIL import Image

    with Image.open(drawn) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small = io.BytesIO()
    few.save(small, format="png", optimize=True)
    return small.getvalue()


def _sentence(error: BaseException, file: SourceFile) -> str:
    if isinstance(error, TaskEndedError):
        return (
            f"It took more than {SECONDS:g} seconds."
            if error.late
            else "The process that drew it ended."
        )
    if isinstance(error, NoSentenceError):
        return str(error)
    if isinstance(error, StudentError):
        return explain(error, full=True, file=file).message
    return f"The result of your code cannot be drawn ({type(error).__name__})."
