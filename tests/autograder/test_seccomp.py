"""The system call filter: its program for both architectures, run by a small interpreter."""

from __future__ import annotations

import os
import re
import struct
from functools import cache
from pathlib import Path

import pytest

from autograder.walls.inside import seccomp
from autograder.walls.inside.jail import SAFE_TIERS, TIERS

MACHINES = ["x86_64", "aarch64"]
OWN_PID = 4711


def decide(
    machine: str,
    number: int,
    *arguments: int,
    architecture: int | None = None,
    filter_: bytes | None = None,
) -> int:
    """Return the kernel's decision, from a small interpreter of a filter: a worker's, or the one given."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    architecture = seccomp.ARCHITECTURES[machine] if architecture is None else architecture
    call = struct.pack("=IIQ6Q", number, architecture, 0, *padded)
    filter_ = filter_ or worker_filter(machine)
    program = steps_of(filter_)
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        if code == seccomp.RETURN:
            return value
        if code == seccomp.LOAD:
            accumulator = struct.unpack_from("=I", call, value)[0]
            continue
        holds = {
            seccomp.JUMP_EQUAL: accumulator == value,
            seccomp.JUMP_AT_LEAST: accumulator >= value,
            seccomp.JUMP_ANY_BIT: bool(accumulator & value),
        }[code]
        at += if_true if holds else if_false


@cache
def steps_of(program: bytes) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("=HBBI", program))


@cache
def worker_filter(machine: str) -> bytes:
    return seccomp.filter_program(machine, OWN_PID)


def number_of(name: str, machine: str) -> int | None:
    return seccomp.CALLS[name][0][MACHINES.index(machine)]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_listed_call_is_allowed_and_no_other(machine):
    column = MACHINES.index(machine)
    allowed = {numbers[column] for numbers, rule in seccomp.CALLS.values() if rule == "allow"} - {
        None
    }
    by_argument = {
        number_of(name, machine)
        for name in ("clone", "kill", "tgkill", "fcntl", "ioctl", "prlimit64")
    }
    by_argument |= {number_of(name, machine) for name in ("sendto", "recvfrom")}
    for number in range(600):
        decision = decide(machine, number, 9999, 9999, 0, seccomp.MSG_OOB)
        if number in allowed:
            assert decision == seccomp.ALLOW, number
        elif number == number_of("futex", machine):
            assert decision == seccomp.AGAIN, number
        elif number in by_argument:
            assert decision == seccomp.REFUSE, number
        else:
            assert decision == (seccomp.UNKNOWN if number >= 424 else seccomp.REFUSE), number


@pytest.mark.parametrize("machine", MACHINES)
def test_a_fork_may_do_what_a_worker_may_and_a_few_calls_more(machine):
    column = MACHINES.index(machine)
    fork = seccomp.filter_program(machine, OWN_PID, seccomp.OF_FORKS)
    more = {
        number
        for number in range(600)
        if decide(machine, number, filter_=fork) != decide(machine, number)
    }
    marked = {numbers[column] for numbers, rule in seccomp.CALLS.values() if rule == "fork"}
    assert more == marked
    names = {name for name, (_, rule) in seccomp.CALLS.items() if rule == "fork"}
    assert names == {
        *("sendmsg", "recvmsg", "socketpair", "setsockopt", "getpeername"),
        *("memfd_create", "wait4"),
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_two_filters_together_allow_what_one_allows_and_report_the_rest(machine):
    """The kernel takes the stricter answer: a refusal before a report, a report before consent."""
    strict = seccomp.filter_program(machine, OWN_PID, seccomp.OF_WATCHED_WORKERS)
    reporting = seccomp.reporting_program(machine)
    inet, unix, netlink = 2, 1, 16
    told = dict(execve=(0,), execveat=(0,), fork=(0,), vfork=(0,), socket=(inet,), clone=(17,))
    for number in range(600):
        for first in (0, unix, inet, netlink, 17, seccomp.CLONE_THREAD, OWN_PID):
            alone = decide(machine, number, first)
            both = {decide(machine, number, first, filter_=each) for each in (strict, reporting)}
            together = min(both, key=STRICTNESS.index)
            if together == seccomp.REPORT:
                assert alone == seccomp.REFUSE, (number, first)
            else:
                assert together == alone, (number, first)
    for name, arguments in told.items():
        number = number_of(name, machine)
        if number is not None:
            assert decide(machine, number, *arguments, filter_=reporting) == seccomp.REPORT
    for family in (unix, netlink):
        number = number_of("socket", machine)
        assert decide(machine, number, family, filter_=reporting) == seccomp.REFUSE


STRICTNESS = [
    seccomp.KILL_PROCESS,
    *(seccomp.REFUSE, seccomp.UNKNOWN, seccomp.AGAIN),
    *(seccomp.REPORT, seccomp.ALLOW),
]

REFUSED = {
    "x86_64": dict(
        execve=59, execveat=322, socket=41, socketpair=53, connect=42, fork=57, vfork=58,
        ptrace=101, mount=165, unshare=272, setns=308, tkill=200, rt_sigqueueinfo=129,
        prctl=157, chmod=90, fchmodat=268, truncate=76, memfd_create=319, shmget=29, keyctl=250,
        bpf=321, setpriority=141, process_vm_readv=310, sched_setaffinity=203, symlink=88,
        link=86, mknod=133, setsid=112, flock=73, sendmsg=46, recvmsg=47, add_key=248, chroot=161,
        seccomp=317, personality=135, userfaultfd=323, perf_event_open=298, umount2=166, pivot_root=155,
        setuid=105, setgroups=116, setresuid=117, chown=92, setxattr=188, clock_settime=227,
        settimeofday=164, sethostname=170, setdomainname=171, reboot=169, swapon=167, acct=163,
        quotactl=179, msgget=68, semget=64, mq_open=240, process_vm_writev=311, kcmp=312,
        init_module=175, kexec_load=246, sched_setscheduler=144,
    ),
    "aarch64": dict(
        execve=221, execveat=281, socket=198, socketpair=199, connect=203, ptrace=117, mount=40,
        unshare=97, setns=268, tkill=130, rt_sigqueueinfo=138, prctl=167, fchmodat=53,
        truncate=45, memfd_create=279, shmget=194, keyctl=219, bpf=280, setpriority=140,
        process_vm_readv=270, sched_setaffinity=122, symlinkat=36, linkat=37, mknodat=33,
        setsid=157, sendmsg=211, recvmsg=212, flock=32,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("machine", "name"), [(m, name) for m in MACHINES for name in REFUSED[m]])
def test_harmful_calls_are_refused(machine, name):
    assert decide(machine, REFUSED[machine][name]) == seccomp.REFUSE


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_are_filtered_by_their_arguments(machine):
    def on(name: str, *arguments: int) -> int:
        return decide(machine, number_of(name, machine), *arguments)

    for name in ("sendto", "recvfrom"):
        assert on(name, 3, 0, 8, 0x4000) == seccomp.ALLOW
        assert on(name, 3, 0, 8, seccomp.MSG_OOB) == on(name, 3, 0, 8, 0x4001) == seccomp.REFUSE
    glibc_thread, glibc_fork = 0x3D0F00, 0x01200011
    assert on("clone", glibc_thread) == seccomp.ALLOW
    assert on("clone", glibc_fork) == seccomp.REFUSE
    assert on("clone3", glibc_thread) == seccomp.UNKNOWN
    for name in ("kill", "tgkill"):
        assert on(name, OWN_PID, 9) == seccomp.ALLOW
        for other in (0, 1, OWN_PID + 1, 2**32 - 1, 2**64 - 1):
            assert on(name, other, 9) == seccomp.REFUSE
    assert on("prlimit64", 0) == on("prlimit64", OWN_PID) == seccomp.ALLOW
    assert on("prlimit64", 1) == seccomp.REFUSE
    assert on("ioctl", 0, 0x5401) == seccomp.ALLOW
    assert (
        on("ioctl", 0, 0x5412) == on("ioctl", 0, 0x541C) == on("ioctl", 0, 0x8901) == seccomp.REFUSE
    )
    assert on("ioctl", 0, 0x5412 | 1 << 32) == seccomp.REFUSE
    assert on("fcntl", 3, 4) == seccomp.ALLOW
    locks, leases = (5, 6, 7, 36, 37, 38), (1024, 1025, 1026)
    assert {on("fcntl", 3, command) for command in (*locks, *leases)} == {seccomp.REFUSE}
    wait, wake, wait_by_clock = 0, 1, 9 | 256
    for operation in (wait, wake, wait_by_clock):
        assert on("futex", 0, operation) == seccomp.AGAIN
        assert on("futex", 0, operation | seccomp.FUTEX_PRIVATE) == seccomp.ALLOW
    assert on("fcntl", 3, 8) == on("fcntl", 3, 10) == on("fcntl", 3, 1031) == seccomp.REFUSE


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_kill_the_process(machine):
    i386, arm = 0x40000003, 0x40000028
    other = seccomp.ARCHITECTURES[MACHINES[1 - MACHINES.index(machine)]]
    for architecture in (i386, arm, other, 0):
        assert decide(machine, 0, architecture=architecture) == seccomp.KILL_PROCESS


@pytest.mark.parametrize("number", [0x40000000, 0x40000000 | 39, 0x40000000 | 59, 2**32 - 1])
def test_x32_calls_are_refused(number):
    assert decide("x86_64", number) == seccomp.REFUSE


HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+)\s+(\d+)"),
    "aarch64": ("/usr/include/asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+)\s+(\d+)"),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_table_agrees_with_the_kernels_headers(machine):
    path, pattern = HEADERS[machine]
    if not os.path.exists(path):
        pytest.skip(f"The kernel's headers are not installed ({path}).")
    kernel = {name: int(number) for name, number in re.findall(pattern, Path(path).read_text())}
    kernel.setdefault("newfstatat", kernel.get("fstatat"))
    ours = {name: number_of(name, machine) for name in seccomp.CALLS}
    ours |= {name: number for name, number in REFUSED[machine].items()}
    assert {
        name: (number, kernel.get(name))
        for name, number in ours.items()
        if number != kernel.get(name)
    } == {}


def test_jump_that_cannot_be_encoded_is_refused():
    jump = (seccomp.JUMP_EQUAL, 1, "far")
    with pytest.raises(KeyError, match="far"):
        seccomp.assemble([jump])
    between = [(seccomp.RETURN, seccomp.ALLOW)] * 255
    assert seccomp.assemble([jump, *between, "far"])
    with pytest.raises(struct.error):
        seccomp.assemble([jump, *between, *between[:1], "far"])
    with pytest.raises(struct.error):
        seccomp.assemble(["far", jump])


def test_a_safe_tier_does_not_work_without_a_filter(monkeypatch):
    monkeypatch.setattr(seccomp, "supported", lambda: False)
    for tier in SAFE_TIERS:
        with pytest.raises(OSError, match="there is no list of system calls"):
            TIERS[tier]((), ()).filter_calls()
    TIERS["unsafe"]((), ()).filter_calls()
