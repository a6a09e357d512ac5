"""Pasted text -> blocks (exception, message, frames) and loose paragraphs. Reads every form that logs take.

All patterns are anchored or bounded, and the number of lines looked at has a limit: the work is linear in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Chain = Literal["", "context", "cause", "group", "body", "inline"]

MAX_LINES = 3_000
_HEAD_LINES, _TAIL_LINES, _MARKED_LINES = 200, 800, 1_990
_MAX_MESSAGE_LINES, _MAX_MESSAGE = 60, 8_192
_MAX_BODIES = 32
_LEAST_PANE = 60
_MAX_PREFIX = 400


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as printed; `line` is 0 and `function`, `source` are "" where the text does not say."""

    path: str
    line: int = 0
    function: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """One error as understood.

    Shape: `exception` is the class name as printed ("torch.OutOfMemoryError"), "" where it is lost; `frames` are
    outermost first; `closed` says that the last frame is the one that raised; `chained` says how it hangs on the
    block before it ("context": raised while handling that one, "cause": raised from it, "group": a member of a
    group) or where it was found ("body": an HTTP body, "inline": inside a line); `logger` is the "file.py:line" that
    a log prefix names.
    """

    exception: str
    message: str
    frames: tuple[Frame, ...] = ()
    chained: Chain = ""
    closed: bool = False
    logger: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """A pasted text, read.

    Shape: `paragraphs` are loose texts (log lines with what continues them), each at most some thousand characters;
    `statements` are `assert` and `raise` lines that stand in no frame; `text` is everything, cleaned.
    """

    blocks: tuple[Block, ...] = ()
    paragraphs: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    text: str = ""


_ANSI = re.compile(r"\x1b(?:\[[0-9;?]{0,32}[ -/]?[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)?|[@-Z\\^_])")
_BARE_ANSI = re.compile(r"\[(?:(?:\d{1,3};){0,4}\d{1,3}m|m(?!\w))")
_WRITTEN_ESCAPES = ("\\x1b[", "\\u001b[", "\\033[", "␛[")
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\u200b-\u200f\u2060]")
_WIDE_BLANK = re.compile("[\xa0\u202f]")
_WIDE_LINE_END = re.compile("[\x85\u2028\u2029]")
_BLANK_LINES = re.compile(r"\n{3,}")
_BOX = "│┃║▏▕╎╏┆┇┊┋╭╮╰╯┌┐└┘├┤─━═╔╗╚╝"
_BOX_EDGE = re.compile(rf"^[ \t]{{0,40}}[{_BOX}]+ ?|[ \t]*[{_BOX}]+[ \t]*$")
_LEFT_EDGE = re.compile(rf"^[ \t]{{0,40}}[{_BOX}]+ ?")
_GROUP_EDGE = re.compile(r"^ {0,40}(?:\| ?|\+ (?=Exception Group)|\+[+-]{3,}[ \d-]*$)")
_GROUP_MEMBER = re.compile(r"^\s{0,40}\+[+-]{3,} \d+ -{3,}$")

