"""The errors of a sandbox that does not work here; importable on every system, also without fork."""

from autograder.records import InfrastructureError


class SandboxUnavailableError(InfrastructureError):
    """A sandbox tier does not work on this machine; `str(error)` names the tier, the reason and the remedy."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.reason} {self.remedy}".strip()


class SandboxImportError(SandboxUnavailableError):
    """A module that workers need cannot be imported inside the sandbox; `module` is its name."""

    def __init__(self, reason: str, remedy: str, module: str) -> None:
        super().__init__(reason, remedy)
        self.args = (reason, remedy, module)
        self.module = module


class ForkServerNeededError(InfrastructureError):
    """This process may start no fork server, and there is none with these modules."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        super().__init__("The sandbox died.")
        self.modules = modules
