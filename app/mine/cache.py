"""Mined releases kept under `var/mined`, so that mining again is nothing to do."""

from __future__ import annotations

import ast
import hashlib
import sys
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from app.mine.mine import Progress, mine
from app.mine.model import MinedRelease, Site, Template, Variant
from app.mine.wheels import Archive


@cache
def fingerprint() -> str:
    """Return a digest of the miner's own code and of the Python that runs it: both decide what is found."""
    digest = hashlib.sha256(repr(sys.version_info[:2]).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.name in ("wording.py", "packages.py"):
            continue  # they work on what was found
        # Comments and layout decide nothing, so the tree is what counts.
        digest.update(f"{path.name}\0{ast.dump(ast.parse(path.read_bytes()))}".encode())
    return digest.hexdigest()[:12]


def mined(
    archive: Archive,
    folder: Path,
    *,
    package: str,
    version: str,
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
) -> MinedRelease:
    """Return the mined release from the cache, or mine and keep it."""
    asked = hashlib.sha256(orjson.dumps([package, version, list(exclude)])).hexdigest()[:8]
    path = folder / f"{package}-{version}-{archive.sha256[:16]}-{fingerprint()}-{asked}.json.z"
    if path.exists():
        try:
            return loads(path.read_bytes())
        except (ValueError, KeyError, TypeError, zlib.error):
            path.unlink(missing_ok=True)  # damaged: mine anew
    release = mine(archive, package=package, version=version, exclude=exclude, progress=progress)
    folder.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    scratch.write_bytes(dumps(release))
    scratch.replace(path)
    return release


def dumps(release: MinedRelease) -> bytes:
    """Return a release as compressed JSON."""
    return zlib.compress(orjson.dumps(release), 1)


def loads(data: bytes) -> MinedRelease:
    """Return the release that `dumps` wrote.

    Raises: ValueError, KeyError, TypeError, zlib.error: the data is damaged.
    """
    fields: dict[str, Any] = orjson.loads(zlib.decompress(data))
    fields["failed"] = tuple((path, why) for path, why in fields["failed"])
    fields["options"] = {name: tuple(values) for name, values in fields["options"].items()}
    fields["sites"] = tuple(map(_site, fields["sites"]))
    return MinedRelease(**fields)


def _site(fields: dict[str, Any]) -> Site:
    fields["template"] = _template(fields["template"])
    fields["variants"] = tuple(Variant(_template(v["template"]), v["path"], v["function"]) for v in fields["variants"])
    fields["guards"] = tuple(fields["guards"])
    fields["flags"] = tuple(fields["flags"])
    return Site(**fields)


def _template(fields: dict[str, Any]) -> Template:
    return Template(tuple(fields["parts"]))
