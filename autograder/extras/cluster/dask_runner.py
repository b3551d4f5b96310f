"""The runner for Dask: it says how to install Dask where it is missing."""

from collections.abc import Iterator

from autograder.installation.distribution import install_extra
from autograder.records import Grade, InfrastructureError, Submission
from autograder.runs.pool import Plan
from autograder.runs.run import RunSummary


class DaskRunner:
    """Grades on the workers of a Dask cluster, such as `local:4`, `tls://scheduler:8786`, or one that a file names."""

    def __init__(self, address: str) -> None:
        self._address = address

    def graded(
        self, plan: Plan, submissions: Iterator[Submission], summary: RunSummary
    ) -> Iterator[Grade]:
        """Yield grades as they arrive; raises InfrastructureError without Dask, or if the cluster cannot grade."""
        try:
            from autograder.extras.cluster.cluster import graded
        except ImportError as error:
            missing = f"--cluster needs Dask, which cannot be imported ({error})."
            raise InfrastructureError(f"{missing} Install it: {install_extra('cluster')}") from None
        return graded(plan, submissions, self._address, summary.failures, summary.notes)
