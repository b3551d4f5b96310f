"""What a failing test shows of the code that it ran on, for the comparison with known mistakes."""

from autograder.bridge.outside.transcript import Answer, Transcript
from autograder.failures.failed_check import CheckFailed

TOLD = "told"


def evidence(error: BaseException | None, transcript: Transcript) -> Transcript:
    """Return all answers of the test, or what a check tells of them in words.

    Chance and a student's own names change answers, but not what a test counts in them.
    """
    if isinstance(error, CheckFailed) and error.telling:
        return Transcript([Answer(TOLD, "", error.telling)])
    return transcript


def is_told(transcript: Transcript) -> bool:
    """Whether this is a sentence in place of answers."""
    return [answer.operation for answer in transcript.answers] == [TOLD]