_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_RANKS = r"(?:(?:[ ][A-Z][A-Z_]{0,12}\d{1,5}){1,6})?"
_LEVELS = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)"
# One alternative a form; matched again and again at the start of a line. `key` groups tell streams apart.
_PREFIX = re.compile(
    rf"""(?:
    (?P<time>\[{{0,2}}(?:\d{{4}}[-/]\d\d[-/]\d\d[T ]|\d\d-\d\d\ )?{_TIME}(?P<rank>{_RANKS})\]?:?)
  | (?P<syslog>[A-Z][a-z]{{2}}\ [ \d]\d\ \d\d:\d\d:\d\d\ [\w.\-]{{1,64}}\ [\w.\-/]{{1,64}}\[\d{{1,9}}\]:)
  | (?P<glog>[IWEF]\d{{4}}\ {_TIME}\ {{1,8}}\d{{1,9}}\ [\w./\-]{{1,120}}:\d{{1,6}}\])
  | (?P<level>[\[<]?{_LEVELS}[\]>]?(?=[\s:\-|])[:|]?)
  | (?P<where>\[?[\w./\-]{{1,120}}\.(?:py|cc|cpp|cu|rs|go):\d{{1,6}}\])
  | (?P<module>-\ (?:[\w.\-]{{1,80}}\ -(?=\ |$))?)
  | (?P<ray>\([\w.:<>\-]{{1,80}}(?:\ rank=\d{{1,5}})?\ pid=\d{{1,9}}[^()\n]{{0,60}}\))
  | (?P<docker>(?:[A-Za-z0-9][\w.\-]{{0,60}}[\-_]\d{{1,3}}|[A-Za-z][\w.\-]{{1,60}}(?=\ \ ))\ {{0,40}}\|(?=\ |$))
  | (?P<elastic>\[(?:default|rank|worker|host)?\d{{1,5}}\]:)
  | (?P<mpi>\[\d{{1,5}},\d{{1,5}}\]<std(?:err|out)>:?)
  | (?P<srun>\d{{1,4}}:(?=\ ))
  | (?P<cri>std(?:out|err)\ [FP](?=\ |$))
  | (?P<pod>\[pod/[\w./\-]{{1,160}}\])
  | (?P<host>[\w.\-]{{1,64}}\ >>(?=\ ))
  | (?P<worker>[Ww]orker\ \d{{1,5}}:)
  | (?P<lostrank>(?:[A-Z]{{2,5}}\d{{1,5}}\ ?){{1,4}}\]:?)
  | (?P<dots>\[\.\.\])
  | (?P<quote>>{{1,3}}(?=\ ))
    )""",
    re.VERBOSE,
)
_PREFIX_START = frozenset("[(<>-0123456789IWEFTDCNAJMOSw") | frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_EMITTER = re.compile(r"(?:[a-z_]\w{0,60}\.){1,8}[a-z_]\w{0,60}:(?= )")
_RAY_REPEAT = re.compile(r" ?\[repeated \d+x across (?:all )?(?:the )?cluster\].{0,200}$")
_OUTER = ("ray", "docker", "elastic", "mpi", "srun", "pod", "worker")
_STARTS = frozenset({"time", "syslog", "glog", "level", "where", "lostrank"})

