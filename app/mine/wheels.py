"""Published archives: fetched by pip, verified, read without being built or run."""

from __future__ import annotations

import email
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Final

from app.errors import BadInput, NotFound, TooLarge, Unavailable

MAX_ARCHIVE_BYTES: Final = 2 * 1024**3
MAX_MEMBERS: Final = 200_000
MAX_MODULE_BYTES: Final = 8 * 1024**2
MAX_SOURCE_BYTES: Final = 1024**3
MAX_METADATA_BYTES: Final = 4 * 1024**2
FETCH_TIMEOUT_S: Final = 1800
PINS: Final = Path(__file__).resolve().parents[2] / "data" / "releases.toml"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?\Z")
_VERSION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.!+_-]{0,98}[A-Za-z0-9])?\Z")
_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True, slots=True)
class Metadata:
    """What an archive says about itself; empty where it says nothing."""

    name: str = ""
    version: str = ""
    license: str = ""
    project_urls: tuple[tuple[str, str], ...] = ()
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Archive:
    """A wheel, a source distribution or a directory.

    Shape: `modules` are (path, bytes) of its `.py` files, sorted, paths relative to the archive's root with "/";
    `sha256` is of the file, or for a directory of the paths and contents of its modules.
    """

    path: Path
    sha256: str
    modules: tuple[tuple[str, int], ...]
    metadata: Metadata

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """Open the archive for reading modules."""
        with opened(self.path) as reader:
            yield reader


class Reader:
    """Reads single modules; never writes one to disk."""

    def read(self, path: str) -> bytes:
        """Return the bytes of one module.

        Raises: TooLarge: it holds more than its declared or the allowed size.
        """
        with self._stream(path) as stream:
            data = stream.read(MAX_MODULE_BYTES + 1)
        if len(data) > MAX_MODULE_BYTES:
            raise TooLarge(f"{path} is larger than {MAX_MODULE_BYTES // 1024**2} MiB")
        return data

    def names(self) -> list[tuple[str, int]]:
        """Return path and size of every regular member, unsafe names left out."""
        raise NotImplementedError

    def _stream(self, path: str) -> IO[bytes]:
        raise NotImplementedError


class _Zip(Reader):
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def names(self) -> list[tuple[str, int]]:
        return [(i.filename, i.file_size) for i in self._archive.infolist() if not i.is_dir() and _is_safe(i.filename)]

    def _stream(self, path: str) -> IO[bytes]:
        return self._archive.open(path)


class _Tar(Reader):
    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._members: dict[str, tarfile.TarInfo] = {}
        for count, member in enumerate(archive):
            if count >= MAX_MEMBERS:
                raise TooLarge(f"an archive of more than {MAX_MEMBERS:,} members is not read")
            # The first directory is NAME-VERSION; links and devices are never followed.
            _, _, name = member.name.removeprefix("./").partition("/")
            if member.isreg() and name and _is_safe(name):
                self._members[name] = member

    def names(self) -> list[tuple[str, int]]:
        return [(name, member.size) for name, member in self._members.items()]

    def _stream(self, path: str) -> IO[bytes]:
        stream = self._archive.extractfile(self._members[path])
        assert stream is not None
        return stream


class _Directory(Reader):
    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def names(self) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(
                f for f in folders if not f.startswith(".") and f not in ("__pycache__", "node_modules")
            )
            for file in files:
                path = Path(folder, file)
                if path.is_file() and not path.is_symlink():
                    found.append((path.relative_to(self._root).as_posix(), path.stat().st_size))
            if len(found) > MAX_MEMBERS:
                raise TooLarge(f"a directory of more than {MAX_MEMBERS:,} files is not read")
        return found

    def _stream(self, path: str) -> IO[bytes]:
        return (self._root / path).open("rb")


