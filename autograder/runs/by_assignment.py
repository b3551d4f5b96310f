"""Which submission a grader reads next: it stays with one assignment as long as there is enough else to do.

What a grader has of an assignment (imports, a fork server, known answers) serves all submissions of it.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable

from autograder.gradebook.texts import StoredSubmission


class ByAssignment:
    """The submissions of a class that no grader has taken yet."""

    def __init__(self, stored: Iterable[StoredSubmission]) -> None:
        self._left = defaultdict[str, deque[StoredSubmission]](deque)
        for handed_in in stored:
            self._left[handed_in.submission.assignment].append(handed_in)

    def take(self, present: str, of_others: Collection[str]) -> StoredSubmission | None:
        """Return the next submission of a grader's present assignment; else of the one with most left that no other
        grader has, or of that with most left; None if there is nothing left.
        """
        free = [name for name in self._left if name not in of_others]
        most = max(free or self._left, key=lambda name: len(self._left[name]), default=None)
        name = present if present in self._left else most
        if name is None:
            return None
        taken = self._left[name].popleft()
        if not self._left[name]:
            del self._left[name]
        return taken
