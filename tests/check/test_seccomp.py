"""The filter of both architectures, run by a simulator of the kernel's machine for it."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from app.check import seccomp
from app.check.seccomp import ALLOW, ARCHITECTURES, ENOSYS, ENOTTY, EPERM, KILL, Architecture

PID = 4321
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
DANGEROUS = """
execve execveat fork vfork ptrace process_vm_readv process_vm_writev socket connect bind listen accept accept4
sendmsg sendmmsg recvmsg mount umount2 pivot_root chroot unshare setns bpf perf_event_open io_uring_setup
userfaultfd memfd_create keyctl add_key request_key pidfd_open pidfd_getfd pidfd_send_signal tkill
rt_sigqueueinfo setuid setresuid setgid chmod fchmod fchmodat chown fchown fchownat utimensat setxattr symlink
symlinkat link linkat mknod mknodat truncate open_by_handle_at name_to_handle_at kexec_load init_module reboot
swapon personality quotactl shmget msgget semget mq_open inotify_init1 fanotify_init sched_setaffinity
setpriority setrlimit seccomp capset landlock_restrict_self process_madvise kcmp
"""
BOTH = pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=lambda a: a.name)


def run(code: list[seccomp.Instruction], number: int, arguments: tuple[int, ...], audit: int) -> int:
    """Return what the filter answers, as the kernel's classic BPF machine does."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, audit, 0, *(a & (2**64 - 1) for a in padded))
    accumulator, at = 0, 0
    for _ in range(len(code)):
        operation, yes, no, constant = code[at]
        at += 1
        if operation == seccomp.LOAD:
            (accumulator,) = struct.unpack_from("=I", data, constant)
        elif operation == seccomp.AND:
            accumulator &= constant
        elif operation == seccomp.RETURN:
            return constant
        else:
            test = {
                seccomp.JUMP_EQUAL: accumulator == constant,
                seccomp.JUMP_GREATER_EQUAL: accumulator >= constant,
                seccomp.JUMP_SET: bool(accumulator & constant),
            }[operation]
            at += yes if test else no
    raise AssertionError("the program does not end")


def answer(architecture: Architecture, call: str | int, *arguments: int) -> int:
    number = architecture.calls[call] if isinstance(call, str) else call
    return run(seccomp.program(architecture, PID), number, arguments, architecture.audit)


@BOTH
def test_only_the_named_calls_are_allowed(architecture: Architecture) -> None:
    code = seccomp.program(architecture, PID)
    conditional = {name for name, _ in seccomp._conditions(PID)}
    plain = {number for name, number in architecture.calls.items() if name not in conditional}

    for number in [*range(600), 0x3FFFFFFF]:
        got = run(code, number, (), architecture.audit)
        if number in plain:
            assert got == ALLOW
        elif number not in architecture.calls.values():
            assert got == EPERM


@BOTH
def test_dangerous_calls_are_not_in_the_table(architecture: Architecture) -> None:
    assert not set(DANGEROUS.split()) & set(architecture.calls)


@BOTH
def test_another_architecture_is_killed(architecture: Architecture) -> None:
    code = seccomp.program(architecture, PID)

    for audit in (0x40000003, 0x40000028, 0, *(a.audit for a in ARCHITECTURES.values() if a != architecture)):
        assert run(code, architecture.calls["read"], (), audit) == KILL


def test_x32_calls_are_killed() -> None:
    architecture = ARCHITECTURES["x86_64"]

    assert run(seccomp.program(architecture, PID), 0x40000000, (), architecture.audit) == KILL


@BOTH
@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("clone", (0x3D0F00,), ALLOW),  # what glibc asks for a thread
        ("clone", (0x1200011,), EPERM),  # what glibc asks for a process
        ("clone", (0x10000 << 32,), EPERM),
        ("clone3", (), ENOSYS),
        ("openat2", (), ENOSYS),
        ("openat", (0, 0, 0o0), ALLOW),
        ("openat", (0, 0, 0o1101), ALLOW),
        ("openat", (0, 0, 0o1000), EPERM),
        ("openat", (0, 0, 0o2001000), EPERM),
        ("fcntl", (3, 1030), ALLOW),
        ("fcntl", (3, 8), EPERM),
        ("fcntl", (3, 10), EPERM),
        ("fcntl", (3, 15), EPERM),
        ("fcntl", (3, 1031), EPERM),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), ENOTTY),  # TIOCSTI types into the terminal
        ("prctl", (15,), ALLOW),
        ("prctl", (22,), EPERM),
        ("kill", (PID, 9), ALLOW),
        ("kill", (PID - 1, 9), EPERM),
        ("kill", (0, 9), EPERM),
        ("kill", (2**64 - 1, 9), EPERM),
        ("tgkill", (PID, PID, 6), ALLOW),
        ("tgkill", (1, 1, 6), EPERM),
        ("prlimit64", (0,), ALLOW),
        ("prlimit64", (PID,), ALLOW),
        ("prlimit64", (1,), EPERM),
        ("socketpair", (1,), ALLOW),
        ("socketpair", (2,), EPERM),
        ("sendto", (3, 1, 1, 0, 0, 0), ALLOW),
        ("sendto", (3, 1, 1, 0, 0x7FFF00000000, 16), EPERM),
        ("sendto", (3, 1, 1, 0, 0x1000, 16), EPERM),
    ],
)
def test_calls_that_depend_on_their_arguments(
    architecture: Architecture, call: str, arguments: tuple[int, ...], expected: int
) -> None:
    assert answer(architecture, call, *arguments) == expected


def test_open_by_its_old_name_does_not_truncate_either() -> None:
    assert answer(ARCHITECTURES["x86_64"], "open", 0, 0o1000) == EPERM
    assert answer(ARCHITECTURES["x86_64"], "open", 0, 0) == ALLOW


@BOTH
def test_the_kernel_takes_the_program(architecture: Architecture) -> None:
    code = seccomp.program(architecture, PID)

    assert len(code) <= 4096
    for at, (operation, yes, no, _) in enumerate(code):
        assert operation in {
            *(seccomp.LOAD, seccomp.JUMP_EQUAL, seccomp.JUMP_GREATER_EQUAL),
            *(seccomp.JUMP_SET, seccomp.AND, seccomp.RETURN),
        }
        assert 0 <= yes <= 255 and 0 <= no <= 255
        assert at + max(yes, no) < len(code)
    assert code[-1][0] == seccomp.RETURN


@BOTH
def test_the_program_of_a_process_is_the_built_one(architecture: Architecture) -> None:
    assert seccomp.for_process(architecture.name, PID) == seccomp.packed(seccomp.program(architecture, PID))


@BOTH
def test_numbers_are_those_of_the_kernel_headers(architecture: Architecture) -> None:
    header = HEADERS[architecture.name]
    if not header.exists():
        pytest.skip(f"{header} is not installed")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    numbers = {name: int(number) for name, number in reversed(found)}
    if architecture.name == "aarch64":
        numbers["newfstatat"] = numbers["fstatat"]

    assert {name: numbers.get(name) for name in architecture.calls} == architecture.calls


def test_refusals_are_the_errors_they_say() -> None:
    assert [code & 0xFFFF for code in (EPERM, ENOSYS, ENOTTY)] == [errno.EPERM, errno.ENOSYS, errno.ENOTTY]
