"""The values of the search for triggers, and the files under `data/triggers/`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.errors import Broken

FOLDER = Path(__file__).resolve().parents[2] / "data" / "triggers"


@dataclass(frozen=True, slots=True)
class Site:
    """A raise or assert statement of one release and its record. `path` is relative to the archive."""

    record: str
    path: str
    line: int
    end_line: int
    function: str
    exception: str
    title: str

    @property
    def place(self) -> tuple[str, int]:
        """Return path and line."""
        return self.path, self.line


@dataclass(frozen=True, slots=True)
class Trigger:
    """A command that makes one release raise one site.

    Shape: `command` carries its environment variables in front; `stage` is the stage that failed; `verdict` is
    `unknown` where SGLang raises because of a file that only the asker's machine could have; `packages` maps an
    optional distribution to its version, "" for absent.
    """

    record: str
    engine: str
    path: str
    line: int
    function: str
    exception: str
    stage: str
    command: str
    hardware: str
    gpus: int
    verdict: str = "fail"
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, int]:
        """Return path and line."""
        return self.path, self.line


def file(engine: str, folder: Path = FOLDER) -> Path:
    """Return where the triggers of a release are kept."""
    return folder / f"sglang-{engine}.jsonl"


def load(path: Path) -> list[Trigger]:
    """Read triggers; no file is no triggers. Raises: Broken."""
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found.append(Trigger(**json.loads(line)))
        except (TypeError, ValueError) as error:
            raise Broken(f"{path.name}:{number}: {error}") from None
    return found


def save(path: Path, triggers: Iterable[Trigger]) -> None:
    """Write triggers, by place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [_line(one) for one in sorted(triggers, key=lambda t: (t.path, t.line, t.command))]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _line(trigger: Trigger) -> str:
    value: dict[str, Any] = dataclasses.asdict(trigger)
    if trigger.verdict == "fail":
        del value["verdict"]
    if not trigger.packages:
        del value["packages"]
    return json.dumps(value, ensure_ascii=False)
