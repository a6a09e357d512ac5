"""Pasted shell text to statements of words, without a shell: nothing is run and nothing of ours is expanded.

What is read: quotes, backslashes, continuations (also `^` and a backtick at the end of a line), comments, prompts,
separators, redirections (dropped), arrays, `$NAME` and `${NAME:-default}` from assignments in the same text.
Everything else that a shell would compute is a missing value with a name. One pass; the cost is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from app.errors import BadInput

EXPANDED_LIMIT = 256 * 1024
EXPORTED_LIMIT = 256
MISSING_LIMIT = 50
DEPTH_LIMIT = 8

_PLAIN = re.compile(r"[^\s\\'\"$`;&|<>()#^]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_GLUED = re.compile(r"\\[ \t]+(?:(?=\n|\Z)|#[^\n]*)")
_PLACEHOLDER = re.compile(r"<[A-Za-z][^<>\n]{0,63}>")
_PROMPT = re.compile(
    r"[ \t]*(?:\([\w.+-]{1,64}\)[ \t]*)?"
    r"(?:[\w.-]{1,64}@[\w.-]{1,64}(?::| )[^\s$#%]{0,256}[ \t]?[$#%]|\$|%"
    r"|PS [^\s>]{0,256}>|[A-Z]:\\[^\s>]{0,256}>)[ \t]+"
)
_CONTINUED_PROMPT = re.compile(r"[ \t]*>[ \t]+")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)[\w+-]*[ \t]*$")
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])")
_QUOTES = {ord(c): plain for plain, fancy in (('"', "“”„‟″"), ("'", "‘’‚‛′")) for c in fancy}
_READ_OTHERWISE: tuple[tuple[dict[int, str | None], str], ...] = (
    ({ord(c): None for c in "\u200b\u200c\u200d\u2060\ufeff\u00ad"}, "invisible characters were left out"),
    ({ord(c): " " for c in "\u00a0\u2007\u202f\u2009\u3000\u2003\u2002"}, "special spaces were read as spaces"),
    (dict(_QUOTES), "typographic quotes were read as plain ones"),
)
_ANSI_C = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_OPENERS = frozenset({"{", "then", "do", "else", "!", "}", "fi", "done"})


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that a shell would look up. `default` is what the text itself offers; None: nothing."""

    name: str
    shown: str
    default: Word | None = None
    array: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word: literal text, or a reference; `quoted` text is not split or matched any further."""

    text: str = ""
    reference: Reference | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """One word; `elements` are the words of an array assignment `NAME=(a b)`."""

    pieces: tuple[Piece, ...]
    elements: tuple[Word, ...] | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """An expanded word and the names of what is missing in it."""

    text: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """One simple command. `assigned` are its own `NAME=value` prefixes, `exported` those in force from before."""

    assigned: tuple[tuple[str, Value], ...]
    words: tuple[Value, ...]
    exported: tuple[tuple[str, Value], ...]
    after_newline: bool


@dataclass
class Notes:
    """Sentences about what was read otherwise than written, in order, each once."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Keep `line` unless it is there already."""
        if line not in self.lines:
            self.lines.append(line)


def cleaned(text: str, notes: Notes) -> str:
    """Return `text` as typed: without prompts, fences, terminal colours, fancy quotes and invisible characters."""
    if "\0" in text:
        raise BadInput("The command holds a NUL character.")
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    for table, what in _READ_OTHERWISE:
        changed = text.translate(table)
        if changed != text:
            notes.add(f"In the command, {what}; a shell would not do so.")
            text = changed
    glued = _GLUED.sub(r"\\", text)
    if glued != text:
        notes.add(
            "A backslash followed by a space or a comment was read as a line continuation; "
            "a shell would end the command."
        )
        text = glued
    lines, continued = [], False
    for line in text.split("\n"):
        if _FENCE.match(line):
            continue
        prompt = (_CONTINUED_PROMPT if continued else _PROMPT).match(line)
        typed = line[prompt.end() :] if prompt else line
        continued = typed.endswith(("\\", "^", "`"))
        lines.append(typed)
    return "\n".join(lines)


