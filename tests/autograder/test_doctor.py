"""What the doctor says of a machine on which a tier does not work: the setting in the way, and what to do about it."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from pathlib import Path

import pytest

from autograder.records import Grade, InfrastructureError
from autograder.runs import trial_submission
from autograder.walls.inside import landlock, seccomp
from autograder.walls.inside.jail import SAFE_TIERS, TIERS
from autograder.walls.outside import doctor, remedies
from autograder.walls.outside.command import import_failed, unavailable
from autograder.walls.outside.doctor import TierReport
from autograder.walls.outside.remedies import remedy


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A Linux with bubblewrap, Landlock and an ordinary user; its settings are changed by writing them."""
    monkeypatch.setattr(remedies, "ON_LINUX", True)
    monkeypatch.setattr(remedies, "SETTINGS", tmp_path)
    monkeypatch.setattr(remedies, "STATUS", tmp_path / "status")
    monkeypatch.setattr(remedies.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(remedies, "kernel_version", lambda: (6, 8))
    monkeypatch.setattr(landlock, "version", lambda: 5)
    monkeypatch.setattr(seccomp, "supported", lambda: True)
    monkeypatch.setattr(remedies, "MARKS_OF_CONTAINERS", (str(tmp_path / "container"),))
    for name in ("container", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    return Machine(tmp_path)


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.status(0)

    def status(self, seccomp_mode: int) -> None:
        (self.folder / "status").write_text(f"Name:\tpython\nSeccomp:\t{seccomp_mode}\n")

    def set(self, name: str, value: int) -> None:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{value}\n")


def test_a_machine_on_which_nothing_is_in_the_way_says_so(machine):
    for kind in remedies.KINDS:
        machine.set(f"user/max_{kind}_namespaces", 96365)
    machine.set("kernel/unprivileged_userns_clone", 1)
    machine.set("kernel/apparmor_restrict_unprivileged_userns", 0)
    nothing = "No setting that is known to forbid it was found."
    assert {remedy(tier) for tier in SAFE_TIERS} == {nothing}


@pytest.mark.parametrize(
    ("name", "value", "command"),
    [
        ("user/max_user_namespaces", 0, "sysctl user.max_user_namespaces=15000"),
        ("user/max_mnt_namespaces", 0, "sysctl user.max_mnt_namespaces=15000"),
        ("kernel/unprivileged_userns_clone", 0, "sysctl kernel.unprivileged_userns_clone=1"),
        ("kernel/apparmor_restrict_unprivileged_userns", 1, "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
    ],
)  # fmt: skip
def test_the_setting_in_the_way_is_named_with_the_command_that_changes_it(
    machine, name, value, command
):
    machine.set(name, value)
    assert command in remedy("namespaces") and "Install" not in remedy("namespaces")
    assert command not in remedy("landlock")


def test_every_cause_is_named(machine, monkeypatch):
    monkeypatch.setattr(remedies.shutil, "which", lambda name: None)
    machine.set("user/max_user_namespaces", 0)
    machine.set("user/max_net_namespaces", 0)
    said = remedy("namespaces")
    causes = ("Install bubblewrap", "max_user_namespaces", "max_net_namespaces")
    assert all(words in said for words in causes)


def test_advice_about_containers_is_given_in_containers_alone(machine, monkeypatch):
    for user in (1000, 0):
        monkeypatch.setattr(os, "getuid", lambda user=user: user)
        assert "No setting" in remedy("namespaces")
    (machine.folder / "container").touch()
    said = remedy("namespaces")
    assert "CAP_SYS_ADMIN" in said and "seccomp=unconfined" in said


@pytest.mark.parametrize(
    ("name", "value"), [("container", "podman"), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")]
)
def test_a_container_is_known_by_its_variables(machine, monkeypatch, name, value):
    assert not remedies.in_container()
    monkeypatch.setenv(name, value)
    assert remedies.in_container()


def test_a_filter_outside_a_container_is_named(machine):
    machine.status(2)
    said = remedy("namespaces")
    assert "filter of system calls" in said and "container" not in said


@pytest.mark.parametrize(
    ("number", "mode", "words"),
    [
        (errno.EOPNOTSUPP, 0, "lsm="),
        (errno.ENOSYS, 0, "CONFIG_SECURITY_LANDLOCK"),
        (errno.ENOSYS, 2, "filter of system calls"),
        (errno.EPERM, 2, "filter of system calls"),
        (errno.EPERM, 0, "CONFIG_SECURITY_LANDLOCK"),
    ],
)
def test_without_landlock_the_reason_is_named(machine, monkeypatch, number, mode, words):
    monkeypatch.setattr(landlock, "version", lambda: ctypes.set_errno(number) * 0)
    machine.status(mode)
    assert words in remedy("landlock")
    assert "andlock" not in remedy("namespaces")
    if words == "filter of system calls":
        (machine.folder / "container").touch()
        assert "filter of this container" in remedy("landlock")


def test_an_old_kernel_is_named(machine, monkeypatch):
    monkeypatch.setattr(remedies, "kernel_version", lambda: (4, 18))
    assert f"Linux {platform.release()}; Landlock needs Linux 5.13" in remedy("landlock")


def test_without_a_filter_no_safe_tier_works(machine, monkeypatch):
    (machine.folder / "status").write_text("Name:\tpython\n")
    assert all("CONFIG_SECCOMP_FILTER" in remedy(tier) for tier in SAFE_TIERS)
    monkeypatch.setattr(seccomp, "supported", lambda: False)
    assert all("use an x86_64 or aarch64 machine" in remedy(tier) for tier in SAFE_TIERS)


def test_elsewhere_a_container_is_the_way(monkeypatch):
    monkeypatch.setattr(remedies, "ON_LINUX", False)
    assert all("Linux container or WSL 2" in remedy(tier) for tier in SAFE_TIERS)
    assert "WSL 2" in remedy("unsafe")


def test_the_report_separates_what_is_wrong_from_what_to_do(machine, monkeypatch):
    machine.set("user/max_net_namespaces", 0)

    def try_tier(tier: str) -> str:
        raise unavailable(tier, "It said: ENOSPC.")

    monkeypatch.setattr(doctor.launcher, "try_tier", try_tier)
    reports = {report.tier: report for report in doctor.examine()}
    assert list(reports) == list(TIERS)
    reason = "The sandbox 'namespaces' does not work here. It said: ENOSPC."
    assert reports["namespaces"].reason == reason
    assert "user.max_net_namespaces is 0" in reports["namespaces"].hint


# ------------------------------------------------------------------ grading a small submission


def course_with(tmp_path: Path, preload: str):
    from autograder.course.reading import load_course
    from tests.autograder.tiny_course import write_tiny_course

    course = load_course(write_tiny_course(tmp_path))
    assignment = course.assignments[0].model_copy(update={"preload": (preload,)})
    return course.model_copy(update={"assignments": (assignment,)})


@pytest.fixture
def working(tiers) -> TierReport:
    return next(report for report in tiers.values() if report.works)


@pytest.mark.slow
def test_the_doctor_grades_a_small_submission_with_what_the_assignments_import(working, tmp_path):
    report = trial_submission.with_trial(working, course_with(tmp_path, "no_such_library.models"))
    assert report.works
    (problem,) = report.problems
    assert problem.startswith("01_adding cannot be graded. 02_trial needs no_such_library, which")


def test_a_tier_in_which_grading_fails_does_not_work(working, tmp_path, monkeypatch):
    """The boundaries of the tier hold, and `examine` calls it working; PyTorch cannot be imported in it."""
    failure = import_failed(
        working.tier, "torch", "OSError: [Errno 30] Read-only file system: '/box/tmp1'"
    )
    monkeypatch.setattr(trial_submission, "try_grading", lambda tier, preloads: {(): failure})
    report = trial_submission.with_trial(working, None)
    assert not report.works
    assert report.reason.startswith("`import torch` failed inside the sandbox")
    assert "outside the sandbox" in report.hint and "container" not in report.hint


def test_only_the_tier_that_grades_imports_what_the_assignments_need(tmp_path, monkeypatch):
    tried = {}
    reports = [TierReport(tier, tier != "namespaces", "") for tier in TIERS]

    def try_grading(tier, preloads):
        tried[tier] = preloads
        return {}

    monkeypatch.setattr(trial_submission, "examine", lambda: reports)
    monkeypatch.setattr(trial_submission, "try_grading", try_grading)
    trial_submission.examine_grading(course_with(tmp_path, "yaml"))
    assert tried == {"landlock": {("yaml",)}, "unsafe": set()}


def test_a_right_answer_without_its_points_is_a_failure():
    grade = Grade("trial", "01_trial", "refused", 0.0, 1.0, problem="It is not UTF-8.")
    with pytest.raises(InfrastructureError, match="graded as wrong: It is not UTF-8"):
        trial_submission.require_full_marks(grade)
