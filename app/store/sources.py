"""From what releases come: which archives to read, which stored releases still stand, and the keys that decide it."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from app.errors import BadInput, NotFound
from app.lineage.chains import version_key
from app.lineage.ledger import load as load_ledger
from app.mine import cache, packages, wheels
from app.mine.model import MinedRelease
from app.mine.wording import trigger
from app.records.load import files, load_all
from app.records.runs import load as load_runs
from app.store import ingest, migrate, stored
from app.store.engine import Store
from app.store.ingest import Outcome, PackageInput, Progress, StoredPackage
from app.store.origin import Origin

_APP = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A release to ingest. `folder` is where its archive or its unpacked source is; None: the package index."""

    package: str
    version: str
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """Where an ingest finds and keeps its files."""

    data: Path
    cache: Path

    def ledger(self, package: str) -> Path:
        """Return the file of a package's ledger."""
        return self.data / "lineage" / f"{package}.tsv"

    def curated(self, package: str) -> Path:
        """Return the folder of a package's curated records."""
        return self.data / "errors" / package

    def runs(self, package: str) -> Path:
        """Return the file of the stored runs of a package's curated examples."""
        return self.data / "runs" / f"{package}.jsonl"


def wanted(specification: str, folder: Path | None = None) -> Wanted:
    """Read "PACKAGE==VERSION".

    Raises: BadInput: it is something else.
    """
    package, separator, version = specification.partition("==")
    if not separator or not package.strip() or not version.strip():
        raise BadInput(f"{specification!r}: expected PACKAGE==VERSION, for example httpx==0.28.1")
    return Wanted(canonicalize_name(package.strip()), version.strip(), folder)


def pinned(data: Path) -> tuple[Wanted, ...]:
    """Return the releases that data/releases.toml pins, by package, oldest first."""
    path = data / "releases.toml"
    if not path.exists():
        raise NotFound("data/releases.toml: there is no such file, so no release is pinned; name one to ingest")
    names = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(Wanted(name, version) for name in names for version in wheels.pinned_versions(name, path))


