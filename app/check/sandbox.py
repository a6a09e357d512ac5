"""Confine the calling process for one check, for good. Standard library only: runs in the engine's Python, after fork.

Layers, in order: a private view of the file system with its own network and a small memory-backed folder (namespaces),
an unprivileged user, no capabilities, `no_new_privs`, Landlock, a seccomp allow list. Landlock and seccomp are required
and hold alone; namespaces are used wherever the kernel permits them. Anything required that is missing raises
`SandboxUnavailable`. What each layer does and does not do: docs/safety.md, docs/decisions/0003-sandbox.md.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import stat
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.check import seccomp

VIEW_CHOICES = ("auto", "require", "off")
NOBODY = 65534
FIRST_USER = 1_700_000_000  # each check of a root service gets a user id of its own: this plus its process id

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x40000000
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 1, 24, 38, 22
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _MOUNT_SETATTR = 444, 445, 446, 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# execute, read file, make device, make socket, make fifo, make block device, make symlink: not even in the own folder
_NEVER_IN_FOLDER = 1 << 0 | 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12

_libc = ctypes.CDLL(None, use_errno=True)


class SandboxUnavailable(RuntimeError):
    """The kernel does not give what confinement needs; nothing may be run."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What one check may touch.

    Shape: `read` are folders and files, absolute; `folder` is an empty folder of the check's own, the only place it may
    write, and only where the view gives it a memory-backed one of `folder_bytes` and `folder_files`; `processes`
    bounds its threads, `cpus` are the processors it may run on (empty: all); `view` is one of VIEW_CHOICES.
    """

    read: tuple[str, ...]
    folder: str
    folder_bytes: int = 8 << 20
    folder_files: int = 512
    processes: int = 64
    cpus: tuple[int, ...] = ()
    view: str = "auto"

    def to_json(self) -> dict[str, Any]:
        """Return the policy as it travels in a job."""
        return asdict(self)


def read_policy(value: dict[str, Any]) -> Policy:
    """Read a policy that `Policy.to_json` wrote. Raises: SandboxUnavailable: it is not one."""
    try:
        policy = Policy(**{**value, "read": tuple(value["read"]), "cpus": tuple(value.get("cpus", ()))})
    except (TypeError, KeyError, AttributeError) as error:
        raise SandboxUnavailable(f"not a policy: {error}") from None
    paths = (*policy.read, policy.folder)
    if not all(isinstance(p, str) and p.startswith("/") and "\0" not in p for p in paths):
        raise SandboxUnavailable("a policy's paths are absolute")
    numbers = (policy.folder_bytes, policy.folder_files, policy.processes)
    if (
        policy.view not in VIEW_CHOICES
        or not all(type(n) is int and n > 0 for n in numbers)
        or not all(type(n) is int and n >= 0 for n in policy.cpus)
    ):
        raise SandboxUnavailable("a policy's numbers are positive, its view one of " + ", ".join(VIEW_CHOICES))
    return policy


def enter(
    policy: dict[str, Any], *, keep: Iterable[int] = (), prepare: Callable[[], None] | None = None
) -> tuple[str, ...]:
    """Confine this process and return the names of the layers in force.

    Shape:  `keep` are descriptors that stay open besides 0, 1 and 2; `prepare` runs in the new view with the folder
            writable and as the unprivileged user, before Landlock and seccomp, and is the last chance to put files in.
    Raises: SandboxUnavailable: something required is missing. The process is then half confined and must end.
    """
    try:
        return _enter(read_policy(policy), tuple(keep), prepare)
    except OSError as error:
        raise SandboxUnavailable(f"{error.strerror or error} ({error.filename or 'system call'})") from error


def _enter(policy: Policy, keep: tuple[int, ...], prepare: Callable[[], None] | None) -> tuple[str, ...]:
    architecture = seccomp.ARCHITECTURES.get(platform.machine())
    if architecture is None or sys.maxsize < 2**32 or sys.byteorder != "little":
        raise SandboxUnavailable(f"no system call table for {platform.machine()}")
    if (abi := landlock_abi()) < 1:
        raise SandboxUnavailable("Landlock is missing: Linux 5.13 or later, with landlock among its security modules")
    if len(os.listdir("/proc/self/task")) != 1:
        raise SandboxUnavailable("a process with threads cannot be confined")
    parent = os.getppid()
    _close_others(keep)
    _write_if_possible("/proc/self/oom_score_adj", b"1000")
    os.umask(0o077)
    if policy.cpus:
        os.sched_setaffinity(0, policy.cpus)
    layers = ["closed descriptors"]
    viewed = policy.view != "off" and _private_view(policy, require=policy.view == "require")
    layers += ["user namespace"] * (viewed == "user") + ["private view", "no network"] * bool(viewed)
    layers += _drop_user(policy, viewed=bool(viewed))
    os.chdir(policy.folder)
    if prepare is not None:
        prepare()
    _limit(resource.RLIMIT_NPROC, policy.processes + (0 if viewed == "user" or os.getuid() >= FIRST_USER else _mine()))
    _limit(resource.RLIMIT_CORE, 0)
    _drop_capabilities()
    _prctl(_PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        raise SandboxUnavailable("the parent is gone")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _landlock(abi, policy.read, policy.folder if viewed else None, policy.folder)
    _seccomp(architecture)
    return (*layers, "no capabilities", "no_new_privs", f"landlock {abi}", "seccomp")


def landlock_abi() -> int:
    """Return the version of Landlock that the kernel offers, 0 for none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


