"""Where a package's source lives: from data/packages.toml, else from what its archive says about itself."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.mine.wheels import Metadata

PACKAGES: Final = Path(__file__).resolve().parents[2] / "data" / "packages.toml"
# What is left out of a package that data/packages.toml does not list: not the package's own errors.
EXCLUDE: Final = (
    "**/test/**",
    "**/tests/**",
    "**/testing/**",
    "**/test_*.py",
    "**/*_test.py",
    "**/conftest.py",
    "docs/**",
    "doc/**",
    "examples/**",
    "benchmarks/**",
    "setup.py",
)
_REPOSITORY = re.compile(
    r"https?://(?:www\.)?(github\.com|gitlab\.com)/([A-Za-z0-9._-]{1,100})/([A-Za-z0-9._-]{1,100})(?:[/#?]|\Z)", re.I
)
_LABELS = ("repository", "source", "source code", "code", "github", "homepage", "home")


@dataclass(frozen=True, slots=True)
class Origin:
    """What links and identities of one package are made from.

    Shape: `repository` is "owner/name" or None; `tag` is a pattern with `{version}` or None where releases
    cannot be linked; `source_root` stands before an archive path in the repository, None where that is unknown.
    """

    package: str
    repository: str | None = None
    host: str = "https://github.com"
    source_root: str | None = None
    tag: str | None = None
    license: str = ""
    exclude: tuple[str, ...] = EXCLUDE


def origin(package: str, metadata: Metadata | None = None, *, path: Path = PACKAGES) -> Origin:
    """Return a package's origin; from metadata only the repository is known, so no line can be linked."""
    listed = _listed(path).get(package)
    if listed is not None:
        return listed
    if metadata is None:
        return Origin(package)
    found = _repository(metadata)
    if found is None:
        return Origin(package, license=metadata.license)
    host, repository = found
    return Origin(package, repository=repository, host=host, license=metadata.license)


def _listed(path: Path) -> dict[str, Origin]:
    with path.open("rb") as stream:
        data = tomllib.load(stream)
    return {
        name: Origin(
            package=name,
            repository=fields.get("repository"),
            host=fields.get("host", "https://github.com"),
            source_root=fields.get("source_root"),
            tag=fields.get("tag"),
            license=fields.get("license", ""),
            exclude=tuple(fields.get("exclude", EXCLUDE)),
        )
        for name, fields in data.items()
    }


def _repository(metadata: Metadata) -> tuple[str, str] | None:
    """Return host and "owner/name" of the likeliest repository among the URLs."""

    def rank(item: tuple[str, str]) -> int:
        label = item[0].strip().lower()
        return _LABELS.index(label) if label in _LABELS else len(_LABELS)

    for _, url in sorted(metadata.project_urls, key=rank):
        match = _REPOSITORY.match(url)
        if match and match[2].lower() not in ("sponsors", "orgs"):
            return f"https://{match[1].lower()}", f"{match[2]}/{match[3].removesuffix('.git')}"
    return None
