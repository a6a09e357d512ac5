"""Real launches whose outcome is known: reading the case files, and choosing machine and release for each."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

# (what a case's text says, profile). First match wins.
MACHINES = (
    (r"RTX PRO 6000|SM120", "rtx-pro-6000"), (r"GB300", "gb300"), (r"275\.75 GB free", "gb300"), (r"GB200", "gb200"),
    (r"B300|SM ?10\.3", "b300"), (r"B200|SM100|Blackwell", "b200-180gb"), (r"H200|139\.21", "h200-141gb"),
    (r"H100", "h100-80gb"), (r"\bH20\b", "h20"), (r"A100.*40", "a100-40gb"), (r"A100", "a100-80gb"),
    (r"L40S", "l40s-48gb"),
    (r"\bL4\b", "l4-24gb"), (r"5090", "rtx-5090-32gb"), (r"4090|24 GB card", "rtx-4090-24gb"), (r"MI355X", "mi355x"),
    (r"MI300X", "mi300x"),
)  # fmt: skip
RELEASES = Path(__file__).resolve().parents[1] / "data" / "releases.toml"
_DATE = re.compile(r"(20\d\d)-(\d\d)(?:-(\d\d))?")


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a case file; the shape of `fields` is the file's."""

    id: str
    fields: dict[str, Any]

    def text(self, name: str) -> str:
        """Return a field as text, "" for null."""
        return str(self.fields.get(name) or "")


def load(path: Path) -> list[Case]:
    """Read a file of cases, one JSON object a line."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [Case(fields["id"], fields) for fields in lines]


def machine(said: str) -> str:
    """Return the profile that a description of a machine means, or ""."""
    return next((name for pattern, name in MACHINES if re.search(pattern, said, re.IGNORECASE)), "")


def date(said: str) -> str:
    """Return the first date in a text as YYYY-MM-DD, or ""."""
    found = _DATE.search(said)
    return f"{found[1]}-{found[2]}-{found[3] or '15'}" if found else ""


def releases(path: Path = RELEASES) -> list[tuple[str, str]]:
    """Return (date, version) of the pinned releases, oldest first."""
    entries = tomllib.loads(path.read_text())["sglang"]
    return sorted((entry["date"].isoformat(), entry["version"]) for entry in entries)


def release(version: str, log: str = "") -> str:
    """Return the release to run a case on, or "".

    A release that the case names; else, for an installed package, the newest that existed then, and for a
    checkout of the main branch the first that was made after it.
    """
    known = releases()
    if named := next((v for _, v in known if re.search(rf"(?<![\d.]){re.escape(v)}(?![\d])", version)), ""):
        return named
    older = re.search(r"(?<![\d.])0\.\d+\.\d+", version)
    if older and Version(older[0]) < Version(known[0][1]):
        return known[0][1]
    when = date(version) or date(log)
    if not when:
        return ""
    before, after = [v for d, v in known if d <= when], [v for d, v in known if d > when]
    if "pip" in version and before:
        return before[-1]
    return after[0] if after else before[-1]


def is_old(version: str, log: str = "") -> bool:
    """Say whether a case is from more than four months before the oldest release that can be run."""
    when = date(version) or date(log)
    return bool(when) and when < "2026-04"
