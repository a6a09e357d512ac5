"""The settings: `ERRATA_*` environment variables, read once, into one frozen value."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.errors import BadInput

PREFIX = "ERRATA_"
ROOT = Path(__file__).resolve().parents[1]


class Settings(BaseModel):
    """What can be set. Only `cli` reads it; every other layer is handed what it needs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database_url: str = Field(
        f"sqlite:///{ROOT / 'var' / 'errata.db'}",
        description="Where the database is. Only SQLite is supported: `sqlite:///` and a path.",
    )
    cache_dir: Path = Field(ROOT / "var", description="Where downloaded wheels and other build products are kept.")
    data_dir: Path = Field(ROOT / "data", description="Where pinned releases, ledgers and curated records are.")
    host: str = Field("127.0.0.1", description="Address that `errata serve` listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port that `errata serve` listens on; 0 picks a free one.")
    base_url: str = Field("", description="Public address of the site, for absolute links; empty: the request's own.")
    ingest_processes: int = Field(
        0, ge=0, le=256, description="Processes that render pages after an ingest; 0: as many as the machine has cores."
    )

    server: str = Field(
        "", description="Address of a running Errata that `errata check` asks; empty: it checks itself."
    )
    check_engine: str = Field("0.5.18", description="Release that a check takes when neither asked nor named.")
    check_warm: bool = Field(True, description="Whether `errata serve` starts that engine before the first check.")
    check_workers: int = Field(0, ge=0, le=64, description="Checks that run at once; 0: one a core, at most 8.")
    check_waiting: int = Field(32, ge=0, le=10_000, description="Checks that may wait for a worker; more are refused.")
    check_engines: int = Field(3, ge=1, le=32, description="Engine processes kept, about 0.5 GB each.")
    check_timeout_s: float = Field(20, gt=0, le=600, description="Wall clock of one check, seconds.")
    check_memory_mib: int = Field(3072, ge=1024, description="Address space of one check, MiB.")
    check_hub: str = Field(
        "", description="Model hub whose config.json is fetched for models not in the catalogue; empty: none."
    )
    torch_index: str = Field(
        "",
        description="Package index with CPU builds of torch, for `errata engine install`; empty: the configured ones.",
    )
    unsafe_no_sandbox: bool = Field(
        False, description="Run checks unconfined. Only for commands you trust; without it they are refused."
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Return the settings of the process.

        Raises: BadInput: a variable is not known (the nearest is named) or its value is not legal.
        """
        given = os.environ if environment is None else environment
        known = {name.removeprefix(PREFIX).lower(): value for name, value in given.items() if name.startswith(PREFIX)}
        for name in known:
            if name not in cls.model_fields:
                raise BadInput(f"{PREFIX}{name.upper()} is not a setting; {_nearest(name, cls)}")
        try:
            return cls.model_validate(known)
        except ValidationError as error:
            first = error.errors()[0]
            raise BadInput(f"{PREFIX}{str(first['loc'][0]).upper()}: {first['msg']}") from None


def table() -> str:
    """Return the table of all settings in Markdown, as `docs/settings.md` holds it."""
    lines = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        default = str(field.default).replace(str(ROOT) + "/", "")
        lines.append(f"| `{PREFIX}{name.upper()}` | {f'`{default}`' if default else 'empty'} | {field.description} |")
    return "\n".join(lines) + "\n"


def _nearest(name: str, settings: type[Settings]) -> str:
    close = difflib.get_close_matches(name, settings.model_fields, n=1, cutoff=0.0)
    return f"did you mean {PREFIX}{close[0].upper()}? docs/settings.md lists all"


if __name__ == "__main__":
    print(table(), end="")
