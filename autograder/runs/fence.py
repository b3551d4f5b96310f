"""One entry never ends the loop that serves a class: what fails for it is told, and the others go on.

Names and contents are bytes of students, which can meet an error that nobody thought of. A loop
that lives as long as the class therefore catches every error here.
"""

from autograder.records import CourseError, InfrastructureError, RefusedError

_EXPECTED = (CourseError, InfrastructureError, RefusedError)


def sentence_of(error: Exception) -> str:
    """Return an error as a sentence; one that is a fault of this program says so."""
    if isinstance(error, _EXPECTED):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}."
    what = f"{type(error).__name__}: {error}"
    return f"A fault of the autograder ({what}); all others are served. Please report it."


def told(error: Exception, entry: str = "") -> str:
    """Return an error as a sentence; one that is a fault of this program with the entry that met it."""
    sentence = sentence_of(error)
    return f"{entry}: {sentence}" if entry and not may_pass(error) else sentence


def as_failure(error: Exception) -> InfrastructureError:
    """Return an error as a failure of the machine, which is never a score."""
    return (
        error if isinstance(error, InfrastructureError) else InfrastructureError(sentence_of(error))
    )


def may_pass(error: Exception) -> bool:
    """Whether the same can succeed later, as on a disk that is full now."""
    return isinstance(error, (*_EXPECTED, OSError))
