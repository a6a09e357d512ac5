"""The options of a release, as its own argument parser declares them.

They are written beside the engine when it is installed and tested; `Options.of` reads them, and asks the engine's
process where they are missing. Nothing here knows an option by itself.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.check import hardware
from app.check.pool import Engine
from app.check.protocol import Option, ProtocolError
from app.check.selftest import self_test

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Options:
    """All options of one release."""

    version: str
    options: tuple[Option, ...]
    _named: dict[str, Option] = field(init=False, repr=False, compare=False, default_factory=dict)
    _dests: dict[str, tuple[Option, ...]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for option in self.options:
            self._named.update(dict.fromkeys(option.names, option))
            self._dests[option.dest] = (*self._dests.get(option.dest, ()), option)

    @classmethod
    def of(cls, engine: Engine) -> Options:
        """Return the options of an engine; blocks for some seconds where they were never written down.

        Raises: Broken: they are not there and the engine's process does not start.
        """
        path = file_of(engine)
        return _known(engine, path, _stamp(path))

    def __iter__(self) -> Iterator[Option]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)

    def named(self, name: str) -> Option | None:
        """Return the option that is spelled `name` ("--tp-size"), or the only one that begins so, as argparse does."""
        if (found := self._named.get(name)) is not None:
            return found
        begun = (
            {id(self._named[n]): self._named[n] for n in self._named if n.startswith(name)} if name[:2] == "--" else {}
        )
        return next(iter(begun.values())) if len(begun) == 1 and len(name) > 2 else None

    def setting(self, dest: str) -> Option | None:
        """Return the option that sets the field `dest`, one that is not deprecated first; None if no option does."""
        found = self._dests.get(dest, ())
        return next((option for option in found if not option.deprecated), found[0] if found else None)

    @property
    def names(self) -> tuple[str, ...]:
        """Return every spelling of every option."""
        return tuple(self._named)


def file_of(engine: Engine) -> Path:
    """Return where the options of an engine are written: beside its release."""
    return engine.release.parent / f"{engine.release.name}.options.json"


def write(engine: Engine, options: Sequence[Option]) -> None:
    """Write the options of an engine."""
    path = file_of(engine)
    scratch = path.with_suffix(".part")
    value = {"format": FORMAT, "version": engine.version, "options": [option.to_json() for option in options]}
    scratch.write_text(json.dumps(value, separators=(",", ":")) + "\n", encoding="utf-8")
    scratch.replace(path)


def read(engine: Engine) -> Options | None:
    """Return the options that were written; None where there are none, or of another format."""
    try:
        value: Any = json.loads(file_of(engine).read_text(encoding="utf-8"))
        if value["format"] != FORMAT or value["version"] != engine.version:
            return None
        return Options(engine.version, tuple(Option.from_json(one) for one in value["options"]))
    except (OSError, ValueError, KeyError, TypeError, ProtocolError):
        return None


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@functools.lru_cache(maxsize=32)
def _known(engine: Engine, path: Path, stamp: int) -> Options:
    """Return the options of an engine; they are read anew when the file was written anew."""
    if (found := read(engine)) is not None:
        return found
    ready = self_test(engine, hardware.profiles().find(hardware.DEFAULT).device)
    with contextlib.suppress(OSError):  # the folder may be read-only; this process remembers them
        write(engine, ready.options)
    return Options(engine.version, ready.options)
