"""What a condition depends on, as far as its source says: fields, variables, functions, constants, environment."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.triggers.conditions import FunctionNode, Source

DEPTH = 3
DEFINITIONS, FILES = 3, 40
"""A name that more functions have, or a word that more files have, says nothing."""
Constant = str | int | float
_ENVIRONMENT = re.compile(r"(?:SGLANG|SGL|FLASHINFER|DG)_[A-Z0-9_]+")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CONFIG = re.compile(r"config|cfg", re.IGNORECASE)


@dataclass(slots=True)
class Reads:
    """Names in the order met, nearest first. `config` holds attributes read off something called a configuration."""

    near: dict[str, None] = field(default_factory=dict)
    far: dict[str, None] = field(default_factory=dict)
    constants: dict[Constant, None] = field(default_factory=dict)
    far_constants: dict[Constant, None] = field(default_factory=dict)
    environment: dict[str, None] = field(default_factory=dict)
    config: dict[str, None] = field(default_factory=dict)
    done: set[str] = field(default_factory=set, repr=False)


class Release:
    """The source of a release, read when it is asked for."""

    def __init__(self, folder: Path, package: str = "sglang/srt") -> None:
        self.folder, self.package = folder, package
        self._sources: dict[str, Source] = {}

    def source(self, path: str) -> Source:
        """Return one file."""
        if path not in self._sources:
            self._sources[path] = Source(path, (self.folder / path).read_text(encoding="utf-8-sig"))
        return self._sources[path]

    def paths(self) -> Iterator[str]:
        """Yield the files of the package."""
        for file in sorted((self.folder / self.package).rglob("*.py")):
            yield file.relative_to(self.folder).as_posix()

    @functools.cached_property
    def _having(self) -> dict[str, list[str]]:
        """Return the files that have a word, by word: which files must be parsed to know about a name."""
        found: dict[str, list[str]] = {}
        for path in self.paths():
            for word in set(_WORD.findall((self.folder / path).read_text(encoding="utf-8-sig"))):
                found.setdefault(word, []).append(path)
        return found

    @functools.cache  # noqa: B019 - one release a process
    def _names(self, path: str) -> tuple[dict[str, list[FunctionNode]], dict[str, list[int]]]:
        """Return the functions of a file by bare name, and the lines that name something, by what they name."""
        functions: dict[str, list[FunctionNode]] = {}
        lines: dict[str, list[int]] = {}
        for node in ast.walk(self.source(path).tree):
            if isinstance(node, FunctionNode):
                functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Attribute):
                lines.setdefault(node.attr, []).append(node.lineno)
            elif isinstance(node, ast.Name):
                lines.setdefault(node.id, []).append(node.lineno)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                lines.setdefault(node.value, []).append(node.lineno)
        return functions, lines

    def mentions(self, name: str) -> list[tuple[str, int]] | None:
        """Return the places where a bare name is called or handed on; None if too many files have the word."""
        paths = self._having.get(name, [])
        if len(paths) > FILES:
            return None
        return [(path, line) for path in paths for line in self._names(path)[1].get(name, ())]

    def _defined(self, name: str, path: str) -> list[tuple[str, FunctionNode]]:
        here = [(path, function) for function in self._names(path)[0].get(name, ())]
        paths = self._having.get(name, [])
        if here or len(paths) > FILES:
            return here[:DEFINITIONS]
        known = [(other, function) for other in paths for function in self._names(other)[0].get(name, ())]
        return known if len(known) <= DEFINITIONS else []

    def reads(self, node: ast.expr, path: str, function: ast.AST | None) -> Reads:
        """Return what an expression in a function of a file depends on."""
        found = Reads()
        self._near(node, path, function, found, DEPTH)
        return found

    def _near(self, node: ast.AST, path: str, function: ast.AST | None, found: Reads, depth: int) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant):
                _constant(part.value, found.constants, found)
            elif isinstance(part, ast.Attribute):
                found.near.setdefault(part.attr)
                self._attribute(part, path, found, depth)
            elif isinstance(part, ast.Name):
                found.near.setdefault(part.id)
                if part.id not in found.done and depth:
                    found.done.add(part.id)
                    for value in self._values(part.id, path, function):
                        self._near(value, path, function, found, depth - 1)
            if isinstance(part, ast.Call):
                self._call(part, path, found, depth)

    def _values(self, name: str, path: str, function: ast.AST | None) -> list[ast.expr]:
        """Return what a variable is given: in the function, or at the top of the file for a constant."""
        if function is not None and (local := list(_assigned(ast.walk(function), name))):
            return local
        return list(_assigned(iter(self.source(path).tree.body), name)) if name.isupper() else []

    def _attribute(self, part: ast.Attribute, path: str, found: Reads, depth: int) -> None:
        base = ast.unparse(part.value)
        if _ENVIRONMENT.fullmatch(part.attr):
            found.environment.setdefault(part.attr)
        elif _CONFIG.search(base):
            found.config.setdefault(part.attr)
        self._far(part.attr, path, found, depth)

    def _call(self, part: ast.Call, path: str, found: Reads, depth: int) -> None:
        name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
        if name == "getattr" and len(part.args) > 1 and isinstance(key := part.args[1], ast.Constant):
            found.near.setdefault(str(key.value))
            if _CONFIG.search(ast.unparse(part.args[0])):
                found.config.setdefault(str(key.value))
        self._far(name, path, found, depth)

    def _far(self, name: str, path: str, found: Reads, depth: int) -> None:
        """Take in what the functions of a name read."""
        if not depth or f"{name}()" in found.done:
            return
        found.done.add(f"{name}()")
        for where, function in self._defined(name, path):
            for part in ast.walk(function):
                if isinstance(part, ast.Attribute):
                    found.far.setdefault(part.attr)
                    if _ENVIRONMENT.fullmatch(part.attr):
                        found.environment.setdefault(part.attr)
                    elif _CONFIG.search(ast.unparse(part.value)):
                        found.config.setdefault(part.attr)
                elif isinstance(part, ast.Constant):
                    _constant(part.value, found.far_constants, found)
                if isinstance(part, ast.Call):
                    called = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
                    self._far(called, where, found, depth - 1)


def _constant(value: object, into: dict[Constant, None], found: Reads) -> None:
    if isinstance(value, str) and 0 < len(value) <= 80:
        into.setdefault(value)
        if _ENVIRONMENT.fullmatch(value):
            found.environment.setdefault(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        into.setdefault(value)


def _assigned(nodes: Iterator[ast.AST], name: str) -> Iterator[ast.expr]:
    """Yield the expressions that the variable of a name is given among the nodes."""
    for node in nodes:
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            targets, value = [node.target], node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            targets, value = [node.target], node.iter
        if value is not None and any(
            isinstance(part, ast.Name) and part.id == name for target in targets for part in ast.walk(target)
        ):
            yield value
