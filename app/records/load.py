"""Curated files -> values, strictly: an error names the file, the field or heading, and what would be right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pydantic import ValidationError

from app.errors import Broken
from app.records.body import BodyError, body
from app.records.model import CuratedRecord, FrontMatter

_FENCE = "+++"
_NAME = re.compile(r"([0-9a-f]{16})-([a-z0-9]+(?:-[a-z0-9]+)*)\.md")
_TODO = re.compile(r"\bTODO\b")
_MOST_BYTES = 65_536


class RecordError(Broken):
    """A curated file is not as it should be."""

    title = "Broken curated record"


def load(path: Path) -> CuratedRecord:
    """Read one file.

    Raises: RecordError: it is not as docs/records.md says.
    """
    where = f"{path.parent.name}/{path.name}"
    name = _NAME.fullmatch(path.name)
    if name is None:
        raise RecordError(f"{where}: the name must be <id>-<slug>.md, 16 hex digits and lower-case words with hyphens")
    text = _text(path, where)
    if todo := _TODO.search(text):
        line = text.count("\n", 0, todo.start()) + 1
        raise RecordError(f"{where}: line {line}: write what TODO stands for")
    head, rest, offset = _split(text, where)
    front = _front(head, where)
    if front.id != name[1]:
        raise RecordError(f"{where}: id: {front.id!r} differs from the file name's {name[1]!r}")
    if front.package != path.parent.name:
        raise RecordError(f"{where}: package: {front.package!r} differs from the folder's name {path.parent.name!r}")
    try:
        said = body(rest, offset)
    except BodyError as error:
        raise RecordError(f"{where}: {error}") from None
    if (front.example.solution or 1) > len(said.solutions):
        raise RecordError(f"{where}: example.solution: there are {len(said.solutions)} solutions")
    return CuratedRecord(file=path.name, slug=name[2], front=front, body=said)


def load_all(folder: Path) -> tuple[CuratedRecord, ...]:
    """Read every curated file of a package's folder, by id; a missing folder holds none.

    Raises: RecordError: a file is not as it should be, or two have one id.
    """
    records, problems = survey(folder)
    if problems:
        raise RecordError("\n".join(problems))
    return records


def survey(folder: Path) -> tuple[tuple[CuratedRecord, ...], tuple[str, ...]]:
    """Return the records of a folder that can be read, and what is wrong with the others."""
    records: dict[str, CuratedRecord] = {}
    problems: list[str] = []
    for path in files(folder):
        try:
            record = load(path)
        except RecordError as error:
            problems.append(error.detail)
            continue
        if record.front.id in records:
            other = records[record.front.id].file
            problems.append(f"{folder.name}/{path.name}: id: {record.front.id} is {other}'s already")
        records.setdefault(record.front.id, record)
    return tuple(records.values()), tuple(problems)


def files(folder: Path) -> list[Path]:
    """Return the curated files of a package's folder, by name."""
    return sorted(folder.glob("*.md"))


def _text(path: Path, where: str) -> str:
    data = path.read_bytes()
    if len(data) > _MOST_BYTES:
        raise RecordError(f"{where}: {len(data)} bytes; a record has at most {_MOST_BYTES}")
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise RecordError(f"{where}: byte {error.start} is not UTF-8") from None


def _split(text: str, where: str) -> tuple[str, str, int]:
    """Return front matter, body and the number of lines before the body."""
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        raise RecordError(f"{where}: line 1: the file must begin with a line {_FENCE!r}, then TOML")
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip() == _FENCE:
            return "\n".join(lines[1 : number - 1]), "\n".join(lines[number:]), number
    raise RecordError(f"{where}: the front matter is not closed by a line {_FENCE!r}")


def _front(toml: str, where: str) -> FrontMatter:
    try:
        values = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        raise RecordError(f"{where}: front matter (its lines count from the first +++): {error}") from None
    try:
        return FrontMatter.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(step) for step in first["loc"])
        known = ", ".join(FrontMatter.model_fields) if first["type"] == "extra_forbidden" else ""
        raise RecordError(f"{where}: {field}: {first['msg']}{f'; known are {known}' if known else ''}") from None
