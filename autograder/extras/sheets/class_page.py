"""The page for teaching assistants: what went wrong in a class, how to see it, and what to ask.

It holds sentences of the journal and of the course's authors, and no line of the solution.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.course.config import Assignment, Course
from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import mistakes_by_id
from autograder.extras.sheets.own_code import function_of
from autograder.extras.sheets.questions import QuestionFile, load_question_file, notes_of
from autograder.feedback.pictures import Picture, pictures_of
from autograder.feedback.statistics import Cluster, mistake_counts, unnamed_failures
from autograder.feedback.titles import in_words, parts_in_order
from autograder.records import Grade, TestResult

MOST_MISTAKES = 5  # on one sheet of paper
MOST_CLUSTERS = 3
MOST_VISITS = 5
MOST_NAMES = 6
LONGEST = 190  # characters of a message


@dataclass(frozen=True)
class MistakeRow:
    """A known mistake of this class: who made it, what they were told, how to see it, what to ask.

    `good` continues "A good answer …"; it is empty where only the sentence for all mistakes is known.
    """

    title: str
    part: str
    students: tuple[str, ...]
    symptom: str
    see: str
    ask: str
    good: str
    example: Grade
    picture: Picture | None = None


@dataclass(frozen=True)
class Visit:
    """A student to visit first, with the reason."""

    student: str
    why: str


@dataclass(frozen=True)
class ClusterRow:
    """Failures without a name that look alike."""

    part: str
    students: tuple[str, ...]
    symptom: str


@dataclass(frozen=True)
class ClassPage:
    """All that the page shows of one assignment."""

    assignment: str
    title: str
    graded: int
    full_marks: int
    mistakes: tuple[MistakeRow, ...]
    more_mistakes: int
    clusters: tuple[ClusterRow, ...]
    more_clusters: int
    visits: tuple[Visit, ...]
    most_names: int = MOST_NAMES

    @property
    def representatives(self) -> list[Grade]:
        """A grade with each of the mistakes: their pictures are drawn."""
        return [row.example for row in self.mistakes]

    def with_pictures(self, folder: Path, course: Course) -> "ClassPage":
        """Return the page with a stored picture of each mistake's part, as far as there are any."""
        rows = []
        for row in self.mistakes:
            drawn = pictures_of(folder, course, row.example)
            fitting = [picture for picture in drawn if picture.part == row.part and picture.image]
            rows.append(replace(row, picture=fitting[0] if fitting else None))
        return replace(self, mistakes=tuple(rows))


def class_page(course: Course, assignment: Assignment, grades: Sequence[Grade]) -> ClassPage:
    """Return the page of one assignment's grades."""
    mistakes = mistakes_by_id(course, assignment)
    record = load_question_file(course, assignment)
    solution = course.read_solution(assignment)
    graded = [grade for grade in grades if grade.status == "graded"]
    counts = mistake_counts(graded)
    rows = [
        _row(mistakes.get(count.mistake), count.mistake, count.students, graded, record, solution)
        for count in counts[:MOST_MISTAKES]
    ]
    begun = [grade for grade in graded if grade.score > 0]  # the others are among those to visit
    clusters = [cluster for cluster in unnamed_failures(begun) if not _all_unwritten(cluster)]
    titles = parts_in_order(assignment, [part.name for part in assignment.parts])
    return ClassPage(
        assignment.name,
        assignment.title,
        len(graded),
        sum(grade.score >= grade.max_score for grade in graded),
        tuple(rows),
        len(counts) - len(rows),
        tuple(
            _cluster(cluster, titles.get(cluster.part, cluster.part))
            for cluster in clusters[:MOST_CLUSTERS]
        ),
        max(0, len(clusters) - MOST_CLUSTERS),
        tuple(_visits(grades)),
    )


def _row(
    mistake: Mistake | None,
    name: str,
    students: tuple[str, ...],
    graded: Sequence[Grade],
    record: QuestionFile | None,
    solution: str,
) -> MistakeRow:
    made_by = [grade for grade in graded if grade.student in students]
    tests = {grade.student: _tests_with(grade, name) for grade in made_by}
    first = tests[made_by[0].student][0]
    title = mistake.title if mistake else in_words(name)
    place = function_of(solution, mistake.source) if mistake else ""
    note = notes_of(record).get(name)
    see = (
        f"Read `{place}`: the mistake is made there."
        if place
        else "Read the part from its first line."
    )
    return MistakeRow(
        title,
        first.part,
        students,
        _sentence(first),
        note.see if note else see,
        first.hint or "",
        note.good if note else "",
        made_by[0],
    )


def _tests_with(grade: Grade, mistake: str) -> list[TestResult]:
    return [test for test in grade.tests if test.mistake == mistake]


def _cluster(cluster: Cluster, part: str) -> ClusterRow:
    failed = [test for test in cluster.tests if not test.is_unwritten]
    first = failed[0]
    return ClusterRow(part, cluster.students, _sentence(first))


def _all_unwritten(cluster: Cluster) -> bool:
    return all(test.is_unwritten for test in cluster.tests)


def _visits(grades: Sequence[Grade]) -> list[Visit]:
    """Return whom to visit first: those for whom the feedback can do least.

    Files that could not be read come first, then work without any point, then losses that no known
    mistake explains, the largest first.
    """
    refused = [
        Visit(grade.student, grade.problem or "not read")
        for grade in grades
        if grade.status == "refused"
    ]
    graded = [grade for grade in grades if grade.status == "graded"]
    stuck = [grade for grade in graded if grade.score == 0]
    visits = [*refused, *(Visit(grade.student, _where_it_stopped(grade)) for grade in stuck)]
    alone = sorted(
        ((grade, _unexplained(grade)) for grade in graded if grade.score > 0),
        key=lambda pair: (-pair[1], pair[0].student),
    )
    for grade, loss in alone:
        if loss:
            visits.append(Visit(grade.student, f"{loss:g} points that no known mistake explains"))
    return visits[:MOST_VISITS]


def _where_it_stopped(grade: Grade) -> str:
    first = next((test for test in grade.tests if not test.is_right), None)
    if first is None or first.is_unwritten:
        return "not begun yet"
    return f"no test passes yet. The first one says: {_sentence(first)}"


def _sentence(test: TestResult) -> str:
    """Return what a test says, cut to what fits the page; its title if it says nothing."""
    sentence = test.sentence or test.title
    return sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST - 1]}…"


def _unexplained(grade: Grade) -> float:
    unexplained = (
        test
        for test in grade.tests
        if test.fails and not test.mistake and not test.hint and not test.is_unwritten
    )
    return round(sum(test.lost for test in unexplained), 2)