_TRACEBACK = re.compile(r"(?:Exception Group )?Traceback \(most recent call last\):?")
_FRAME = re.compile(r'(?:[ \t]{0,80})(?:File |file )["“]([^"”\n]{1,1000})["”],? line (\d{1,9})(?:,? in (.{1,300}))?')
_LOOSE_FRAME = re.compile(
    r"(?:[-*>] ?|\d{1,3}[.)] ?|at |in |from |-> |└─ ?|❱ ?|\()?"
    r"((?:[\w.~<>\-]{0,120}/){0,40}[\w.\-]{1,120}\.pyx?)(?:\)?, line |:| line |, )(\d{1,7})"
    r"(?:[,:]? in (?:function )?)?[`(]?(<?[\w.<>]{1,160})?"
)
_RICH_SOURCE = re.compile(r"^\s{0,20}❱ ?\d{1,7} [│|]?(.*)$")
_RICH_CONTEXT = re.compile(r"^\s{0,20}\d{1,7} [│|]")
_CARETS = re.compile(r"^[\s~^.]*[~^][\s~^.]*$")
_REPEATED = re.compile(r"^\s*\[Previous line repeated \d+ more times?\]$")
_NAME = r"(?:[A-Za-z_]\w{0,80}\.){0,10}[A-Za-z_]\w{0,100}"
_EXCEPTION = re.compile(rf"({_NAME})(?::(?: (.*))?)?$", re.DOTALL)
_SUFFIX = (
    r"(?:Error|Exception|Interrupt|Exit|Warning|Timeout|ExceptionGroup|Failure|Fault|Iteration|"
    r"NotFound|Mismatch|Abort|Aborted|Cancelled|Invalid|Expired|Refused|Reset|Empty|Full)"
)
_CLASS_NAME = rf"(?:[A-Z_]\w{{0,100}}?{_SUFFIX}\d?|(?:Base)?Exception)"
_TYPED = re.compile(rf"((?:[A-Za-z_]\w{{0,80}}\.){{0,10}}{_CLASS_NAME})(?::(?: (.*))?)?$", re.DOTALL)
_INLINE = re.compile(rf"(?<![\w.'\"])((?:[A-Za-z_]\w{{0,60}}\.){{0,6}}{_CLASS_NAME})(:\s+|\()")
_CLASS = re.compile(r"<class '((?:\w{1,80}\.){0,8}\w{1,80})'>(?: ?[-:>,]{1,2} ?)")
_CONTEXT = re.compile(r"[Dd]uring handling of the above exception, another exception occurred")
_CAUSE = re.compile(r"[Tt]he above exception was the direct cause of the following exception")
_STATEMENT = re.compile(r"[(`>\s]{0,6}((?:assert|raise)[ (].*)$", re.DOTALL)
_BODY = re.compile(
    r"""["'](?:message|detail|error|error_message|err_msg|msg|text|reason)\\{0,7}["']\s{0,8}:\s{0,8}(\\{0,7})(["'])""",
)
_FENCE = re.compile(r"^\s{0,8}(?:`{3,}|~{3,})\w{0,20}\s*$")
# Searched one by one: `str.find` is a hundred times faster than one pattern of them all.
_MARKS = ("Traceback (most", 'File "', "Error", "Exception", "assert ", "raise ", '"message', "'message")
_MESSAGE_KEYS = (
    "message",
    "msg",
    "log",
    "text",
    "event",
    "error",
    "exc_info",
    "exception",
    "exc_text",
    "stack",
    "traceback",
)
_CODEY = re.compile(
    r"^(?:return|if|for|with|self|await|yield|else|elif|try|except|while|super)\b|[=(\[{,]$|^[\w.\[\], ]+ = |^[)\]}]"
)


def read(text: str) -> Log:
    """Return the blocks, paragraphs and statements of a pasted text. Any text is legal."""
    text = _clean(text)
    reader = _Reader()
    for line in _lines(text):
        reader.take(line)
    reader.end()
    return Log(
        blocks=tuple(_distinct(reader.blocks + _bodies(text))),
        paragraphs=tuple(dict.fromkeys(reader.paragraphs)),
        statements=tuple(dict.fromkeys(reader.statements)),
        text=text,
    )


def _clean(text: str) -> str:
    """Return the text with plain line ends, without terminal codes and invisible characters."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "m" in text and "[" in text:
        for written in _WRITTEN_ESCAPES:
            text = text.replace(written, "[")
        text = _BARE_ANSI.sub("", text)
    text = _BLANK_LINES.sub("\n\n", _INVISIBLE.sub("", text))
    if not text.isascii():
        text = _WIDE_LINE_END.sub("\n", _WIDE_BLANK.sub(" ", text))
    return text


@dataclass(slots=True)
class _Line:
    """One line without its prefix. `starts`: the prefix begins a log record; `stream`: who wrote it."""

    text: str
    starts: bool
    outer: str
    rank: str | None
    logger: str = ""


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines, each without its prefixes; JSON lines are opened."""
    for raw in _unwrapped(_budgeted(text)):
        line = raw.rstrip()
        if not line:
            yield _Line("", False, "", None)
            continue
        bare = line.lstrip()
        if bare[0] in _BOX or line[-1] in _BOX:
            line = _BOX_EDGE.sub("", line).rstrip()
            bare = line.lstrip()
        if _FENCE.match(line):
            line = bare = ""
        if not bare:
            yield _Line("", False, "", None)
            continue
        parsed = _without_prefix(line, bare)
        inner = parsed.text.lstrip()
        opened = _opened(inner) if inner[:1] == "{" else None
        if opened is None:
            yield parsed
            continue
        for n, value in enumerate(opened):
            for m, part in enumerate(value.split("\n")):
                again = _without_prefix(part, part.lstrip()) if part.strip() else _Line("", False, "", None)
                yield _Line(again.text.rstrip(), m == 0 or again.starts, parsed.outer, again.rank if m == 0 else None)
            if n < len(opened) - 1:
                yield _Line("", False, parsed.outer, None)


