"""How the kit and PyTorch are installed: the choice of a build, the set-up, what is missing, a namesake."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from autograder import __version__
from autograder.cli import app
from autograder.installation import distribution, install
from tests.autograder.tiny_course import write_tiny_course

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
INDEX = "https://wheels.example.org/cpu"
WHEEL = f"kit/attention_by_hand-{__version__}-py3-none-any.whl"
FROM_THE_KIT = (
    f"--force-reinstall --no-deps {WHEEL}` in the folder that your course's archive unpacks to"
)
NONE_FOUND = (
    "ERROR: Could not find a version that satisfies the requirement torch>=2.2 (from versions: {})\n"
    "ERROR: No matching distribution found for torch>=2.2\n"
)
RETRYING = "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError'\n"


class FakePip:
    """Stands for `subprocess.run` in the installer: records pip's arguments and installs a PyTorch, or fails."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.installed: str | None = None
        self.at_hand: str | None = None  # the version of a wheel that find-links has
        self.failure = ""  # what pip says when no index has a PyTorch

    def run(self, command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        assert command[: len(install.PIP)] == list(install.PIP)
        arguments = command[len(install.PIP) :]
        self.commands.append(arguments)
        if "--no-index" in arguments:
            self.installed = self.at_hand or self.installed
            return subprocess.CompletedProcess(command, 0 if self.at_hand else 1, "", "")
        wants_torch = any(argument.startswith("torch>=") for argument in arguments)
        if wants_torch and self.failure:
            return subprocess.CompletedProcess(command, 1, "", self.failure)
        if wants_torch:
            self.installed = "2.13.0+cpu" if "--extra-index-url" in arguments else "2.13.0"
        return subprocess.CompletedProcess(command, 0, "", "")

    def from_an_index(self) -> list[list[str]]:
        """Return the commands that took PyTorch from an index."""
        return [
            each
            for each in self.commands
            if each[-1].startswith("torch>=") and "--no-index" not in each
        ]


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> FakePip:
    """A Linux without a graphics card and without PyTorch, whose CPU index answers."""
    fake = FakePip()
    monkeypatch.setattr(install.subprocess, "run", fake.run)
    monkeypatch.setattr(install, "installed_version", lambda: fake.installed)
    monkeypatch.setattr(install, "has_graphics_card", lambda: False)
    monkeypatch.setattr(install, "answers", lambda index: True)
    monkeypatch.setattr(install.sys, "platform", "linux")
    monkeypatch.setenv("PYTORCH_CPU_INDEX", INDEX)
    monkeypatch.delenv("PYTORCH", raising=False)
    return fake


# ---------------------------------------------------------------------- which PyTorch


def test_machine_without_a_graphics_card_gets_the_cpu_build(pip, capsys):
    assert install.main(["-r", "requirements.txt"]) == 0
    assert pip.from_an_index() == [["-q", "--extra-index-url", INDEX, "torch>=2.2"]]
    assert pip.commands[-1] == ["-qq", "-r", "requirements.txt"]
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith(f"Installing PyTorch's CPU build from {INDEX}, about 200 MB.")
    assert others == [
        "PyTorch 2.13.0+cpu is installed.",
        "Installing the other packages.",
        "Everything is installed.",
    ]


def test_log_of_pip_is_shown_if_wanted(pip):
    assert install.main(["-v", "kit"]) == 0
    assert pip.commands[-1] == ["kit"]


def test_nothing_is_said_to_be_installed_if_pip_fails(pip, capsys, monkeypatch):
    pip.installed = "2.13.0"
    failed = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(install.subprocess, "run", lambda *_, **__: failed)
    assert install.main(["kit"]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "Not everything could be installed; pip's message above says why."


# Each machine: what is wanted of PYTORCH, what differs from the Linux of the fixture, where pip takes PyTorch from,
# the exit code, and what is said.
CPU, USUAL = [["-q", "--extra-index-url", INDEX, "torch>=2.2"]], [["-q", "torch>=2.2"]]
CARD, SILENT = {"has_graphics_card": lambda: True}, {"answers": lambda index: False}
MACHINES = {
    "silent index": ("", SILENT, USUAL, 0, f"because {INDEX} does not answer"),
    "graphics card": ("", CARD, USUAL, 0, "There is a graphics card"),
    "mac": ("", {"platform": "darwin"}, USUAL, 0, "PyTorch 2.13.0 is installed."),
    "windows": ("", {"platform": "win32"}, USUAL, 0, "PyTorch 2.13.0 is installed."),
    "cpu wanted beside a card": ("cpu", CARD, CPU, 0, "CPU build"),
    "cuda wanted without a card": ("cuda", {}, USUAL, 0, "about 3 GB"),
    "cpu wanted of a silent index": ("cpu", SILENT, [], 1, f"PYTORCH=cpu, but {INDEX} does not"),
    "skip": ("skip", {}, [], 1, "PYTORCH=skip, but no PyTorch 2.2 or later is installed"),
    "unknown choice": ("gpu", {}, [], 1, "PYTORCH is cpu, cuda or skip, not `gpu`.\n"),
}


@pytest.mark.parametrize("wanted, machine, taken, code, said", MACHINES.values(), ids=MACHINES)
def test_machine_and_variable_decide(pip, capsys, monkeypatch, wanted, machine, taken, code, said):
    monkeypatch.setenv("PYTORCH", wanted)
    for name, value in machine.items():
        monkeypatch.setattr(install.sys if name == "platform" else install, name, value)
    assert install.main(["kit"]) == code
    assert pip.from_an_index() == taken
    shown = capsys.readouterr().err
    assert said in shown
    assert ("3 GB" in shown) == (taken == USUAL and "platform" not in machine)
    assert (["-qq", "kit"] in pip.commands) == (code == 0)


@pytest.mark.parametrize("wanted", ["", "cpu", "cuda", "skip"])
def test_installed_pytorch_stays(pip, capsys, monkeypatch, wanted):
    monkeypatch.setenv("PYTORCH", wanted)
    pip.installed = "2.9.1+rocm6.4"
    assert install.main(["kit"]) == 0
    assert pip.commands == [["-qq", "kit"]]
    said = capsys.readouterr().err
    assert said.startswith("PyTorch 2.9.1+rocm6.4 is already installed and stays.")
    assert ("uninstall torch" in said) == (wanted in ("cpu", "cuda"))


@pytest.mark.parametrize("wanted, taken", [("", []), ("cuda", USUAL)])
def test_wheel_at_hand_is_taken_before_any_index(pip, capsys, monkeypatch, wanted, taken):
    monkeypatch.setenv("PYTORCH", wanted)
    pip.at_hand = "2.13.0+cpu"
    assert install.main(["kit"]) == 0
    assert pip.from_an_index() == taken
    assert ("installed from a wheel at hand" in capsys.readouterr().err) == (not wanted)


NO_RELEASE = "PyTorch has no release for Python {python} "
SEE_ABOVE = "PyTorch could not be installed; pip's message above says why."
FAILURES = [
    (NONE_FOUND.format("none"), (3, 9), NO_RELEASE + "yet: use an older Python"),
    (NONE_FOUND.format("0.1.2, 0.1.2.post2"), (3, 9), NO_RELEASE + "yet: use an older"),
    (NONE_FOUND.format("2.14.0"), (3, 9), "The PyTorch that is pinned here has no release for Python {python}: use"),
    (NONE_FOUND.format("none"), (9, 9), NO_RELEASE + "on "),
    (RETRYING + NONE_FOUND.format("none"), (3, 9), SEE_ABOVE),
    ("ERROR: No space left on device\n", (3, 9), SEE_ABOVE),
]  # fmt: skip


@pytest.mark.parametrize("failure, newest, sentence", FAILURES)
def test_failure_of_pip_is_explained(pip, capsys, monkeypatch, failure, newest, sentence):
    monkeypatch.setattr(install, "NEWEST_PYTHON", newest)
    pip.failure = failure
    assert install.main(["kit"]) == 1
    said = capsys.readouterr().err
    assert failure in said
    python = "{}.{}".format(*sys.version_info)
    assert said.splitlines()[-1].startswith(sentence.format(python=python))
    assert ["kit"] not in pip.commands


def test_constraints_let_another_pytorch_stay(monkeypatch, tmp_path):
    pins = tmp_path / "pins.txt"
    pins.write_text("# pinned\nSymPy==1.14.0\nnumpy==2.2.6\ntorch==2.13.0\n", "utf-8")
    changed = tmp_path / "changed"
    changed.mkdir()
    monkeypatch.setattr(
        install.metadata,
        "requires",
        lambda name: ["sympy==1.13.1", 'triton; platform_system == "Linux"'],
    )
    for same in ("2.13.0", "2.13.0+cpu"):
        monkeypatch.setattr(install, "installed_version", lambda same=same: same)
        assert install.fitting(pins, changed) == pins
    monkeypatch.setattr(install, "installed_version", lambda: "2.9.1+cu128")
    assert (
        install.fitting(pins, changed).read_text("utf-8")
        == "# pinned\nnumpy==2.2.6\ntorch==2.9.1+cu128\n"
    )


def test_versions_are_those_of_the_project():
    lowest = next(line for line in PROJECT["dependencies"] if line.startswith("torch"))
    assert lowest == "torch>={}.{}".format(*install.LOWEST)
    versions = re.findall(r"Python :: 3\.(\d+)", "\n".join(PROJECT["classifiers"]))
    assert [(3, int(versions[0])), (3, int(versions[-1]))] == [
        install.LOWEST_PYTHON,
        install.NEWEST_PYTHON,
    ]
    assert PROJECT["requires-python"] == ">={}.{}".format(*install.LOWEST_PYTHON)


# ---------------------------------------------------------------------- with a real pip


# ---------------------------------------------------------------------- scripts/setup

FAKE_PYTHON = """\
#!/bin/sh
case "$1" in
    -c) exec {python} "$@" ;;
esac
case "$*" in
    "-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
    "-m pip --version") ;;
    *install.py*) echo "$*" >> {log}; exit ${{FAKE_CODE:-0}} ;;
    *) echo "$*" >> {log} ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with a blank in its name, `scripts/setup` and a Python that only records what it is asked to do."""
    root = tmp_path / "my clone"
    (root / "scripts").mkdir(parents=True)
    (root / "scripts" / "setup").write_bytes((ROOT / "scripts" / "setup").read_bytes())
    (root / "scripts" / "setup").chmod(0o755)
    programs = tmp_path / "programs"
    programs.mkdir()
    fake = FAKE_PYTHON.format(
        python=shlex.quote(sys.executable), log=shlex.quote(str(tmp_path / "log"))
    )
    write_program(programs / "python3", fake)
    write_program(programs / "bwrap", "#!/bin/sh\n")
    return root


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def set_up(clone: Path, **variables: str) -> tuple[int, list[str]]:
    """Run scripts/setup; returns its exit code and what Python was asked to do."""
    path = f"{clone.parent / 'programs'}:/usr/bin:/bin"
    done = subprocess.run(
        [clone / "scripts" / "setup", "report"], env={"PATH": path, **variables},
        capture_output=True, text=True,
    )  # fmt: skip
    log = clone.parent / "log"
    return done.returncode, log.read_text("utf-8").splitlines() if log.exists() else []


@pytest.mark.parametrize("is_new", [True, False])
def test_failed_setup_removes_only_an_environment_that_it_made(clone, is_new):
    if not is_new:
        write_program(
            clone / ".venv" / "bin" / "python",
            (clone.parent / "programs" / "python3").read_text("utf-8"),
        )
    code, _ = set_up(clone, FAKE_CODE="1")
    assert code == 1
    assert (clone / ".venv").exists() == (not is_new)


@pytest.mark.parametrize(
    ("origin", "is_removed"),
    [
        ('{{"url": "{clone}", "dir_info": {{"editable": true}}}}', True),
        ('{{"url": "{clone}/other", "dir_info": {{"editable": true}}}}', False),
        ('{{"url": "{clone}", "dir_info": {{}}}}', False),
        (None, False),
    ],
)
def test_setup_removes_this_package_under_its_former_name(clone, origin, is_removed):
    packages = clone.parent / "packages"
    write_distribution(packages, "0.1.0", origin and origin.format(clone=clone.as_uri()))
    (clone / "autograder.egg-info").mkdir()
    code, commands = set_up(clone, PYTHONPATH=str(packages))
    assert code == 0
    assert ("-m pip uninstall -qq --yes autograder" in commands) == is_removed
    assert not (clone / "autograder.egg-info").exists()


def write_distribution(folder: Path, version: str, origin: str | None = None) -> None:
    """Write what pip records of an installed distribution that is called autograder."""
    about = folder / f"autograder-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: autograder\nVersion: {version}\n", "utf-8"
    )
    if origin:
        (about / "direct_url.json").write_text(origin, "utf-8")


# ---------------------------------------------------------------------- what is missing


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"]))
def test_command_for_an_extra_names_its_packages(extra):
    python, *words = shlex.split(distribution.install_extra(extra))
    assert Path(python).absolute() == Path(sys.executable)
    assert words[:3] == ["-m", "pip", "install"]
    wanted = []
    for line in PROJECT["optional-dependencies"][extra]:
        requirement = Requirement(line)
        requirement.marker = None  # all hold for this Python, or the extra could not be installed
        wanted.append(str(requirement))
    assert sorted(str(Requirement(word)) for word in words[3:]) == sorted(wanted)


def test_extras_that_messages_name_exist():
    sources = [file.read_text("utf-8") for file in (ROOT / "autograder").rglob("*.py")]
    named = {
        extra
        for text in sources
        for extra in re.findall(r"""install_extra\(["'](\w+)["']\)""", text)
    }
    assert named == {"cluster", "nbgrader", "report", "similar", "watch"}
    assert named <= set(PROJECT["optional-dependencies"])


# ---------------------------------------------------------------------- another package of the same name


@pytest.mark.parametrize("command", ["progress", pytest.param("build", marks=pytest.mark.slow)])
def test_package_of_the_same_name_is_reported(monkeypatch, tmp_path, command):
    write_tiny_course(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = CliRunner().invoke(app, [command])
    assert "Another package" not in before.stderr
    write_distribution(tmp_path / "packages", "3.7.7")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    done = CliRunner().invoke(app, [command])
    first, _, others = done.stderr.partition("\n")
    assert first.startswith(
        "Another package called `autograder` (3.7.7) is installed in this environment"
    )
    assert "-m pip uninstall autograder`, and then install attention-by-hand again with `" in first
    assert (done.exit_code, done.stdout, others) == (before.exit_code, before.stdout, before.stderr)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ('{{"url": "{folder}", "dir_info": {{"editable": true}}}}', "--editable {path}"),
        ('{{"url": "{folder}", "dir_info": {{}}}}', "--force-reinstall --no-deps {path}"),
        ('{{"url": "{folder}/gone.whl", "archive_info": {{}}}}', FROM_THE_KIT),
        ('{{"url": "https://example.org/kit.whl"}}', FROM_THE_KIT),
        (None, FROM_THE_KIT),
    ],
)
def test_command_that_installs_again_is_that_of_the_first_time(
    monkeypatch, tmp_path, origin, command
):
    about = tmp_path / "packages" / "attention_by_hand-0.1.0.dist-info"
    about.mkdir(parents=True)
    facts = "Metadata-Version: 2.1\nName: attention-by-hand\nVersion: 0.1.0\nRequires-Dist: rich\n"
    (about / "METADATA").write_text(facts, "utf-8")
    if origin:
        (about / "direct_url.json").write_text(origin.format(folder=tmp_path.as_uri()), "utf-8")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    write_distribution(tmp_path / "packages", "3.7.7")
    warning = distribution.warning_about_namesake() or ""
    assert f" -m pip install {command.format(path=tmp_path)}" in warning