class Scanner:
    """Reads words out of one text. `position` only ever grows."""

    def __init__(self, text: str, notes: Notes) -> None:
        self.text, self.notes, self.position = text, notes, 0

    def statements(self) -> Iterator[tuple[list[Word], bool]]:
        """Yield the words of each simple command, and whether it starts on a line of its own."""
        words: list[Word] = []
        fresh = True
        while self.position < len(self.text):
            separator = self._separator()
            if separator is None:
                word = self._word()
                if word is not None:
                    words.append(word)
                continue
            if words:
                yield words, fresh
                words = []
            fresh = separator == "\n"
        if words:
            yield words, fresh

    def interpolated(self) -> Word:
        """Return the whole text as one word in which only `$` is special (compose files)."""
        return Word(tuple(self._inside(None, 0)))

    def _separator(self) -> str | None:
        """Skip blanks, comments and redirections; return the separator that follows, if one does."""
        text = self.text
        while self.position < len(text):
            here = text[self.position]
            if here == "\n" or here in ";|()":
                self.position += 1
                return here
            if here.isspace():
                self.position += 1
            elif self._continuation():
                pass
            elif here == "#":
                end = text.find("\n", self.position)
                self.position = len(text) if end < 0 else end
            elif here == "&" and text.startswith(("&>", "&>>"), self.position):
                self.position += 1
            elif here == "&":
                self.position += 1
                return here
            elif here == ">" or (here == "<" and not self._placeholder()):
                self._redirection()
            else:
                return None
        return "\n"

    def _continuation(self) -> bool:
        """Skip a backslash, caret or backtick that ends a line."""
        if self.text.startswith(("\\\n", "^\n", "`\n"), self.position):
            self.position += 2
            return True
        if self.position == len(self.text) - 1 and self.text[self.position] in "\\^`":
            self.position += 1
            return True
        return False

    def _placeholder(self) -> str | None:
        found = _PLACEHOLDER.match(self.text, self.position)
        return found[0] if found and not found[0][-2].isspace() else None

    def _redirection(self) -> None:
        """Skip a redirection and what it names."""
        text = self.text
        while self.position < len(text) and text[self.position] in "<>&|-":
            self.position += 1
        while self.position < len(text) and text[self.position] in " \t":
            self.position += 1
        if self.position < len(text) and text[self.position] not in "\n;|()&<>":
            self._word()

    def _word(self) -> Word | None:
        """Return the word at the position; None where it is the number of a redirection (`2>`)."""
        text, start = self.text, self.position
        pieces: list[Piece] = []
        while self.position < len(text):
            here = text[self.position]
            plain = _PLAIN.match(text, self.position)
            if plain:
                pieces.append(Piece(plain[0]))
                self.position = plain.end()
            elif here == "<" and (placeholder := self._placeholder()):
                pieces.append(Piece(reference=Reference(placeholder, placeholder)))
                self.position += len(placeholder)
            elif self._continuation():
                break
            elif here == "(" and len(pieces) == 1 and _ASSIGNMENT.fullmatch(pieces[0].text):
                return Word(tuple(pieces), self._array())
            elif here.isspace() or here in ";&|<>()":
                break
            elif here == "\\":
                pieces.append(Piece(text[self.position + 1 : self.position + 2], quoted=True))
                self.position += 2
            elif here in "'\"":
                pieces.extend(self._quoted(here))
            elif here == "$":
                pieces.extend(self._dollar(quoted=False, depth=0))
            elif here == "`":
                pieces.append(self._substitution("`"))
            else:  # '#' and '^' inside a word
                pieces.append(Piece(here))
                self.position += 1
        if self.position < len(text) and text[self.position] in "<>" and text[start : self.position].isdigit():
            return None
        return Word(tuple(pieces))

    def _array(self) -> tuple[Word, ...]:
        self.position += 1
        elements: list[Word] = []
        while self.position < len(self.text):
            separator = self._separator()
            if separator == ")":
                return tuple(elements)
            if separator is None and (word := self._word()) is not None:
                elements.append(word)
        return tuple(elements)

    def _quoted(self, quote: str) -> list[Piece]:
        start = self.position
        self.position += 1
        if quote == '"':
            return self._inside('"', 0) or [Piece(quoted=True)]
        end = self.text.find(quote, self.position)
        if end < 0:
            raise self._unclosed(quote, start)
        piece = Piece(self.text[self.position : end], quoted=True)
        self.position = end + 1
        return [piece]

    def _unclosed(self, quote: str, start: int) -> BadInput:
        line = self.text.count("\n", 0, start) + 1
        return BadInput(f"A quote ({quote}) opened on line {line} of the command is never closed.")

    def _inside(self, end: str | None, depth: int) -> list[Piece]:
        """Read up to `end` (`"`, `}` or, with None, the end of the text), past it."""
        text, pieces, start = self.text, [], self.position
        run = re.compile(r"[^$]+" if end is None else r'[^"\\$`]+' if end == '"' else r"[^\"'\\$`}]+")
        while self.position < len(text):
            here = text[self.position]
            plain = run.match(text, self.position)
            if plain:
                pieces.append(Piece(plain[0], quoted=True))
                self.position = plain.end()
            elif here == end:
                self.position += 1
                return pieces
            elif here == "$":
                pieces.extend(self._dollar(quoted=True, depth=depth, compose=end is None))
            elif here == "\\":
                following = text[self.position + 1 : self.position + 2]
                if following != "\n":
                    pieces.append(
                        Piece(following if following in ("$", "`", '"', "\\") else "\\" + following, quoted=True)
                    )
                self.position += 2
            elif here == "`":
                pieces.append(self._substitution("`"))
            else:  # a quote inside ${NAME:-"default"}
                pieces.extend(self._quoted(here))
        if end is not None:
            raise self._unclosed(end, max(0, start - 1))
        return pieces

    def _dollar(self, *, quoted: bool, depth: int, compose: bool = False) -> list[Piece]:
        """Read what a `$` starts."""
        text, start = self.text, self.position
        following = text[start + 1 : start + 2]
        if compose and following == "$":
            self.position += 2
            return [Piece("$", quoted=True)]
        if following == "{":
            return [self._braced(quoted=quoted, depth=depth + 1)]
        if following == "(":
            return [self._substitution("(")]
        if following == "'" and not quoted:
            return [self._ansi_c()]
        if following == '"' and not quoted:
            self.position += 1
            return self._quoted('"')
        name = _NAME.match(text, start + 1)
        if name:
            self.position = name.end()
            return [Piece(reference=Reference(name[0], "$" + name[0]), quoted=quoted)]
        if following and following in "0123456789@*#?$!-":
            self.position += 2
            return [Piece(reference=Reference("$" + following, "$" + following), quoted=quoted)]
        self.position += 1
        return [Piece("$", quoted=quoted)]

    def _ansi_c(self) -> Piece:
        start = self.position
        self.position += 2
        out: list[str] = []
        while self.position < len(self.text):
            here = self.text[self.position]
            if here == "'":
                self.position += 1
                return Piece("".join(out), quoted=True)
            if here == "\\":
                following = self.text[self.position + 1 : self.position + 2]
                out.append(_ANSI_C.get(following, "\\" + following))
                self.position += 2
                continue
            out.append(here)
            self.position += 1
        raise self._unclosed("'", start)

    def _braced(self, *, quoted: bool, depth: int) -> Piece:
        """Read `${...}`."""
        if depth > DEPTH_LIMIT:
            raise BadInput(f"More than {DEPTH_LIMIT} nested ${{...}} in the command.")
        text, start = self.text, self.position
        name = _NAME.match(text, start + 2)
        if name is None:
            end = text.find("}", start)
            self.position = len(text) if end < 0 else end + 1
            return Piece(reference=Reference(_shown(text[start : self.position]), _shown(text[start : self.position])))
        self.position = name.end()
        array = text.startswith(("[@]", "[*]"), self.position)
        self.position += 3 * array
        operator = next((o for o in (":-", ":=", "-", "=") if text.startswith(o, self.position)), None)
        default = None
        if text.startswith("}", self.position):
            self.position += 1
        elif operator:
            self.position += len(operator)
            default = Word(tuple(self._inside("}", depth)))
        else:  # ${#X}, ${X%.y}, ${X:?why}: computed by a shell, so missing
            self._inside("}", depth)
            shown = _shown(text[start : self.position])
            return Piece(reference=Reference(shown, shown), quoted=quoted)
        shown = _shown(text[start : self.position])
        return Piece(reference=Reference(name[0], shown, default, array), quoted=quoted)

    def _substitution(self, opener: str) -> Piece:
        """Skip `$(...)` or a backtick pair: what a command would print is not known here."""
        text, start = self.text, self.position
        if opener == "`":
            end = text.find("`", start + 1)
            self.position = len(text) if end < 0 else end + 1
        else:
            depth, self.position = 0, start + 1
            while self.position < len(text):
                depth += {"(": 1, ")": -1}.get(text[self.position], 0)
                self.position += 1
                if depth == 0:
                    break
        shown = _shown(text[start : self.position])
        return Piece(reference=Reference(shown, shown))