def _unwrapped(lines: list[str]) -> Iterator[str]:
    """Yield the lines; those that a box or the pane of a terminal broke at its edge are one again."""
    begun = ""
    for raw in lines:
        line = raw.rstrip()
        full = _full(line) if line and line[-1] in _BOX and len(line) >= _LEAST_PANE else ""
        inner = _LEFT_EDGE.sub("", full or line)
        if begun and inner[:2] == "  ":  # indented: a line of its own
            yield begun
            begun = ""
        joined = begun + inner if begun else full
        if full and len(joined) < _MAX_MESSAGE:
            begun = joined
            continue
        yield joined or raw
        begun = ""
    if begun:
        yield begun


def _full(line: str) -> str:
    """Return what stands before the right edge of a line that reaches it, "" where it ends before.

    It may have been broken at a blank, which then stands there as one more.
    """
    text = line[:-1]
    if line.lstrip()[0] in _BOX:
        text = text.removesuffix(" ")
    said = text.rstrip(" ")
    return text if said and said[-1] not in _BOX and len(text) - len(said) <= 1 else ""


def _budgeted(text: str) -> list[str]:
    """Return the lines; of more than `MAX_LINES`, the first, the last and those round what looks like an error."""
    lines = text.split("\n")
    if len(lines) <= MAX_LINES:
        return lines
    starts = np.concatenate([[0], np.cumsum(np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + 1)])
    keep = set(range(_HEAD_LINES)) | set(range(len(lines) - _TAIL_LINES, len(lines)))
    for mark in _MARKS:
        place, left = text.find(mark), _MARKED_LINES // len(_MARKS) // 4
        while place >= 0 and left:
            at = int(np.searchsorted(starts, place, side="right")) - 1
            keep.update(range(max(0, at - 1), min(len(lines), at + 3)))
            place, left = text.find(mark, int(starts[at + 1])), left - 1
    return [lines[i] for i in sorted(keep)]


def _without_prefix(line: str, bare: str) -> _Line:
    """Strip what collectors and loggers put before a line; keep the indentation that follows it."""
    outer, rank, starts, logger, levelled = "", None, False, "", False
    at = len(line) - len(bare)
    begun = False
    for _ in range(8):
        match = _PREFIX.match(line, at, at + _MAX_PREFIX) if line[at : at + 1] in _PREFIX_START else None
        if match is None and levelled:
            match = _EMITTER.match(line, at, at + _MAX_PREFIX)
        if match is None or match.end() == at:
            break
        kind = match.lastgroup or ""
        if kind == "rank":
            kind = "time"
        begun = True
        if kind in _OUTER:
            outer += match.group()
        elif kind == "time":
            rank = (match.group("rank") or "").strip()
        elif kind == "lostrank":
            rank = match.group().rstrip("]: ")
        elif kind == "where":
            logger = match.group().strip("[]")
        levelled = levelled or kind == "level"
        starts = starts or kind in _STARTS
        at = match.end()
        if line[at : at + 1] == " ":
            at += 1
        if kind == "docker" and line[at : at + 1] == " ":
            break_at = len(line) - len(line[at:].lstrip())
            if not _PREFIX.match(line, break_at, break_at + _MAX_PREFIX):
                break
        # More blanks are padding only where another prefix follows.
        padded = (
            len(line) - len(line[at : at + 60].lstrip()) - max(0, len(line) - at - 60)
            if line[at : at + 1] == " "
            else at
        )
        if padded != at and _PREFIX.match(line, padded, padded + _MAX_PREFIX) and line[padded] in "[(":
            at = padded
    if not begun:
        stripped = _GROUP_EDGE.sub("", line) if bare[0] in "|+" else line
        return _Line(stripped, False, "", None)
    rest = line[at:]
    if "[repeated" in rest:
        rest = _RAY_REPEAT.sub("", rest)
    if rest[:1] in ("|", "+", " ") and rest.lstrip()[:1] in ("|", "+"):
        rest = _GROUP_EDGE.sub("", rest)
    return _Line(rest, starts, outer, rank, logger)