def ingest_package(store: Store, places: Places, releases: Sequence[Wanted], progress: Progress) -> Outcome | None:
    """Bring one package's rows up to date; None where there was nothing to do.

    Shape: `releases` are of one package; those that the database has besides stay.
    Raises: what fetching, mining and the curated records raise; the database then stays as it was.
    """
    name = releases[0].package
    migrate.upgrade(store)
    with store.reading() as connection:
        before = ingest.stored_package(connection, name)
    fresh: dict[str, _Fresh] = {}
    for release in releases:
        if not _stands(before, release, places):
            found = _fresh(release, places, before, progress)
            if found is not None:
                fresh[release.version] = found
    keys = dict(before.release_keys) if before else {}
    keys |= {version: one.key for version, one in fresh.items()}
    key = _package_key(name, keys, places)
    if before is not None and not fresh and before.key == key:
        return None
    versions = sorted(keys, key=version_key)
    mined = [fresh[v].release if v in fresh else _kept(store, name, v, progress) for v in versions]
    ledger = load_ledger(places.ledger(name))
    package = PackageInput(
        origin=_origin(store, name, next(iter(fresh.values()), None), places),
        releases=tuple(mined),
        release_keys=keys,
        curated=load_all(places.curated(name)),
        ledger=ledger,
        key=key,
        strict=bool(ledger.releases) and ledger.releases <= keys.keys(),
        trigger=trigger,
        runs=load_runs(places.runs(name)),
    )
    return ingest.ingest(store, package, progress)


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A release that was just mined."""

    release: MinedRelease
    key: str
    metadata: wheels.Metadata


def _stands(before: StoredPackage | None, release: Wanted, places: Places) -> bool:
    """Tell without a look at any archive whether the stored release is what mining would give now.

    What an index publishes under a version never changes, so the stored digest speaks for it, unless another one
    is pinned. A folder may have changed.
    """
    if before is None or release.folder is not None or release.version not in before.release_keys:
        return False
    sha256 = before.sha256[release.version]
    pinned_digests = _pinned_digests(release, places)
    if pinned_digests and sha256 not in pinned_digests:
        return False
    return before.release_keys[release.version] == release_key(sha256, _exclude(release.package, places))


def _pinned_digests(release: Wanted, places: Places) -> set[str]:
    pins = wheels.pins(places.data / "releases.toml")
    return {digest for name, digest in pins.items() if _is_archive_of(name, release)}


def _fresh(release: Wanted, places: Places, before: StoredPackage | None, progress: Progress) -> _Fresh | None:
    """Fetch and mine a release; None where the stored one came from the same archive and miner."""
    label = f"{release.package} {release.version}"
    progress(f"fetching {label}", 0, 1)
    archive = wheels.archive(_archive_path(release, places))
    exclude = _exclude(release.package, places)
    key = release_key(archive.sha256, exclude)
    if before is not None and before.release_keys.get(release.version) == key:
        return None

    def mined_so_far(done: int, total: int) -> None:
        progress(f"mining {label}", done, total)

    mined = cache.mined(
        archive,
        places.cache / "mined",
        package=release.package,
        version=release.version,
        exclude=exclude,
        progress=mined_so_far,
    )
    if not mined.files:
        raise BadInput(f"{label}: there is no Python file in it")
    return _Fresh(mined, key, archive.metadata)


def _archive_path(release: Wanted, places: Places) -> Path:
    if release.folder is None:
        return wheels.fetch(release.package, release.version, places.cache / "wheels")
    if not release.folder.is_dir():
        raise NotFound(f"--from {release.folder}: there is no such directory")
    found = [path for path in sorted(release.folder.iterdir()) if _is_archive_of(path.name, release)]
    if found:
        wheels.verify(found[0])
        return found[0]
    if any(path.suffix in {".whl", ".gz"} for path in release.folder.iterdir()):
        raise NotFound(f"--from {release.folder}: there is no archive of {release.package} {release.version} in it")
    return release.folder


def _is_archive_of(file: str, release: Wanted) -> bool:
    try:
        if file.endswith(".whl"):
            name, version, *_ = parse_wheel_filename(file)
        else:
            name, version = parse_sdist_filename(file)
        return name == canonicalize_name(release.package) and version == Version(release.version)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False


def _exclude(package: str, places: Places) -> tuple[str, ...]:
    return packages.origin(package, path=places.data / "packages.toml").exclude


def _kept(store: Store, name: str, version: str, progress: Progress) -> MinedRelease:
    progress(f"reading {name} {version}", 0, 1)
    with store.reading() as connection:
        return stored.mined_release(connection, name, version)


def _origin(store: Store, name: str, fresh: _Fresh | None, places: Places) -> Origin:
    """Return the package's origin: as data/packages.toml has it, else as an archive says, else as it was stored."""
    found = packages.origin(name, fresh.metadata if fresh else None, path=places.data / "packages.toml")
    if found.repository is None and fresh is None:
        with store.reading() as connection:
            return ingest.stored_origin(connection, name)
    return Origin(
        package=name,
        repository=found.repository or "",
        host=found.host,
        source_root=found.source_root or "",
        # Without the folder before the archive's paths a link would lead nowhere.
        tag=found.tag or "" if found.source_root is not None else "",
        license=found.license,
    )


def release_key(sha256: str, exclude: Iterable[str]) -> str:
    """Return from what a release is mined: its archive, the miner's code, what is left out."""
    return _digest([sha256, cache.fingerprint(), *exclude])


def _package_key(name: str, release_keys: Mapping[str, str], places: Places) -> str:
    """Return from what a package's rows are made: releases, ledger, curated files, runs, the code that makes them."""
    parts = [f"{version} {key}" for version, key in sorted(release_keys.items())]
    parts += [_file(places.ledger(name)), _file(places.data / "packages.toml")]
    parts += [f"{path.name} {_file(path)}" for path in files(places.curated(name))]
    parts.append(_file(places.runs(name)))
    return _digest([*parts, _code("lineage"), _code("records"), _code("store")])


def _code(package: str) -> str:
    return _digest(f"{path.name} {_file(path)}" for path in sorted((_APP / package).glob("*.py")))


def _file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
