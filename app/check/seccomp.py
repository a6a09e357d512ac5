"""The system calls a check may make, as a seccomp filter for x86-64 and arm64. Standard library only.

An allow list: what is not named is refused with EPERM, so a call that a later kernel adds is refused too. Some calls
depend on their arguments (`clone` makes threads but no processes). The program is built per architecture and can be
simulated; tests/check/test_seccomp.py does that for both tables, whatever machine it runs on.
"""

from __future__ import annotations

import errno
import functools
import struct
from collections.abc import Iterator
from dataclasses import dataclass

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
EPERM, ENOSYS, ENOTTY = (ERRNO | code for code in (errno.EPERM, errno.ENOSYS, errno.ENOTTY))
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000
_ACCESS_MODE, _TRUNCATE = 0o3, 0o1000
_CLONE_THREAD = 0x10000
_PLACEHOLDER = 0x7D1D7D1D  # above any process id, and no other constant of the program

# name, number on x86-64, number on arm64; "-" where the call does not exist there
_CALLS = """
read 0 63, write 1 64, open 2 -, openat 257 56, close 3 57, stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79,
statx 332 291, poll 7 -, ppoll 271 73, lseek 8 62, pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66,
preadv 295 69, pwritev 296 70, access 21 -, faccessat 269 48, faccessat2 439 439, pipe 22 -, pipe2 293 59,
select 23 -, pselect6 270 72, dup 32 23, dup2 33 -, dup3 292 24, fcntl 72 25, ioctl 16 29, flock 73 32,
fsync 74 82, fdatasync 75 83, ftruncate 77 46, getdents 78 -, getdents64 217 61, getcwd 79 17, chdir 80 49,
fchdir 81 50, rename 82 -, renameat 264 38, renameat2 316 276, mkdir 83 -, mkdirat 258 34, rmdir 84 -,
unlink 87 -, unlinkat 263 35, readlink 89 -, readlinkat 267 78, umask 95 166, statfs 137 43, fstatfs 138 44,
copy_file_range 326 285, sendfile 40 71, fadvise64 221 223, fallocate 285 47, eventfd 284 -, eventfd2 290 19,
epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22,
timerfd_create 283 85, timerfd_settime 286 86, timerfd_gettime 287 87, close_range 436 436, socketpair 53 199,
sendto 44 206, recvfrom 45 207, shutdown 48 210, mmap 9 222, mprotect 10 226, munmap 11 215, brk 12 214,
mremap 25 216, madvise 28 233, msync 26 227, mincore 27 232, membarrier 324 283, get_mempolicy 239 236,
getpid 39 172, getppid 110 173, gettid 186 178, getuid 102 174, geteuid 107 175, getgid 104 176,
getegid 108 177, getgroups 115 158, getresuid 118 148, getresgid 120 150, getpgrp 111 -, getpgid 121 155,
getsid 124 156, getrlimit 97 163, getrusage 98 165, times 100 153, sysinfo 99 179, uname 63 160,
prlimit64 302 261, sched_yield 24 124, sched_getaffinity 204 123, sched_getparam 143 121,
sched_getscheduler 145 120, sched_get_priority_max 146 125, sched_get_priority_min 147 126,
getpriority 140 141, getcpu 309 168, set_tid_address 218 96, set_robust_list 273 99, get_robust_list 274 100,
rseq 334 293, exit 60 93, exit_group 231 94, wait4 61 260, waitid 247 95, clone 56 220, clone3 435 435,
prctl 157 167, futex 202 98, restart_syscall 219 128, capget 125 90, nanosleep 35 101, clock_nanosleep 230 115,
clock_gettime 228 113, clock_getres 229 114, gettimeofday 96 169, time 201 -, alarm 37 -, setitimer 38 103,
getitimer 36 102, rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136,
rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sigaltstack 131 132, kill 62 129, tgkill 234 131, pause 34 -,
getrandom 318 278, openat2 437 437
"""


@dataclass(frozen=True, slots=True)
class Architecture:
    """One machine's calls. `audit` is its AUDIT_ARCH number; `calls` holds the allowed ones."""

    name: str
    audit: int
    calls: dict[str, int]


def _architecture(name: str, audit: int, column: int) -> Architecture:
    rows = [row.split() for row in _CALLS.split(",")]
    return Architecture(name, audit, {row[0]: int(row[column]) for row in rows if row[column] != "-"})


