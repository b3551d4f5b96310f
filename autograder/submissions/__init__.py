"""Finds what students handed in and reads it as text; what cannot be used becomes a sentence, never an exception."""

from autograder.submissions.find import SubmissionsError, find_submissions
from autograder.text.names import folder_name, safe_name

__all__ = ["SubmissionsError", "find_submissions", "folder_name", "safe_name"]
