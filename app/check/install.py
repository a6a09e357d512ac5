"""Install check engines: one shared environment, and a release's unpacked wheel on top of it.

Everything is under one folder (`var/engines`), pinned by `data/engines/` and `data/releases.toml`. Each part is made
in a scratch folder and moved into place when whole, so an interrupted installation goes on where it stopped
and a second one does nothing. An engine is usable once its self-test has run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from app.check import options
from app.check.pool import Engine
from app.check.protocol import Hardware
from app.check.selftest import self_test
from app.errors import BadInput, Broken, NotFound, Unavailable

DATA = Path(__file__).resolve().parents[2] / "data" / "engines"
EXPECTED = ("pass", "pass", "pass", "fail: AssertionError", "fail: SystemExit")
"""How the warm-up commands of the engine's process must end: three start, one the model refuses, one the parser."""

STEP_TIMEOUT_S = 3600
MAX_UNPACKED_BYTES = 2 << 30
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+]{0,40}\Z")
_CUDA = re.compile(r"^(nvidia-|cuda-|triton\b)")

Say = Callable[[str], None]
Fetch = Callable[[str, str], Path]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What one engine is made of.

    Shape: `base` and `overlays` name lock files beside the recipe; `torch` is the version of torch that all
           engines of one base share. A `served` one is installed when none is named.
    """

    package: str
    version: str
    torch: str
    base: Path
    overlays: tuple[Path, ...] = ()
    served: bool = False


@dataclass(frozen=True, slots=True)
class Installed:
    """An engine that is there: where, and whether its self-test has passed."""

    engine: Engine
    tested: bool


def recipes(data: Path = DATA) -> dict[str, Recipe]:
    """Return the engines that can be installed, by version, oldest first. Raises: Broken: a recipe is malformed."""
    found = [_recipe(path) for path in sorted(data.glob("*.toml"))]
    return {recipe.version: recipe for recipe in sorted(found, key=lambda one: _order(one.version))}


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _recipe(path: Path) -> Recipe:
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
        unknown = set(value) - {"package", "version", "torch", "base", "overlays", "served"}
        overlays = value.get("overlays", [])
        texts = [value["package"], value["version"], value["torch"], value["base"], *overlays]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Broken(f"{path.name} is not an engine's recipe: {error}") from None
    if unknown or not all(isinstance(text, str) and PurePosixPath(text).name == text for text in texts):
        raise Broken(f"{path.name} is not an engine's recipe: it holds package, version, torch, base and overlays")
    locks = [path.parent / name for name in (value["base"], *overlays)]
    if missing := [lock.name for lock in locks if not lock.is_file()]:
        raise Broken(f"{path.name} names a lock file that is not there: {missing[0]}")
    served = value.get("served", False) is True
    return Recipe(value["package"], value["version"], value["torch"], locks[0], tuple(locks[1:]), served)


class Engines:
    """The engines under one folder. Reads the folder anew each time: another process may install."""

    def __init__(self, folder: Path, default: str) -> None:
        self.folder = folder
        self._default = default

    def all(self) -> tuple[Installed, ...]:
        """Return the engines that are there, oldest release first, tested or not."""
        found = [_read_engine(path) for path in (self.folder / "ready").glob("*.json")]
        return tuple(sorted((one for one in found if one is not None), key=lambda one: _order(one.engine.version)))

    def installed(self) -> tuple[Engine, ...]:
        """Return the usable engines, oldest release first."""
        return tuple(one.engine for one in self.all() if one.tested)

    def default(self) -> str:
        """Return the version that is taken when none is asked for: the setting's if it is there, else the newest."""
        versions = [engine.version for engine in self.installed()]
        return self._default if self._default in versions or not versions else versions[-1]


def _read_engine(path: Path) -> Installed | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        python, release = Path(value["python"]), Path(value["release"])
        overlays = tuple(Path(overlay) for overlay in value["overlays"])
        engine = Engine(value["version"], python, release, overlays)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = python.exists() and release.is_dir() and all(overlay.is_dir() for overlay in overlays)
    return Installed(engine, value.get("tested") is True) if whole else None