# -- the view -----------------------------------------------------------------------------------------------


def _private_view(policy: Policy, *, require: bool) -> str:
    """Move into a file system that holds only what the policy names. Return "root", "user", or "" if not permitted."""
    user, group = os.geteuid(), os.getegid()
    kinds = _NEWNS | _NEWNET | _NEWIPC | _NEWUTS
    if user == 0 and _libc.unshare(kinds) == 0:
        how = "root"
    elif _libc.unshare(kinds | _NEWUSER) == 0:
        how = "user"
        _write("/proc/self/setgroups", b"deny")
        _write("/proc/self/uid_map", f"{NOBODY} {user} 1".encode())
        _write("/proc/self/gid_map", f"{NOBODY} {group} 1".encode())
    elif require:
        raise SandboxUnavailable("namespaces are not permitted here, and the policy requires them")
    else:
        return ""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _build_root(policy, owner=FIRST_USER + os.getpid() if how == "root" and _users_available() else NOBODY)
    return how


def _build_root(policy: Policy, *, owner: int) -> None:
    """Make the new root in memory, bind what may be read, and change to it."""
    root = policy.folder
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755,size=64k,nr_inodes=4096")
    process = f"/proc/{os.getpid()}"
    bound: list[str] = []
    for path in sorted({*policy.read, process}):
        if path == "/proc/self" or any(path == b or path.startswith(b + "/") for b in bound):
            continue
        source = os.path.realpath(path)
        if not os.path.exists(source):
            continue
        _make_place(root + path, is_folder=os.path.isdir(source))
        _mount(source, root + path, None, _MS_BIND | _MS_REC)
        _read_only(root + path, devices=path.startswith("/dev/"))
        bound.append(path)
    if not os.path.lexists(root + "/proc/self"):
        os.symlink(str(os.getpid()), root + "/proc/self")
    _make_place(root + policy.folder, is_folder=True)
    _mount(
        "tmpfs", root + policy.folder, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC,
        f"mode=0700,size={policy.folder_bytes},nr_inodes={policy.folder_files},uid={owner},gid={owner}",
    )  # fmt: skip
    os.chdir(root)
    _checked(_libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")
    _mount(None, "/", None, 32 | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)  # MS_REMOUNT


def _make_place(path: str, *, is_folder: bool) -> None:
    """Make the folder or empty file that something is bound to; its parents may be passed by everybody."""
    before = os.umask(0o022)
    try:
        os.makedirs(path if is_folder else os.path.dirname(path), 0o755, exist_ok=True)
        if not is_folder and not os.path.lexists(path):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    finally:
        os.umask(before)


def _read_only(path: str, *, devices: bool) -> None:
    """Make a bind and everything under it read-only."""
    attributes = _MS_RDONLY | _MS_NOSUID | (0 if devices else _MS_NODEV)
    request = struct.pack("=QQQQ", attributes, 0, 0, 0)
    at_recursive, at_cwd = 0x8000, -100
    _checked(_libc.syscall(_MOUNT_SETATTR, at_cwd, path.encode(), at_recursive, request, ctypes.c_size_t(32)), path)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [None if w is None else os.fsencode(w) for w in (source, target, kind, options)]
    _checked(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), target)


