"""JUnit XML for CI systems, Artemis and dashboards: a `testsuite` per submission, a `testcase` per test."""

import re
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.gradebook.final_scores import final_of, number
from autograder.gradebook.lateness import Final
from autograder.records import Grade, TestResult
from autograder.text.wording import counted_are

_KINDS = {"failed": "failure", "skipped": "skipped", "timeout": "error", "crashed": "error"}
_IMPOSSIBLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JUnitExport(Exporter):
    """The results as JUnit XML."""

    is_for_students = True
    shows_seconds = True

    def export(self, request: ExportRequest) -> Exported:
        """Write all grades, or those of one assignment, to one file."""
        grades = list(request.grades) if request.assignment is None else request.wanted
        lines = _lines(
            Element("testsuites", _counts(grades), name=_text(request.course.title)),
            grades,
            request,
        )
        path = request.write("junit.xml", lines, mark=b"<testsuites")
        return Exported(f"{counted_are(len(grades), 'submission')} in {path}.")


def _lines(root: Element, grades: list[Grade], request: ExportRequest) -> Iterator[str]:
    root.text = "\n"
    head, _, end = ElementTree.tostring(root, "unicode").rpartition("\n")
    yield f"<?xml version='1.0' encoding='utf-8'?>\n{head}\n"
    for grade in grades:
        suite = _suite(
            grade,
            request.stored_originals.get(grade.student, grade.student),
            final_of(grade, request.finals),
        )
        ElementTree.indent(suite, " ", level=1)
        yield f" {ElementTree.tostring(suite, 'unicode')}\n"
    yield f"{end}\n"


def _counts(grades: list[Grade], with_skipped: bool = False) -> dict[str, str]:
    kinds = Counter(_KINDS.get(test.outcome, "") for grade in grades for test in grade.tests)
    refused = sum(grade.status == "refused" for grade in grades)
    counts = {
        "tests": kinds.total() + refused,
        "failures": kinds["failure"],
        "errors": kinds["error"] + refused,
        **({"skipped": kinds["skipped"]} if with_skipped else {}),
        "time": f"{sum(grade.seconds for grade in grades):.3f}",
    }
    return {name: str(count) for name, count in counts.items()}


def _suite(grade: Grade, student: str, final: Final) -> Element:
    suite = Element(
        "testsuite",
        _counts([grade], with_skipped=True),
        name=_text(f"{student}/{grade.assignment}"),
    )
    properties = SubElement(suite, "properties")
    facts = {
        "student": student,
        "assignment": grade.assignment,
        "status": grade.status,
        "score": "excused" if final.excused else number(final.score),
        "max_score": number(grade.max_score),
        "seed": str(grade.seed),
        "isolation": grade.isolation,
    }
    for name, value in [
        *facts.items(),
        *(("decision", decision.sentence) for decision in final.decisions),
    ]:
        SubElement(properties, "property", name=name, value=_text(value))
    if grade.status == "refused":
        case = SubElement(
            suite, "testcase", classname=_text(grade.assignment), name="submission", time="0"
        )
        _tell(case, "error", "refused", grade.problem or "")
    for test, seconds in grade.timed_tests:
        _add_case(suite, grade, test, seconds)
    return suite


def _add_case(suite: Element, grade: Grade, test: TestResult, seconds: float) -> None:
    where = _text(f"{grade.assignment}.{test.part}")
    case = SubElement(
        suite, "testcase", classname=where, name=_text(test.name), time=f"{seconds:.3f}"
    )
    kind = _KINDS.get(test.outcome)
    said = "\n".join(filter(None, (test.title, test.message, test.hint)))
    if test.outcome in ("followed", "decided"):
        SubElement(case, "system-out").text = _text(said)
    if kind:
        _tell(case, kind, test.outcome, test.message or test.title, said)


def _tell(case: Element, kind: str, outcome: str, message: str, said: str = "") -> None:
    if kind == "skipped":
        SubElement(case, kind).text = _text(message)
    else:
        SubElement(case, kind, type=outcome, message=_text(message)).text = _text(said or message)


def _text(text: str) -> str:
    """Remove characters that XML does not allow, as a student's code can print any."""
    return _IMPOSSIBLE.sub("\N{REPLACEMENT CHARACTER}", text)
