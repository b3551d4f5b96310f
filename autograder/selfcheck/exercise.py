"""The checks of an exercise that is not graded, run from its own file: `python harder.py`."""

from collections.abc import Callable, Sequence

from autograder.walls.outside.alarm import TestAlarm, alarm

SECONDS = 60.0  # of processor time, for each check


def run_checks(checks: Sequence[Callable[[], object]]) -> None:
    """Run the checks in order up to the first that fails, and print a line for each; none runs for ever."""
    for check in checks:
        try:
            with alarm(SECONDS):
                check()
        except TestAlarm:
            print(
                f"✗ {check.__doc__}\n    Stopped after {SECONDS:g} seconds of work. Is there a loop that never ends?"
            )
            break
        except (AssertionError, NotImplementedError) as error:
            print(f"✗ {check.__doc__}\n    {error}")
            break
        print(f"✓ {check.__doc__}")
