"""What one file tells before the whole package is known: unfinished sites and the symbols it defines."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.mine.model import Kind
from app.mine.text import Text


@dataclass(frozen=True, slots=True)
class Construction:
    """A new exception: `target` is the dotted name that its class or factory has in the package, "" if unknown."""

    name: str
    target: str = ""
    args: tuple[Text, ...] = ()
    keywords: tuple[tuple[str, Text], ...] = ()
    called: bool = True


@dataclass(frozen=True, slots=True)
class Draft:
    """A site whose text may still refer to other files.

    Shape: `fields` are names of configuration fields that the guards and the text read, "@name" where only a
    declared field counts; `origin` says for a message how it is handed over: "call", "assign", "return" (beside None or
    False) or "verdict" (alone).
    """

    kind: Kind
    constructions: tuple[Construction, ...]
    text: Text | None
    path: str
    function: str
    line: int
    end_line: int
    statement: str
    condition: str
    guards: tuple[str, ...]
    fields: tuple[str, ...]
    excerpt_line: int
    excerpt: str
    origin: str = ""

    @property
    def returned(self) -> bool:
        """Tell whether it is a text that a function returns."""
        return self.origin in ("return", "verdict")


@dataclass(slots=True)
class Class:
    """What a class says about the text of its instances, as an exception has it."""

    bases: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    rest: str = ""  # "*args" where its __init__ takes any number
    defaults: dict[str, Text] = field(default_factory=dict)
    passed: tuple[Text, ...] | None = None  # what its __init__ hands to super().__init__
    passed_keywords: tuple[tuple[str, Text], ...] = ()
    has_init: bool = False
    shown: Text | None = None  # what its __str__ returns
    attributes: dict[str, Text] = field(default_factory=dict)  # class level strings
    assigned: dict[str, Text] = field(default_factory=dict)  # self.x = ... in __init__
    changed: set[str] = field(default_factory=set)  # attributes that any method assigns


@dataclass(slots=True)
class Function:
    """What a function returns: texts, or fresh exceptions."""

    parameters: tuple[str, ...] = ()
    defaults: dict[str, Text] = field(default_factory=dict)
    returns: list[Text] = field(default_factory=list)
    exceptions: list[Construction] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Passed:
    """A call of a raise-helper: the texts it hands over, and where."""

    target: str
    name: str
    args: tuple[Text, ...]
    keywords: tuple[tuple[str, Text], ...]
    path: str
    function: str


@dataclass(slots=True)
class FileReport:
    """All that one pass over one file found."""

    path: str
    module: str
    lines: int = 0
    failed: str = ""
    drafts: list[Draft] = field(default_factory=list)
    omitted: dict[str, int] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)  # the same and what functions import
    constants: dict[str, Text] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    declared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)