ARCHITECTURES = {
    "x86_64": _architecture("x86_64", 0xC000003E, 1),
    "aarch64": _architecture("aarch64", 0xC00000B7, 2),
}

_FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)  # no F_SETOWN, F_SETSIG: they send signals
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, how wide, FIONREAD, FIONBIO, FIO[N]CLEX
_PRCTL = (3, 15, 16, 0x53564D41)  # PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_SET_VMA


def program(architecture: Architecture, pid: int) -> list[Instruction]:
    """Return the filter for a process whose id is `pid`: signals and limits may name that process only."""
    code: list[Instruction] = [
        (LOAD, 0, 0, _ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, architecture.audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, _NUMBER),
        (JUMP_GREATER_EQUAL, 0, 1, _X32),
        (RETURN, 0, 0, KILL),
    ]
    conditional = dict(_conditions(pid))
    for name, number in architecture.calls.items():
        body = conditional.get(name, [(RETURN, 0, 0, ALLOW)])
        code += [(JUMP_EQUAL, 0, len(body), number), *body]
    return [*code, (RETURN, 0, 0, EPERM)]


@functools.cache
def _template(name: str) -> bytes:
    return packed(program(ARCHITECTURES[name], _PLACEHOLDER))


def for_process(name: str, pid: int) -> bytes:
    """Return the packed filter of the architecture `name` for the process `pid`; all but the id is built once."""
    return _template(name).replace(struct.pack("I", _PLACEHOLDER), struct.pack("I", pid))


def packed(instructions: list[Instruction]) -> bytes:
    """Return the instructions as an array of struct sock_filter."""
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def _conditions(pid: int) -> Iterator[tuple[str, list[Instruction]]]:
    """Yield the calls whose answer depends on their arguments, with the code that decides."""
    yield "clone", [_low(0), (JUMP_SET, 0, 1, _CLONE_THREAD), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, EPERM)]
    yield "clone3", [(RETURN, 0, 0, ENOSYS)]  # its flags are in memory, where a filter cannot look; libc falls back
    yield "openat2", [(RETURN, 0, 0, ENOSYS)]
    yield "open", _no_truncation_by_readers(1)
    yield "openat", _no_truncation_by_readers(2)
    yield "fcntl", _one_of(1, _FCNTL, EPERM)
    yield "ioctl", _one_of(1, _IOCTL, ENOTTY)
    yield "prctl", _one_of(0, _PRCTL, EPERM)
    yield "kill", _one_of(0, (pid,), EPERM)
    yield "tgkill", _one_of(0, (pid,), EPERM)
    yield "prlimit64", _one_of(0, (0, pid), EPERM)
    yield "socketpair", _one_of(0, (1,), EPERM)
    yield "sendto", [*_zero(4), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, EPERM)]  # to its peer, never to an address


def _low(argument: int) -> Instruction:
    return (LOAD, 0, 0, _ARGUMENTS + 8 * argument)


def _high(argument: int) -> Instruction:
    return (LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4)


def _one_of(argument: int, values: tuple[int, ...], refusal: int) -> list[Instruction]:
    """Allow where the 32-bit argument is one of `values`. The kernel ignores the upper half of these arguments."""
    tests: list[Instruction] = [(JUMP_EQUAL, len(values) - i, 0, value & 0xFFFFFFFF) for i, value in enumerate(values)]
    return [_low(argument), *tests, (RETURN, 0, 0, refusal), (RETURN, 0, 0, ALLOW)]


def _zero(argument: int) -> list[Instruction]:
    """Go on where the 64-bit argument is 0, else skip one more instruction."""
    return [_low(argument), (JUMP_EQUAL, 0, 3, 0), _high(argument), (JUMP_EQUAL, 0, 1, 0)]


def _no_truncation_by_readers(argument: int) -> list[Instruction]:
    """Refuse O_TRUNC together with O_RDONLY, which Landlock before its third version does not see."""
    return [
        _low(argument),
        (JUMP_SET, 0, 3, _TRUNCATE),
        (AND, 0, 0, _ACCESS_MODE),
        (JUMP_EQUAL, 0, 1, 0),
        (RETURN, 0, 0, EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