def _is_safe(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return not (name.startswith("/") or "\\" in name or "\x00" in name or ".." in parts or len(name) > 1000)


@contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """Open a wheel, a source distribution or a directory for reading.

    Raises: BadInput: it is none of them, or damaged.
    """
    try:
        if path.is_dir():
            yield _Directory(path)
        elif path.name.endswith((".whl", ".zip")):
            with zipfile.ZipFile(path) as zipped:
                if len(zipped.infolist()) > MAX_MEMBERS:
                    raise TooLarge(f"{path.name}: more than {MAX_MEMBERS:,} members")
                yield _Zip(zipped)
        elif path.name.endswith((".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar")):
            with tarfile.open(path) as tarred:
                yield _Tar(tarred)
        else:
            raise BadInput(f"{path.name!r} is neither a wheel, a source distribution nor a directory")
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise BadInput(f"{path.name} cannot be read: {error}") from error


def archive(path: Path) -> Archive:
    """Return what an archive holds, sizes checked before anything is unpacked.

    Raises: BadInput: it is no archive. TooLarge: it would unpack to more than is read. NotFound: no such file.
    """
    if not path.exists():
        raise NotFound(f"there is no {path.name!r} to read")
    if path.is_file() and path.stat().st_size > MAX_ARCHIVE_BYTES:
        raise TooLarge(f"{path.name} is larger than {MAX_ARCHIVE_BYTES // 1024**3} GiB")
    with opened(path) as reader:
        names = reader.names()
        modules = tuple(sorted({(n, s) for n, s in names if n.endswith(".py") and not _is_data(n)}))
        if sum(size for _, size in modules) > MAX_SOURCE_BYTES:
            raise TooLarge(f"{path.name} holds more than {MAX_SOURCE_BYTES // 1024**2} MiB of Python source")
        metadata = _metadata(reader, names)
        if path.is_dir():
            digest = hashlib.sha256()
            for name, _ in modules:
                digest.update(f"{name}\0".encode())
                try:
                    digest.update(hashlib.sha256(reader.read(name)).digest())
                except TooLarge:
                    digest.update(b"too large")
            return Archive(path, digest.hexdigest(), modules, metadata)
    return Archive(path, sha256(path), modules, metadata)


def _is_data(name: str) -> bool:
    return name.partition("/")[0].endswith((".data", ".dist-info"))


def _metadata(reader: Reader, names: list[tuple[str, int]]) -> Metadata:
    candidates = [
        n for n, s in names if s <= MAX_METADATA_BYTES and re.fullmatch(r"[^/]+\.dist-info/METADATA|PKG-INFO", n)
    ]
    if not candidates:
        return Metadata()
    message = email.message_from_bytes(reader.read(candidates[0]))
    urls = [tuple(part.strip() for part in str(v).partition(",")[::2]) for v in message.get_all("Project-URL", [])]
    home = message.get("Home-page")
    if home:
        urls.append(("Homepage", str(home)))
    return Metadata(
        name=str(message.get("Name", "")),
        version=str(message.get("Version", "")),
        license=str(message.get("License-Expression") or message.get("License") or "")[:200],
        project_urls=tuple((label, url) for label, url in urls if label and url),
        requires=tuple(str(v) for v in message.get_all("Requires-Dist", [])),
    )


def sha256(path: Path) -> str:
    """Return the hex digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@cache
def pins(path: Path = PINS) -> dict[str, str]:
    """Return the pinned digests by file name.

    Source: data/releases.toml
    """
    if not path.exists():
        return {}
    with path.open("rb") as stream:
        data = tomllib.load(stream)
    return {
        file["name"]: file["sha256"] for releases in data.values() for release in releases for file in release["files"]
    }


def pinned_versions(package: str, path: Path = PINS) -> tuple[str, ...]:
    """Return the versions of a package that data/releases.toml pins, as written there (oldest first)."""
    if not path.exists():
        return ()
    with path.open("rb") as stream:
        return tuple(str(release["version"]) for release in tomllib.load(stream).get(package, ()))


def verify(path: Path) -> None:
    """Check a file against its pin; a file without one passes.

    Raises: BadInput: the digest differs.
    """
    expected = pins().get(path.name)
    if expected is None:
        return
    found = sha256(path)
    if found != expected:
        raise BadInput(
            f"{path.name}: its sha256 is {found}, but data/releases.toml expects {expected}; the file was damaged or "
            "replaced. Remove it and fetch it again."
        )


def fetch(package: str, version: str, cache: Path) -> Path:
    """Return the archive of one release, downloaded by pip unless it is there already, and verified.

    A wheel is taken where there is one, else the source distribution as it is: pip is told never to build, and
    its own configuration of indexes, mirrors and certificates holds.
    Raises: BadInput: a malformed name or version, or a wrong digest. NotFound: there is no such release.
        Unavailable: the index cannot be reached.
    """
    if not _NAME.match(package) or not _VERSION.match(version):
        raise BadInput(f"{package}=={version} is no package name and version")
    cache.mkdir(parents=True, exist_ok=True)
    for path in sorted(cache.iterdir()):
        if _is_release(path.name, package, version):
            verify(path)
            return path
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as scratch:
        path = _download(package, version, Path(scratch))
        verify(path)
        final = cache / path.name
        path.replace(final)
    return final


def _is_release(file: str, package: str, version: str) -> bool:
    name = _SEPARATORS.sub("-", package).lower()
    if file.endswith(".whl"):
        found_name, _, rest = file.removesuffix(".whl").partition("-")
        found_version = rest.partition("-")[0]
    elif file.endswith(".tar.gz"):
        found_name, _, found_version = file.removesuffix(".tar.gz").rpartition("-")
    else:
        return False
    return _SEPARATORS.sub("-", found_name).lower() == name and _same_version(found_version, version)


def _same_version(left: str, right: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(left.replace("_", "+")) == Version(right)
    except InvalidVersion:
        return left == right


def _download(package: str, version: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--no-input"]
    command += ["--quiet", "--only-binary", ":all:", "--dest", str(folder)]
    # A release may support other interpreters than the one that runs the miner, which only reads its source.
    options = [[], *(["--python-version", minor] for minor in ("3.13", "3.12", "3.10", "3.9"))]
    commands = [[*command, *extra, f"{package}=={version}"] for extra in options]
    source = [sys.executable, "-P", str(Path(__file__).with_name("unbuilt.py")), package, version, str(folder)]
    commands.insert(1, source)
    failures: list[str] = []
    for each in commands:
        failure = _run(each, f"{package}=={version}")
        found = [path for path in sorted(folder.iterdir()) if _is_release(path.name, package, version)]
        if found:
            return found[0]
        if "No matching distribution" not in failure:
            raise Unavailable(f"{package}=={version} could not be fetched: {failure}")
        failures.append(failure)
    raise NotFound(f"there is no {package}=={version} to fetch: {failures[0]}")


def _run(command: list[str], what: str) -> str:
    """Run one download; return why it failed, "" where it did not."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"fetching {what} took longer than {FETCH_TIMEOUT_S} s") from error
    if "Could not fetch URL" in done.stderr or "WARNING: Retrying" in done.stderr:
        return "the package index cannot be reached"
    errors = [line for line in done.stderr.strip().splitlines() if line.startswith("ERROR")]
    if errors:
        return errors[-1].removeprefix("ERROR: ")[:300]
    return f"pip ended with {done.returncode}" if done.returncode else ""
