"""nbgrader's settings for this course; docs/nbgrader.md explains them.

nbgrader keeps its folders, gradebook, formgrader and exchange. The students' code never runs in its kernels: the
grader of this course does the executing, in its sandbox.
"""

import sys
import warnings
from pathlib import Path

c = get_config()  # noqa: F821
root = Path(__file__).resolve().parent

warnings.filterwarnings("ignore", module="nbgrader")  # its own, about its own use of its database

c.CourseDirectory.root = str(root)
c.CourseDirectory.course_id = "attention-by-hand"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "assignments"
c.Exchange.root = str(
    root / "exchange"
)  # on a server with students: a folder outside, see docs/jupyterhub.md
c.ExchangeFactory.release_assignment = "autograder.nbgrader.exchange.ReleaseAssignment"

# nbgrader copies what lies beside a source notebook to students. Here that is the solution, so nothing is copied.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", f"{root}/solutions/./*/*"]

# What is released is always made anew from the solutions, as `autograder build` does.
c.GenerateAssignment.force = True
c.GenerateAssignment.exporter_class = "autograder.authoring.nbgrader_release.ReleaseExporter"
c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.LockCells",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
]

c.Autograde.exporter_class = "autograder.nbgrader.executor.GradedExporter"
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "autograder.nbgrader.executor.ShowGrade",
    "autograder.nbgrader.executor.SaveGrades",
    "autograder.nbgrader.lateness.LatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# A file of settings that fails is passed over by Jupyter, and nbgrader would go on with its own kernels.
try:
    from autograder.nbgrader.settings import database_url, find_own_tools, write_sources

    find_own_tools()
    c.CourseDirectory.db_url = database_url(root)
    write_sources(root)
except Exception as error:
    sys.exit(f"nbgrader_config.py: {type(error).__name__}: {error}")
