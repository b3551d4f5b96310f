"""Write the gradebook, the class report and the students' feedback pages."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from autograder.course.config import Course
from autograder.feedback.class_report import write_class_report
from autograder.feedback.pages import feedback_path, rendered, write_page
from autograder.feedback.record import PageRecord, PageRecords
from autograder.feedback.student_page import write_student_page
from autograder.feedback.titles import TitleOf
from autograder.gradebook.final_scores import Effective
from autograder.gradebook.lateness import GradeKey
from autograder.gradebook.table import write_gradebook
from autograder.records import InfrastructureError
from autograder.runs.fence import may_pass, told
from autograder.text.names import safe_name

TEMPLATE = "feedback.html.j2"


def as_html(page: PageRecord) -> bytes:
    """Return the page as HTML; raises InfrastructureError without jinja2."""
    return rendered(TEMPLATE, page=page)


def write_what_counts(
    folder: Path, course: Course, effective: Effective, section: str | None = None
) -> Path:
    """Write the gradebook, the pages and the class report, or only the report of a section; return its path.

    The pages contain the pictures already drawn into `folder`, and of hidden tests what students
    may see at present. Raises InfrastructureError if jinja2 is missing; the gradebook is written
    even then. It is also raised in the end for students whose pages have a fault.
    """
    if section is not None:
        return write_class_report(
            folder, course, effective, file_name=f"index-{safe_name(section)}.html"
        )
    write_gradebook(folder, effective)
    faults = _write_pages(folder, course, effective)
    report = write_class_report(folder, course, effective)
    if faults:
        raise InfrastructureError("\n".join(faults))
    return report


def _write_pages(folder: Path, course: Course, effective: Effective) -> list[str]:
    """Write the pages of all students; return sentences about those that meet a fault of this program."""
    pages = StudentPages(folder, course)
    faults = []
    for student in effective.by_student():
        try:
            pages.write(student)
        except Exception as error:
            if may_pass(error):
                raise
            faults.append(told(error, student.grades[0].student))
    return faults


class StudentPages:
    """Writes the pages of the students of a class."""

    def __init__(self, folder: Path, course: Course, title_of: TitleOf | None = None) -> None:
        self._records = PageRecords(folder, course, title_of)
        self._folder = folder
        self._course = course

    def write(
        self, student: Effective, notices: Mapping[GradeKey, str] = MappingProxyType({})
    ) -> None:
        """Write the pages of one student: one of each grade, and one for the instructors.

        `notices` are sentences about later work, which the page of a grade shows above it.
        """
        for grade in student.grades:
            page = self._records.page(grade, student)
            page = replace(page, notice=notices.get(grade.key, ""))
            write_page(self._folder / feedback_path(grade), TEMPLATE, page=page)
        write_student_page(self._folder, self._course, student, self._records.title_of)
