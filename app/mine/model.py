"""The values that mining produces: templates, sites and mined releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["raise", "assert", "message"]


@dataclass(frozen=True, slots=True)
class Template:
    """A message with holes.

    Shape: `parts` has odd length: literal, hole, literal, ..., literal. Literals may be empty; a hole is
    the source text of its expression, without conversion or format spec.
    """

    parts: tuple[str, ...] = ("",)

    @property
    def text(self) -> str:
        """Return the template as a reader meets it: literal text with `{expression}` holes."""
        return "".join(part if i % 2 == 0 else "{" + part + "}" for i, part in enumerate(self.parts))

    @property
    def literals(self) -> tuple[str, ...]:
        """Return the literal texts, in order."""
        return self.parts[0::2]

    @property
    def holes(self) -> tuple[str, ...]:
        """Return the hole expressions, in order."""
        return self.parts[1::2]

    def __bool__(self) -> bool:
        return self.parts != ("",)


@dataclass(frozen=True, slots=True)
class Variant:
    """Another text that one site can carry, and the place where that text is written.

    Examples: the arms of a conditional expression; what a caller hands to a helper that raises it.
    """

    template: Template
    path: str
    function: str


@dataclass(frozen=True, slots=True)
class Site:
    """One `raise`, `assert` or returned message in one release.

    Shape: `exception` is the bare class name a traceback prints ("" for kind `message`); `template` is
    empty where there is no text (a bare assert); `path` is relative to the archive root
    ("sglang/srt/server_args.py"); `function` is the qualified name ("ServerArgs.check", "<module>" at top
    level); `statement` is the first source line of the statement, stripped, as a traceback prints it;
    `condition` is the source of an assert's condition ("" else); `guards` are outermost first; `flags` are
    option strings ("--tp-size"), sorted; lines count from 1.
    """

    kind: Kind
    exception: str
    template: Template
    path: str
    function: str
    line: int
    end_line: int
    statement: str
    condition: str = ""
    guards: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    excerpt_line: int = 1
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class MinedRelease:
    """All sites of one release, by path and line, and what could not be read.

    Shape: `failed` holds (path, why) of files that do not parse; `options` maps a configuration field to
    its option strings ("tp_size" -> ("--tensor-parallel-size", "--tp-size")); `omitted` counts by reason what is
    no site of ours (a `raise` of an exception that exists already, excluded files).
    """

    package: str
    version: str
    sha256: str
    files: int
    lines: int
    failed: tuple[tuple[str, str], ...]
    options: dict[str, tuple[str, ...]]
    sites: tuple[Site, ...]
    omitted: dict[str, int] = field(default_factory=dict)