def _few(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(islice(names, 4 * MISSING_LIMIT)))[:MISSING_LIMIT]


def _shown(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


class Variables:
    """What the text itself has assigned so far. A value may be known to be missing."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, tuple[Value, ...]] = {k: (Value(v),) for k, v in (given or {}).items()}
        self.exported: dict[str, None] = dict.fromkeys(given or {})
        self.left = EXPANDED_LIMIT
        self._in_force: tuple[tuple[str, Value], ...] | None = None

    def assign(self, name: str, values: tuple[Value, ...], *, append: bool = False) -> None:
        """Remember `values`; `append` is `+=`."""
        if append and name in self.values:
            old = self.values[name]
            joined = (Value(old[-1].text + values[0].text, _few(old[-1].missing + values[0].missing)),)
            values = old + values if len(old) > 1 or len(values) > 1 else joined
        self.values[name] = values
        self._in_force = None

    def export(self, name: str) -> None:
        """Mark `name` as handed to the programs that follow. Beyond EXPORTED_LIMIT names are not kept."""
        if len(self.exported) < EXPORTED_LIMIT:
            self.exported[name] = None
            self._in_force = None

    def in_force(self) -> tuple[tuple[str, Value], ...]:
        """Return the exported variables that have a value."""
        if self._in_force is None:
            self._in_force = tuple((n, self.values[n][0]) for n in self.exported if n in self.values)
        return self._in_force

    def expand(self, word: Word) -> list[Value]:
        """Return the fields of `word`: unquoted values are split at blanks, arrays give one field an element."""
        fields: list[tuple[list[str], list[str]]] = []
        current: tuple[list[str], list[str]] | None = None
        for piece in word.pieces:
            if piece.reference is None:
                current = self._extend(fields, current, Value(piece.text))
                continue
            values = self._value(piece.reference)
            if values is None:
                current = self._extend(fields, current, Value(piece.reference.shown, (piece.reference.shown,)))
            elif piece.quoted and not piece.reference.array:
                text = " ".join(v.text for v in values)
                current = self._extend(fields, current, Value(text, _few(m for v in values for m in v.missing)))
            else:
                parts = values if piece.quoted else tuple(Value(t, v.missing) for v in values for t in v.text.split())
                for i, value in enumerate(parts):
                    current = self._extend(fields, None if i else current, value)
        return [Value("".join(texts), _few(missing)) for texts, missing in fields]

    def _extend(
        self, fields: list[tuple[list[str], list[str]]], current: tuple[list[str], list[str]] | None, value: Value
    ) -> tuple[list[str], list[str]]:
        self.left -= len(value.text) + 1
        if self.left < 0:
            raise BadInput(f"With its variables the command is longer than {EXPANDED_LIMIT} characters.")
        if current is None:
            current = ([], [])
            fields.append(current)
        current[0].append(value.text)
        current[1].extend(value.missing)
        return current

    def _value(self, reference: Reference) -> tuple[Value, ...] | None:
        known = self.values.get(reference.name)
        if known is not None and (reference.default is None or known[0].text or len(known) > 1):
            self.left -= len(known)
            return known
        return tuple(self.expand(reference.default)) or (Value(""),) if reference.default is not None else None


def assignment(word: Word) -> tuple[str, bool, Word] | None:
    """Return (name, whether `+=`, value) where `word` is `NAME=value`."""
    if not word.pieces or word.pieces[0].quoted:
        return None
    found = _ASSIGNMENT.match(word.pieces[0].text)
    if found is None:
        return None
    rest = word.pieces[0].text[found.end() :]
    pieces = ((Piece(rest),) if rest else ()) + word.pieces[1:]
    return found[1], found[2] == "+=", Word(pieces, word.elements)


def statements(text: str, notes: Notes, given: Mapping[str, str] | None = None) -> Iterator[Statement]:
    """Yield the simple commands of `text` with their values, following the assignments on the way.

    Shape:  `given` are variables that are set and exported beforehand (a container's environment).
    Raises: BadInput: a quote that never closes, or values that grow beyond the limit.
    """
    variables = Variables(given)
    for words, fresh in Scanner(text, notes).statements():
        statement = _statement(words, fresh, variables)
        if statement is not None:
            yield statement


def _statement(words: list[Word], fresh: bool, variables: Variables) -> Statement | None:
    while words and len(words[0].pieces) == 1 and words[0].pieces[0].text in _OPENERS:
        words = words[1:]
    assigned: list[tuple[str, bool, tuple[Value, ...]]] = []
    while words and (found := assignment(words[0])) is not None:
        assigned.append((found[0], found[1], _assigned(found[2], variables)))
        words = words[1:]
    values = [value for word in words for value in variables.expand(word)] if not _declares(words) else []
    if not words:
        for name, append, value in assigned:
            variables.assign(name, value, append=append)
        return None
    if _declares(words):
        for word in words[1:]:
            if (found := assignment(word)) is not None:
                variables.assign(found[0], _assigned(found[2], variables), append=found[1])
                variables.export(found[0])
            elif len(word.pieces) == 1 and _NAME.fullmatch(word.pieces[0].text):
                variables.export(word.pieces[0].text)
        return None
    own = tuple((name, value[0]) for name, _, value in assigned)
    return Statement(own, tuple(values), variables.in_force(), fresh)


def _declares(words: list[Word]) -> bool:
    first = words[0].pieces[0].text if words and len(words[0].pieces) == 1 else ""
    return first in ("export", "declare", "typeset", "readonly", "local") or (
        first == "set" and len(words) > 1 and assignment(words[1]) is not None
    )


def _assigned(word: Word, variables: Variables) -> tuple[Value, ...]:
    if word.elements is not None:
        return tuple(v for element in word.elements for v in variables.expand(element))
    whole = Word(tuple(Piece(p.text, p.reference, True) for p in word.pieces))
    return tuple(variables.expand(whole)) or (Value(""),)