# -- the user -----------------------------------------------------------------------------------------------


def _users_available() -> bool:
    """Say whether this user namespace maps ids as high as FIRST_USER."""
    try:
        with open("/proc/self/uid_map") as lines:
            return any(
                int(first) <= FIRST_USER and int(first) + int(count) > FIRST_USER + (1 << 22)
                for first, _, count in (line.split() for line in lines)
            )
    except (OSError, ValueError):
        return False


def _drop_user(policy: Policy, *, viewed: bool) -> list[str]:
    """Become an unprivileged user if this is root. Raises: SandboxUnavailable: that user could not read the engine."""
    if os.geteuid() != 0:
        return []
    if not viewed and (hidden := [path for path in policy.read if os.path.exists(path) and not _reachable(path)]):
        raise SandboxUnavailable(
            f"namespaces are not permitted here and {hidden[0]} is closed to unprivileged users: "
            "run the service as an ordinary user, or put it where everybody may read"
        )
    user = FIRST_USER + os.getpid() if _users_available() else NOBODY
    if not viewed:
        os.chown(policy.folder, user, user)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    return ["own user"]


def _reachable(path: str) -> bool:
    """Say whether a stranger may pass to `path` and read it."""
    path = os.path.realpath(path)
    wanted = stat.S_IROTH | (stat.S_IXOTH if os.path.isdir(path) else 0)
    if os.stat(path).st_mode & wanted != wanted:
        return False
    while path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
    return True


def _drop_capabilities() -> None:
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 and ctypes.get_errno() == errno.EINVAL:
            break
    header = struct.pack("=Ii", 0x20080522, 0)
    _checked(_libc.syscall(_CAPSET[platform.machine()], header, b"\0" * 24), "capset")


def _mine() -> int:
    """Return how many tasks this user has already; RLIMIT_NPROC counts those too."""
    user, count = os.getuid(), 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return count


# -- Landlock and seccomp -----------------------------------------------------------------------------------


def _landlock(abi: int, read: Sequence[str], write: str | None, folder: str) -> None:
    """Leave reading below `read` and `folder`, changing below `write`, and nothing else."""
    rights = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1
    request = struct.pack("=QQQ", rights, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    request = request[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, request, ctypes.c_size_t(len(request)), 0), "landlock")
    for path in (*read, folder):
        if os.path.exists(path):
            allowed = _READ_FILE | _READ_DIR if os.path.isdir(path) else _READ_FILE
            if path == "/dev/null":
                allowed |= 1 << 1
            _allow(ruleset, path, allowed)
    if write is not None:
        _allow(ruleset, write, rights & ~_NEVER_IN_FOLDER)
    _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _checked(_libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, descriptor), 0), path)
    finally:
        os.close(descriptor)


def _seccomp(architecture: seccomp.Architecture) -> None:
    code = seccomp.for_process(architecture.name, os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    request = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    _checked(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.c_char_p(request), 0, 0), "seccomp")


# -- small things -------------------------------------------------------------------------------------------


def _close_others(keep: tuple[int, ...]) -> None:
    kept = {0, 1, 2, *keep}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, value, 0, 0, 0), f"prctl {option}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)
    return result


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _write_if_possible(path: str, data: bytes) -> None:
    try:
        _write(path, data)
    except OSError:
        return