def _opened(line: str) -> list[str] | None:
    """Return the texts of a JSON line, None where it is none."""
    if len(line) > 65_536 or line[-1] != "}" or '"' not in line:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    texts: list[str] = []
    _texts(value, texts, 0)
    return texts or None


def _texts(value: dict[str, object], into: list[str], depth: int) -> None:
    for key in sorted(value, key=lambda k: _MESSAGE_KEYS.index(k) if k in _MESSAGE_KEYS else 99):
        entry = value[key]
        if isinstance(entry, str) and (key in _MESSAGE_KEYS or " " in entry):
            into.append(_clean(entry))
        elif isinstance(entry, dict) and depth < 4:
            _texts(entry, into, depth + 1)


@dataclass(slots=True)
class _Open:
    """A block while it is being read."""

    exception: str = ""
    message: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    chained: Chain = ""
    has_message: bool = False
    wants_source: bool = False
    headed: bool = False
    trailing: bool = False
    stamped: bool = False
    logger: str = ""


@dataclass(slots=True)
class _Stream:
    """What one writer has said so far."""

    block: _Open | None = None
    paragraph: list[str] = field(default_factory=list)
    chain: Chain = ""
    logger: str = ""


class _Reader:
    """The state machine over lines; one `_Stream` a writer, so that interleaved ranks come apart."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.paragraphs: list[str] = []
        self.statements: list[str] = []
        self._streams: dict[tuple[str, str], _Stream] = {}
        self._rank: dict[str, str] = {}
        self._outer = ""

    def take(self, line: _Line) -> None:
        """Read one line."""
        outer = line.outer
        if line.rank is not None:
            self._rank[outer] = line.rank
        key = (outer, self._rank.get(outer, ""))
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream()
        if line.starts:
            stream.logger = line.logger
        self._read(stream, line)

    def end(self) -> None:
        """Close whatever is open."""
        for stream in self._streams.values():
            self._close(stream)
            self._flush(stream)

    def _read(self, stream: _Stream, line: _Line) -> None:
        text = line.text
        bare = text.strip()
        block = stream.block
        if not bare:
            if block is not None and block.has_message:
                self._close(stream)
            self._flush(stream)
            return
        if "Traceback (" in bare and (header := _TRACEBACK.search(bare)):
            self._header(stream, bare, header)
            return
        if "xception" in bare and self._chains(stream, bare):
            return
        if _GROUP_MEMBER.match(text) or bare.startswith("+---"):
            self._close(stream)
            stream.chain = "group"
            return
        if ".py" in bare or "ile " in bare:
            frame = _frame(text)
            if frame is not None:
                self._frame(stream, *frame)
                if stream.block is not None:
                    stream.block.stamped = line.starts
                return
        # A collector that stamps every line stamps those of a traceback too.
        belongs = not line.starts or (block is not None and block.stamped and not block.has_message)
        if block is not None and belongs and self._inside(stream, block, text, bare):
            return
        if block is not None and line.starts:
            self._close(stream)
        if line.starts:
            self._flush(stream)
        typed = _TYPED.match(bare) if bare[0].isalpha() or bare[0] == "_" else None
        if typed:
            self._flush(stream)
            self._open(stream)
            self._exception(stream, typed)
            return
        self._loose(stream, bare)

    def _header(self, stream: _Stream, bare: str, header: re.Match[str]) -> None:
        self._close(stream)
        before = bare[: header.start()].strip(" +|")
        if before:
            self._flush(stream)
            self._loose(stream, before)
        self._flush(stream)
        self._open(stream).headed = True
        rest = bare[header.end() :].strip()
        if rest.startswith("File "):  # line ends lost: one line holds it all
            for piece in re.split(r"\s(?=File \")", rest[:_MAX_MESSAGE]):
                if frame := _frame(piece):
                    self._frame(stream, *frame)

    def _chains(self, stream: _Stream, bare: str) -> bool:
        chain: Chain = "context" if _CONTEXT.search(bare) else "cause" if _CAUSE.search(bare) else ""
        if chain:
            self._close(stream)
            self._flush(stream)
            stream.chain = chain
        return bool(chain)

    def _frame(self, stream: _Stream, frame: Frame, strict: bool) -> None:
        block = stream.block
        if block is not None and block.has_message:
            if not block.frames or block.trailing:
                # Frames listed under the message: innermost first, without a header between.
                block.trailing = True
                block.frames.append(frame)
                block.wants_source = strict
                return
            self._close(stream)
            block = None
        if block is None:
            self._flush(stream)
            block = self._open(stream)
        block.frames.append(frame)
        block.wants_source = True

    def _inside(self, stream: _Stream, block: _Open, text: str, bare: str) -> bool:
        """Return whether the line belongs to the open block."""
        if _CARETS.match(text) or _REPEATED.match(text):
            return True
        if rich := _RICH_SOURCE.match(text):
            self._source(block, rich.group(1).strip(" │|"))
            return True
        if _RICH_CONTEXT.match(text):
            return True
        if block.has_message:
            if len(block.message) >= _MAX_MESSAGE_LINES:
                self._close(stream)
                return False
            if bare[0] == "(" and (statement := _STATEMENT.match(bare)) and block.frames:
                self._source(block, statement.group(1).rstrip(")"))
                block.message.append(bare)
                return True
            if block.message and block.wants_source and block.trailing:
                self._source(block, bare)
                return True
            if _TYPED.match(bare) and not text.startswith(" "):
                self._close(stream)
                return False
            block.message.append(bare)
            return True
        if not block.frames:
            return False
        exception = _EXCEPTION.match(bare)
        typed = exception is not None and (_TYPED.match(bare) is not None)
        if block.wants_source and not typed:
            self._source(block, bare)
            return True
        named = exception is not None and ("." in exception.group(1) or block.headed) and not _CODEY.search(bare)
        if exception is not None and (typed or named):
            self._exception(stream, exception)
            return True
        if text[:2] == "  " or _CODEY.search(bare):
            return True  # more lines of a long statement
        block.has_message = True
        block.message.append(bare)
        block.logger = stream.logger
        return True

    def _source(self, block: _Open, source: str) -> None:
        frame = block.frames[-1]
        if not frame.source:
            block.frames[-1] = Frame(frame.path, frame.line, frame.function, source)
        block.wants_source = False

    def _exception(self, stream: _Stream, match: re.Match[str]) -> None:
        block = stream.block or self._open(stream)
        block.exception = match.group(1)
        block.has_message = True
        block.wants_source = False
        block.logger = stream.logger
        if match.group(2):
            block.message.append(match.group(2))

    def _open(self, stream: _Stream) -> _Open:
        self._close(stream)
        stream.block = _Open(chained=stream.chain)
        stream.chain = ""
        return stream.block

    def _close(self, stream: _Stream) -> None:
        block = stream.block
        stream.block = None
        if block is None or not (block.frames or block.exception or block.message):
            return
        frames = block.frames[::-1] if block.trailing else block.frames
        message = "\n".join(block.message)[:_MAX_MESSAGE]
        closed = block.has_message and bool(frames) and (block.trailing or bool(block.exception))
        self.blocks.append(Block(block.exception, message, tuple(frames), block.chained, closed, block.logger))

    def _loose(self, stream: _Stream, bare: str) -> None:
        if sum(map(len, stream.paragraph[-_MAX_MESSAGE_LINES:])) > _MAX_MESSAGE // 2:
            self._flush(stream)
        if len(bare) > _MAX_MESSAGE:
            for at in range(0, len(bare), _MAX_MESSAGE // 2):
                self.paragraphs.append(bare[at : at + _MAX_MESSAGE])
            return
        stream.paragraph.append(bare)
        if statement := _STATEMENT.match(bare):
            self.statements.append(statement.group(1).rstrip("`"))

    def _flush(self, stream: _Stream) -> None:
        """End the paragraph; an exception named inside it makes a block of its own."""
        if not stream.paragraph:
            return
        text = "\n".join(stream.paragraph)
        stream.paragraph = []
        self.paragraphs.append(text)
        for match in list(_INLINE.finditer(text))[:4]:
            whole = match.group(2) == "("
            message = text[match.start(1) if whole else match.end() :]
            self.blocks.append(Block(match.group(1), message, (), "inline", logger=stream.logger))
        for match in list(_CLASS.finditer(text))[:2]:
            self.blocks.append(Block(match.group(1), text[match.end() :], (), "inline", logger=stream.logger))


def _frame(text: str) -> tuple[Frame, bool] | None:
    """Return the frame that a line is and whether it has the form of a traceback."""
    if match := _FRAME.match(text):
        path, line, function = match.groups()
        return Frame(path, int(line), _function(function)), True
    match = _LOOSE_FRAME.match(text.lstrip())
    if match is None:
        return None
    path, line, function = match.groups()
    return Frame(path, int(line), _function(function)), False


def _function(name: str | None) -> str:
    """Return the bare function name that a frame prints."""
    return (name or "").strip().rstrip("`():,").strip()


def _bodies(text: str) -> list[Block]:
    """Return the messages of HTTP bodies in the text, whatever they are quoted in."""
    found: list[Block] = []
    at = 0
    while len(found) < _MAX_BODIES and (match := _BODY.search(text, at)):
        escape, quote = match.group(1), match.group(2)
        end = _closing(text, match.end(), escape, quote)
        message = _unescaped(text[match.end() : end], len(escape))
        at = max(end, match.end())
        if " " in message:
            found.append(Block("", message, (), "body"))
    return found


def _closing(text: str, start: int, escape: str, quote: str) -> int:
    """Return where the string that begins at `start` ends: at its quote with as many backslashes, or with the text."""
    limit = min(len(text), start + _MAX_MESSAGE)
    at = start
    while True:
        at = text.find(quote, at, limit)
        if at < 0:
            return limit
        before = at
        while before > start and text[before - 1] == "\\":
            before -= 1
        if at - before <= len(escape) and (at - before == len(escape) or not escape):
            return before
        at += 1


def _unescaped(text: str, depth: int) -> str:
    """Return the text without its escapes: quotes, line ends and code points."""
    if "\\" not in text:
        return text
    text = re.sub(r"\\{1,7}u([0-9a-fA-F]{4})", lambda m: chr(int(m.group(1), 16)), text)
    text = re.sub(r"\\{1,7}[nrt]", "\n", text)
    return re.sub(r"\\{1,7}(?=[\"'/\\])", "", text) if depth or "\\" in text else text


def _distinct(blocks: list[Block]) -> Iterator[Block]:
    """Yield each block once: every rank prints the same error."""
    seen: set[tuple[str, str, tuple[tuple[str, str], ...]]] = set()
    for block in blocks:
        key = (block.exception, block.message, tuple((f.path, f.function) for f in block.frames))
        if key not in seen:
            seen.add(key)
            yield block