@dataclass(frozen=True, slots=True)
class Installer:
    """Makes engines in `folder`.

    Shape: `fetch(package, version)` gives a verified wheel; `torch_index` is an index that has CPU builds of
           torch, or "" for none; `hardware` is the machine the self-test simulates; `python` is an interpreter
           to build on, or None to look for one.
    """

    folder: Path
    fetch: Fetch
    hardware: Hardware
    say: Say
    torch_index: str = ""
    python: Path | None = None
    data: Path = DATA

    def install(self, version: str, *, again: bool = False) -> Engine:
        """Install one engine and return it; does nothing if it is there already.

        Raises: NotFound: there is no such recipe. Unavailable: a source cannot be reached.
                Broken: the driver does not fit this release (its self-test failed).
        """
        known = recipes(self.data)
        if not _VERSION.match(version):
            raise BadInput(f"{version[:40]!r} is no version")
        if version not in known:
            raise NotFound(f"No engine recipe for SGLang {version}; known: {', '.join(known)}.")
        recipe = known[version]
        with self._alone():
            present = _read_engine(self._mark(version))
            if present is not None and present.tested and not again and present.engine == self._planned(recipe):
                self._options(present.engine)
                return present.engine
            engine = Engine(
                version, self._base(recipe), self._release(recipe), tuple(map(self._overlay, self._locks(recipe)))
            )
            self._write(engine, tested=False)
            self._test(engine)
            self._write(engine, tested=True)
        self.say(f"engine {version}: ready")
        return engine

    # -- parts

    def _locks(self, recipe: Recipe) -> tuple[Path, ...]:
        return recipe.overlays

    def _planned(self, recipe: Recipe) -> Engine:
        """Return the engine that the recipe gives, whether or not it is there."""
        base = self._base_folder(recipe) / "bin" / "python"
        overlays = tuple(self._overlay_folder(lock) for lock in recipe.overlays)
        return Engine(recipe.version, base, self._release_folder(recipe), overlays)

    def _base_folder(self, recipe: Recipe) -> Path:
        return self.folder / f"base-{_digest(recipe.base.read_bytes(), recipe.torch.encode())}"

    def _overlay_folder(self, lock: Path) -> Path:
        return self.folder / f"overlay-{lock.stem}-{_digest(lock.read_bytes())}"

    def _release_folder(self, recipe: Recipe) -> Path:
        return self.folder / f"{recipe.package}-{recipe.version}"

    def _base(self, recipe: Recipe) -> Path:
        """Make the shared environment and return its interpreter. pip goes on where an earlier run stopped."""
        folder = self._base_folder(recipe)
        python = folder / "bin" / "python"
        done = folder / ".whole"
        if done.exists():
            return python
        found = self.python or usable_python()
        if not python.exists():
            self.say(f"engine environment: creating {folder.name} with {found}")
            _run([str(found), "-m", "venv", "--without-pip", str(folder)])
        self._torch(python, recipe.torch)
        self.say(f"engine environment: installing {recipe.base.name}")
        _pip(python, "install", "--no-deps", "--no-compile", "--require-hashes", "-r", str(recipe.base))
        self.say("engine environment: compiling to byte-code")
        _compile(python, folder / "lib")
        done.touch()
        return python

    def _torch(self, python: Path, version: str) -> None:
        """Install a CPU build of torch where there is one, else torch with all it needs, saying so beforehand."""
        wanted = f"torch=={version}"
        probe = _run([str(python), "-c", "import torch; print(torch.__version__)"], check=False)
        if probe.returncode == 0 and probe.stdout.strip().split("+")[0] == version:
            return
        if not _pulls_cuda(python, wanted):
            self.say(f"engine environment: installing {wanted} (CPU build, about 0.7 GB on disk)")
            _pip(python, "install", "--no-deps", "--no-compile", wanted)
        elif self.torch_index:
            self.say(f"engine environment: installing {wanted} from the index that ERRATA_TORCH_INDEX names")
            _pip(python, "install", "--no-deps", "--no-compile", "--index-url", self.torch_index, wanted)
        else:
            self.say(
                f"engine environment: the configured package sources have only the CUDA build of {wanted}. "
                "Installing it with its libraries: about 3 GB to download, 6 GB on disk. ERRATA_TORCH_INDEX can name "
                "an index with CPU builds instead."
            )
            _pip(python, "install", "--no-compile", wanted)

    def _overlay(self, lock: Path) -> Path:
        folder = self._overlay_folder(lock)
        if not (folder / ".whole").exists():
            python = next(
                path for path in self.folder.glob("base-*/bin/python") if (path.parents[1] / ".whole").exists()
            )
            self.say(f"engine packages: installing {lock.name}")
            with self._scratch(folder.name) as scratch:
                options = ("--no-deps", "--no-compile", "--require-hashes", "--target", str(scratch))
                _pip(python, "install", *options, "-r", str(lock))
                _compile(python, scratch)
                (scratch / ".whole").touch()
                _move(scratch, folder)
        return folder

    def _release(self, recipe: Recipe) -> Path:
        folder = self._release_folder(recipe)
        if not (folder / ".whole").exists():
            self.say(f"release {recipe.version}: fetching and unpacking the wheel")
            wheel = self.fetch(recipe.package, recipe.version)
            with self._scratch(folder.name) as scratch:
                unpack(wheel, scratch)
                _compile(self._base_folder(recipe) / "bin" / "python", scratch)
                (scratch / ".whole").touch()
                _move(scratch, folder)
        return folder

    # -- self-test

    def _test(self, engine: Engine) -> None:
        self.say(f"engine {engine.version}: self-test (imports SGLang and runs {len(EXPECTED)} commands)")
        ready = self_test(engine, self.hardware)
        options.write(engine, ready.options)
        if len(ready.warmup) != len(EXPECTED) or not all(
            ended.startswith(wanted) for ended, wanted in zip(ready.warmup, EXPECTED, strict=True)
        ):
            raise Broken(
                f"The driver does not fit SGLang {engine.version}: its own commands ended "
                + "; ".join(ended[:120] for ended in ready.warmup)
            )

    def _options(self, engine: Engine) -> None:
        """Write down what the release's parser takes, for an engine that was installed before this was done."""
        if options.read(engine) is None:
            self.say(f"engine {engine.version}: reading the options of its parser")
            options.write(engine, self_test(engine, self.hardware).options)

    # -- bookkeeping

    def _mark(self, version: str) -> Path:
        return self.folder / "ready" / f"{version}.json"

    def _write(self, engine: Engine, *, tested: bool) -> None:
        value = {
            "version": engine.version,
            "python": str(engine.python),
            "release": str(engine.release),
            "overlays": [str(overlay) for overlay in engine.overlays],
            "tested": tested,
        }
        mark = self._mark(engine.version)
        mark.parent.mkdir(parents=True, exist_ok=True)
        scratch = mark.with_suffix(".part")
        scratch.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        scratch.replace(mark)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the folder: only one installation at a time, whichever process runs it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / ".lock", "w", encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.say("engine: waiting for another installation")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _scratch(self, name: str) -> Iterator[Path]:
        """Lend a folder to build in; what an interrupted run left is thrown away."""
        for old in self.folder.glob(f".part-{name}-*"):
            shutil.rmtree(old, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".part-{name}-", dir=self.folder))
        scratch.chmod(0o755)
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def unpack(wheel: Path, folder: Path) -> None:
    """Unpack a wheel below `folder`. Raises: BadInput: it is too large, or a name in it leads elsewhere."""
    with zipfile.ZipFile(wheel) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > MAX_UNPACKED_BYTES:
            raise BadInput(f"{wheel.name} unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB")
        for member in members:
            path = PurePosixPath(member.filename)
            if path.is_absolute() or ".." in path.parts or stat.S_ISLNK(member.external_attr >> 16):
                raise BadInput(f"{wheel.name} holds a name that leads elsewhere: {member.filename[:80]!r}")
        archive.extractall(folder)


