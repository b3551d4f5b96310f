"""Find and read submissions as text; an unusable submission carries a message instead of raising an exception."""

from autograder.submissions.find import find_submissions
from autograder.text.names import folder_name, safe_name

__all__ = ["find_submissions", "folder_name", "safe_name"]
