"""`export --to git`: the pages of each student, on a branch of the student's repository."""

from autograder.extras.git.repositories import check_branch, read_repositories
from autograder.extras.git.returning import ReturnOptions, return_to_git
from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.gradebook.final_scores import ClassList, Effective
from autograder.records import RefusedError
from autograder.text.names import graded_name


class GitExport(Exporter):
    """Pushes each student's feedback, as far as students may see it at present, if it is not there yet."""

    def export(self, request: ExportRequest) -> Exported:
        if request.repositories is None or request.folder is None:
            raise RefusedError(
                "`--to git` needs --repositories: a table of repositories, or an address with {student}."
            )
        wanted = request.course.assignment(request.assignment).name if request.assignment else ""
        owned = read_repositories(request.repositories, request.course, request.roster, wanted)
        names = dict.fromkeys((grade.student for grade in request.grades), "") | dict(request.names)

        def student_of(student: str) -> str:
            return request.roster.student_id(graded_name(student), names, request.stored_originals)

        returned = return_to_git(
            owned,
            request.folder,
            request.course,
            Effective(list(request.grades), dict(request.finals), [], ClassList()),
            ReturnOptions(check_branch(request.branch), request.replace, student_of),
            request.on_step,
        )
        students = {
            "pushed": returned.pushed,
            "unchanged": returned.unchanged,
            "ungraded": returned.ungraded,
        }
        return Exported(returned.summary, returned.problems, students=students)