def usable_python() -> Path:
    """Return an interpreter to build the engine's environment on.

    A check runs as a user without rights, so one outside private folders is taken where there is one; the running
    interpreter otherwise (confinement then keeps the user).
    """
    own = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    candidates = [
        own,
        *(Path(place) / f"python3.{minor}" for minor in (11, 12, 13) for place in ("/usr/bin", "/usr/local/bin")),
    ]
    for candidate in candidates:
        if candidate.exists() and _open_to_all(candidate.resolve()) and _builds(candidate):
            return candidate
    return own


def _open_to_all(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


def _builds(python: Path) -> bool:
    program = "import sys, venv, ctypes, zlib, hashlib; sys.exit(sys.version_info < (3, 11))"
    return _run([str(python), "-c", program], check=False).returncode == 0


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def _move(scratch: Path, folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    scratch.rename(folder)


def _pulls_cuda(python: Path, wanted: str) -> bool:
    """Tell whether pip would take a build of torch that needs CUDA libraries."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        _pip(python, "install", "--dry-run", "--no-deps", "--quiet", "--report", report.name, wanted)
        value: Any = json.loads(Path(report.name).read_text(encoding="utf-8"))
    needs = [line for item in value.get("install", []) for line in item.get("metadata", {}).get("requires_dist") or ()]
    return any(_CUDA.match(line.lower()) for line in needs)


def _pip(python: Path, *arguments: str) -> None:
    """Run this program's own pip for another interpreter, which needs none itself."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--no-input"]
    _run([*command, *arguments])


def _compile(python: Path, folder: Path) -> None:
    """Write byte-code; a file in another Python's syntax (packages ship some) is no fault."""
    _run([str(python), "-m", "compileall", "-q", "-j", "0", str(folder)], check=False)


def _run(command: list[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program of the installation. Raises: Unavailable: it failed or took too long."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=STEP_TIMEOUT_S, check=False, env=clean
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{Path(command[0]).name} could not be run: {error}") from None
    if check and done.returncode != 0:
        said = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise Unavailable(f"`{' '.join(map(str, command[1:8]))} ...` failed: {' | '.join(said[-3:])[:800]}")
    return done
