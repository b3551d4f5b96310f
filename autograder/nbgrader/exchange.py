"""nbgrader's exchange: nothing is released into a course's folder that other users of the machine can read."""

import stat
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseAssignment


class ReleaseAssignment(ExchangeReleaseAssignment):
    """nbgrader's release of an assignment, refused where it would lead students to the solutions."""

    def ensure_root(self) -> None:
        """Create the exchange; fails with a sentence if students who reach it could read the course."""
        if sentence := exchange_problem(Path(self.coursedir.root), Path(self.root)):
            self.fail(sentence)
        super().ensure_root()


def exchange_problem(course: Path, exchange: Path) -> str | None:
    """Return the reason that this exchange must not be used; None if students cannot reach the course through it."""
    course = course.resolve()
    exchange = exchange.resolve()
    inside = exchange == course or course in exchange.parents
    if not inside or not all(
        path.stat().st_mode & stat.S_IXOTH for path in (course, *course.parents)
    ):
        return None
    return (
        f"The exchange {exchange} is inside the course's folder, which other users of this machine can read, with its "
        "solutions. Set c.Exchange.root in nbgrader_config.py to a folder outside, such as /srv/nbgrader/exchange, "
        f"or close the course to others: chmod o-rwx {course}"
    )
