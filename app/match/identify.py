"""The decision: which records does a text name? Pure, and every answer says which facts agreed.

Points are natural-log odds, roughly: each agreeing fact adds what it is worth, a fact that speaks against subtracts.
`docs/decisions/0002-matching.md` says where the numbers come from.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rapidfuzz import fuzz, process

from app.match import origin
from app.match.context import begins_inside, goes_on, is_prose, is_value, resumes, takes_prose
from app.match.fit import Fit, damaged, fit, open_start
from app.match.index import LEAST_LETTERS, Index, Text, bare
from app.match.log import Block, Frame, Log, read
from app.match.model import Identification, Match
from app.match.normal import normal, positions
from app.match.words import WORD, Spelling, says_otherwise
from app.mine.model import Template
from app.store.queries import Seen, Signature

MAX_MATCHES = 10
_SEGMENTS, _CANDIDATES, _OWNERS, _ALSO = 48, 32, 64, 20
_ACCEPTED = 3.0
_LOOSE_ACCEPTED = 3.9
_MAX_VALUE = 400
# "width=4" and the right exception are just enough.
_NAMED_VALUE = 2.1
_LEAD = 3
_PLACES = frozenset({"path", "function", "frames"})
# The share of a reworded text's words that must be there.
_REWORDED = 0.6
_MOST_BEHIND, _MOST_DOUBT = 3.0, 9.0
_WORD = re.compile(r"\w\w")
_BEGIN = re.compile(r"(_?[A-Za-z]{8,40})(?: ?:|[ .])")
_PARAGRAPHS = 64
_END = 50_000

# kind of fit -> (points of the kind, points of a long text, least letters)
_FIT_POINTS = {
    "whole": (2.0, 4.0, 8),
    "start": (1.6, 4.0, 10),
    "nested": (1.2, 4.0, 14),
    "inside": (0.4, 3.6, 20),
    "cut": (0.6, 3.8, 12),
    "headless": (0.3, 3.8, 20),
    "damaged": (0.4, 3.8, 14),
}


@dataclass(slots=True)
class _Segment:
    """A text to look for templates in: the message of a block, or a loose paragraph (`block` -1)."""

    text: str
    normal: str
    block: int
    _where: list[int] = field(default_factory=list)

    def where(self) -> list[int]:
        """Return where each character of `normal` stands in `text`."""
        if not self._where:
            self._where = positions(self.text)
        return self._where


@dataclass(slots=True)
class _Candidate:
    """A record with the facts for and against it, in one block."""

    signature: int
    points: float
    block: int
    evidence: dict[str, str] = field(default_factory=dict)
    fit: Fit | None = None
    text: int = -1
    segment: int = -1
    decided: bool = False
    behind: float = 0.0

    @property
    def rank(self) -> float:
        """Return by what rivals are ordered: the points, less what a rival explains better."""
        return self.points - self.behind

    @property
    def score(self) -> float:
        """Return the points as 0..1; what is just accepted has 0.5."""
        return 1 / (1 + math.exp(-(self.points - _ACCEPTED) * 0.9))


def identify(index: Index, text: str, *, package: str = "", release: str = "") -> Identification:
    """Return the records that a text names, best first, with reasons; none where nothing is known.

    Shape: `package` and `release` narrow the records to those of a package, to those that a release has.
    """
    log = read(text)
    return _Decision(index, log, package, release).answer()


class _Decision:
    """One text against the index."""

    def __init__(self, index: Index, log: Log, package: str, release: str) -> None:
        self.index = index
        self.log = log
        self.package = package
        self.release = release
        self.blocks = (*log.blocks, *self._named(log))
        self.raised_in = [self._raise_package(block) for block in self.blocks]
        self.printed = [self._printed(block) for block in self.blocks]
        self.segments = list(self._segments())
        self.best: dict[int, _Candidate] = {}
        self.named: dict[str, bool] = {}

    def answer(self) -> Identification:
        """Return the matches, or what the text looks like."""
        self._by_text()
        for n, block in enumerate(self.blocks):
            self._by_frame(n, block)
        for statement in self.log.statements:
            self._by_statement(statement)
        accepted = [c for c in self.best.values() if c.points >= self._least(c)]
        matches = tuple(self._match(*pair) for pair in self._ordered(accepted))
        looks = "" if matches else origin.looks_like(self.blocks, self.log.text, self.raised_in, self._product())
        return Identification(matches, tuple(b for b in self.blocks if b.chained != "inline"), looks)

    def _printed(self, block: Block) -> str:
        """Return the bare name of a block's exception; of a damaged one, the known name that it is like."""
        name = bare(block.exception)
        if not name or "." in block.exception or name in self.index.exceptions or origin.is_builtin(name):
            return name
        alike = process.extractOne(name, self.index.exception_names, scorer=fuzz.ratio, score_cutoff=85)
        return alike[0] if alike is not None else name

    def _named(self, log: Log) -> Iterator[Block]:
        """Yield blocks for paragraphs that begin with the damaged name of an exception ("ValeError: ...")."""
        for paragraph in log.paragraphs[:_PARAGRAPHS]:
            begin = _BEGIN.match(paragraph)
            if begin is None:
                continue
            alike = process.extractOne(begin.group(1), self.index.exception_names, scorer=fuzz.ratio, score_cutoff=80)
            if alike is not None:
                yield Block(alike[0], paragraph[begin.end() :], (), "inline")

    def _product(self) -> str:
        return {"sglang": "SGLang"}.get(self.package or "sglang", self.package)

    def _raise_package(self, block: Block) -> str:
        if not block.closed:
            return ""
        return origin.package_of(block.frames[-1].path, self.index.parts, self.index.suffixes)

    def _foreign(self, block: int) -> bool:
        """Return whether the frame that raised is visible and lies in other software."""
        return block >= 0 and bool(self.raised_in[block]) and self.raised_in[block] not in self.index.roots

    def _segments(self) -> Iterator[_Segment]:
        seen: set[str] = set()
        whole = [(b.message, n) for n, b in enumerate(self.blocks)]
        first = [(m.partition("\n")[0], n) for m, n in whole if "\n" in m]
        for text, block in (*whole, *first, *((p, -1) for p in self.log.paragraphs)):
            shape = normal(text)
            if len(shape) >= 4 and (shape not in seen or (block >= 0 and self.blocks[block].frames)):
                seen.add(shape)
                yield _Segment(text, shape, block)

    def _wanted(self, signature: Signature) -> bool:
        if self.package and signature.package != self.package:
            return False
        return not self.release or any(self.release in seen.versions for seen in signature.seen)

    # -- candidates ------------------------------------------------------------------------------------------------

    def _by_text(self) -> None:
        favoured = sum(s.block >= 0 for s in self.segments)
        shapes = [s.normal for s in self.segments]
        found = self.index.grams.search(shapes, most=_SEGMENTS, favoured=favoured, each=_CANDIDATES)
        for answer in found:
            segment = self.segments[answer.segment]
            if self._foreign(segment.block):
                continue
            texts = dict(answer.texts)
            fitting = list(self._fitting(segment, texts))
            most = max((f.covered for _, f in fitting if f.kind not in ("headless", "inside")), default=0)
            if most < 0.6 * min(len(segment.normal), 400):
                exact = {n: f.covered for n, f in fitting}
                fitting += [
                    (n, f)
                    for n, f in self._damaged(segment, texts)
                    if f.covered >= 1.3 * most and f.covered > exact.get(n, 0)
                ]
            cuts = Counter((f.start, f.covered) for _, f in fitting if f.kind == "cut")
            for (number, found_fit), behind in zip(fitting, _behind([f for _, f in fitting]), strict=True):
                alike = cuts[found_fit.start, found_fit.covered] if found_fit.kind == "cut" else 0
                doubt = self._doubt(segment, number, found_fit)
                if doubt < _MOST_DOUBT:
                    self._owners(answer.segment, number, found_fit, alike=alike, behind=behind, doubt=doubt)
        self._by_short_text()

    def _by_short_text(self) -> None:
        """Add the texts that are too short to be looked up by their pieces: a message as a whole, or `name=value`."""
        for n, segment in enumerate(self.segments[: _SEGMENTS * 2]):
            for number in self.index.exact.get(segment.normal, ()) if not self._foreign(segment.block) else ():
                if len(segment.normal) < 12:
                    shape = segment.normal
                    self._owners(n, number, Fit("whole", len(shape), len(shape), 0, len(shape), ()))
            if segment.block >= 0 and self.printed[segment.block] and not self._foreign(segment.block):
                for number in self.index.named_values:
                    found = fit(self.index.texts[number].literals, segment.normal)
                    if found is not None and found.kind == "whole" and found.start == 0:
                        self._owners(n, number, found)

    def _fitting(self, segment: _Segment, texts: dict[int, float]) -> Iterator[tuple[int, Fit]]:
        for number in texts:
            literals = self.index.texts[number].literals
            found = fit(literals, segment.normal) or open_start(literals, segment.normal)
            if found is not None and found.covered >= LEAST_LETTERS and self._at_words(segment, found):
                yield number, found

    def _at_words(self, segment: _Segment, found: Fit) -> bool:
        """Return whether the find is no piece of a word: "AttentionBackend" in "HybridAttentionBackend"."""
        if found.kind == "damaged":
            return found.start <= 2 or not self._joined(segment, found.start)  # the first letters may be the wrong ones
        return not (self._joined(segment, found.start) or (found.kind != "cut" and self._joined(segment, found.end)))

    def _joined(self, segment: _Segment, at: int) -> bool:
        """Return whether a word goes on across this place of the text's normal form."""
        if not 0 < at < len(segment.normal):
            return False
        before, after = segment.where()[at - 1 : at + 1]
        return after == before + 1 and bool(_WORD.match(segment.text, before, after + 1))

    def _damaged(self, segment: _Segment, texts: dict[int, float]) -> Iterator[tuple[int, Fit]]:
        likely = sorted(texts, key=lambda n: -texts[n])[:12] + list(texts)[:12]
        for number in dict.fromkeys(likely):
            found = damaged(self.index.texts[number].literals, segment.normal)
            if found is None or found.covered < 14 or not self._at_words(segment, found):
                continue
            if not self._says_otherwise(segment, number, found):
                yield number, found

    def _says_otherwise(self, segment: _Segment, number: int, found: Fit) -> bool:
        """Return whether a difference is more than a slip: "MHA" for "MLA" is another thing."""
        text = self.index.texts[number]
        literals = [Spelling(part, positions(part)) for part in text.parts[0::2]]
        return says_otherwise(found.edits, literals, Spelling(segment.text, segment.where()), self.index.words)

    def _doubt(self, segment: _Segment, number: int, found: Fit) -> float:
        """Return what speaks, round the find and in its holes, for another sentence than the record's, in points."""
        where, literals = segment.where(), self.index.texts[number].parts[0::2]
        ours = self._ours(segment.block)
        doubt = 1.0 if found.kind == "cut" and found.start else 0.0
        if 0 < found.start < len(where) and begins_inside(segment.text, where[found.start]):
            doubt += 3.0 if found.kind in ("cut", "headless") else 1.5
        if 0 < found.end < len(where) and goes_on(segment.text, where[found.end - 1] + 1, literals[-1]):
            doubt += 3.0 if found.kind == "headless" else 2.5 if found.total < 12 else 1.5 if found.total < 24 else 0.9
        reached = [n for n, hole in enumerate(found.holes) if hole != (0, 0)]
        for n in reached:
            start, end = found.holes[n]
            if end <= start:
                continue
            value = segment.text[where[start] : where[end - 1] + 1]
            if found.kind != "damaged" and self._splits_words(segment, literals, n, found.holes[n]):
                doubt += 1.5 if found.total < 24 else 0.3
            if takes_prose(segment.text[: where[start]][-_LEAD:]):
                continue
            cut_off = n == reached[-1] and found.covered < found.total and end == found.end and n < len(literals) - 1
            if cut_off or (n == 0 and found.kind == "headless"):
                # Not cut off in the hole: it goes on, or began, otherwise.
                if not is_value(value, self.index.words) or resumes(value, literals[n + 1 :]):
                    doubt += 1.0 if ours else _MOST_DOUBT
            elif found.kind == "damaged":
                doubt += 0.0 if is_value(value, self.index.words) else 2.5
            elif is_prose(value, self.index.words):
                doubt += 0.8 if found.total < 24 else 0.3
        return doubt * 0.5 if ours and found.kind == "cut" else doubt

    def _splits_words(self, segment: _Segment, literals: Sequence[str], n: int, hole: tuple[int, int]) -> bool:
        """Return whether a hole begins or ends within a word where the template has a blank: "in" found in "string"."""
        return (literals[n][-1:].isspace() and self._joined(segment, hole[0])) or (
            literals[n + 1][:1].isspace() and self._joined(segment, hole[1])
        )

    def _owners(
        self, segment: int, number: int, found: Fit, *, alike: int = 0, behind: float = 0.0, doubt: float = 0.0
    ) -> None:
        text = self.index.texts[number]
        block = self.segments[segment].block
        owners: Iterable[int] = text.owners
        if len(text.owners) > _OWNERS:
            near = self._near(block)
            owners = [o for o in text.owners if o in near] or text.owners[:_OWNERS]
        for owner in owners:
            if self._wanted(self.index.signatures[owner]):
                candidate = self._weighed(owner, block)
                candidate.segment, candidate.text, candidate.fit = segment, number, found
                candidate.behind = behind
                self._add_text(candidate, found, text, alike)
                candidate.points -= doubt
                self._keep(candidate)

    def _near(self, block: int) -> set[int]:
        """Return the records in the functions of a block's frames."""
        frames = self.blocks[block].frames if block >= 0 else ()
        return {o for f in frames[-8:] for o in self.index.functions.get((_base(f.path), f.function), ())}

    def _by_frame(self, number: int, block: Block) -> None:
        """Add the records that the raising frame alone names: a bare assert, a text that is data."""
        if not block.closed or self._foreign(number):
            return
        frame = block.frames[-1]
        statement = normal(frame.source)
        raising = _raises(frame.source)
        if frame.source and not raising:
            return
        base = _base(frame.path)
        near = set(self.index.functions.get((base, frame.function), ()))
        same = set(self.index.statements.get(statement, ())) if raising else set()
        in_file = set(self.index.files.get(base, ()))
        owners = (same & in_file) | (near if not raising else near & (same or near))
        if raising and not owners and len(statement) >= 12:
            owners = same if len(same) <= 4 else set()
            owners |= self._alike(statement, in_file)
        for owner in list(owners)[: 4 * _OWNERS]:
            signature = self.index.signatures[owner]
            if self._wanted(signature) and self._may_say(signature, owner, block):
                self._keep(self._weighed(owner, number))
        self._reworded(number, block, near)

    def _reworded(self, number: int, block: Block, near: set[int]) -> None:
        """Add the record whose text has most of the message's words, where the raising function is the record's.

        So reads an error of a release or checkout that is not known, in which the text is worded differently.
        """
        said = set(WORD.findall(block.message.lower()))
        best, likeliest = _REWORDED, -1
        for owner in sorted(near)[: 4 * _OWNERS]:
            signature = self.index.signatures[owner]
            if not self._wanted(signature) or not self._is_exception(signature, self.printed[number]):
                continue
            for text in signature.texts:
                words = set(WORD.findall(" ".join(text[0::2]).lower()))
                share = len(words & said) / max(len(words), 5)
                if share > best:
                    best, likeliest = share, owner
        if likeliest >= 0:
            candidate = self._weighed(likeliest, number)
            candidate.evidence = {
                "message": "the message has most of the words of the record's text"
            } | candidate.evidence
            self._keep(candidate)

    def _alike(self, statement: str, in_file: set[int]) -> set[int]:
        """Return the records of a file whose statement is nearly the same, the best alone."""
        rated = []
        for owner in in_file:
            for seen in self.index.signatures[owner].seen:
                likeness = fuzz.ratio(statement, normal(seen.statement), score_cutoff=80)
                if likeness:
                    rated.append((likeness, owner))
        rated.sort(reverse=True)
        return {owner for likeness, owner in rated if likeness >= rated[0][0] - 2} if rated else set()

    def _may_say(self, signature: Signature, owner: int, block: Block) -> bool:
        """Return whether the block's message can be the record's: no text, or one that is only data."""
        message = normal(block.message)
        numbers = self.index.bare_texts.get(owner, ())
        if not numbers:
            return not signature.texts or any(not any(t[0::2]) for t in signature.texts) or not message
        if not message:
            return not signature.texts or not block.exception
        return any(
            self.index.texts[n].size < LEAST_LETTERS and fit(self.index.texts[n].literals, message) for n in numbers
        ) or any(not any(t[0::2]) for t in signature.texts)

    def _by_statement(self, line: str) -> None:
        """Add the records that an `assert` line alone names."""
        shape = normal(line)
        if not shape.startswith("assert") or len(shape) < 18:
            return
        owners = [o for o in self.index.statements.get(shape, ()) if self._wanted(self.index.signatures[o])]
        if not owners or len(owners) > 4:
            return
        for owner in owners:
            candidate = _Candidate(owner, 1.2 + 4.0 * _long(len(shape) - 6) - 0.4 * (len(owners) - 1), -1)
            candidate.evidence["source line"] = "the source line is the record's statement"
            candidate.points += self._prior(self.index.signatures[owner])
            self._keep(candidate)

    # -- facts -----------------------------------------------------------------------------------------------------

    def _weighed(self, owner: int, number: int) -> _Candidate:
        """Return a record weighed by everything but its text."""
        signature = self.index.signatures[owner]
        candidate = _Candidate(owner, self._prior(signature), number)
        if number < 0:
            self._mentioned(candidate, signature)
            return candidate
        block = self.blocks[number]
        printed = self.printed[number]
        if printed and self._is_exception(signature, printed):
            candidate.points += 1.0
            candidate.evidence["exception"] = f"{printed} is the exception it raises"
        elif printed and signature.exception and printed != "Error":
            candidate.points -= 2.0 if printed in self.index.exceptions else 1.0
        if "." in block.exception and block.exception.partition(".")[0] not in self.index.roots:
            # A class of other software; SGLang may raise it too, but rarely.
            candidate.points -= 0.0 if "exception" in candidate.evidence else 2.0
        if block.frames:
            self._placed(candidate, signature, block)
        if "function" not in candidate.evidence:
            self._mentioned(candidate, signature)
        return candidate

    @staticmethod
    def _is_exception(signature: Signature, printed: str) -> bool:
        """Return whether a record raises a class, or did in an earlier release: its statements say so."""
        return printed == signature.exception or any(
            seen.statement.startswith(f"raise {printed}(") for seen in signature.seen
        )

    def _placed(self, candidate: _Candidate, signature: Signature, block: Block) -> None:
        """Weigh the frames: the raising one, then the others."""
        frame = block.frames[-1]
        best, facts = 0.0, {}
        for seen in signature.seen:
            points, said = _agreement(frame, seen)
            if points > best:
                best, facts = points, said
        if facts:
            candidate.decided = "function" in facts and ("path" in facts or "source line" in facts)
            if not block.closed:
                best *= 0.6
        elif block.closed and _raises(frame.source):
            best = -1.5
        elif block.closed:
            best = -0.4
        if "function" not in facts:
            for other in block.frames[-6:-1]:
                if any(_agreement(other, seen)[0] >= 2 for seen in signature.seen):
                    facts = {"frames": f"{other.function} is among the frames"}
                    best = max(best, 0) + 0.8
                    break
        if "path" not in facts:
            best += _nearness(block, signature)
        candidate.points += best
        candidate.evidence |= facts

    def _mentioned(self, candidate: _Candidate, signature: Signature) -> None:
        """Weigh a function that the text names outside of frames."""
        for seen in signature.seen:
            name = bare(seen.function)
            if len(name) > 7 and "_" in name.strip("_") and self._names(name):
                candidate.points += 0.6
                candidate.evidence["function"] = f"the text names the function {name}"
                return

    def _names(self, function: str) -> bool:
        """Return whether the text names a function; of a long one its two ends are searched."""
        if function not in self.named:
            text = self.log.text
            self.named[function] = function in text[:_END] or function in text[-_END:]
        return self.named[function]

    def _prior(self, signature: Signature) -> float:
        """Return what parts equals: more in the part of the package where more errors live, in more releases, newer."""
        share = max((self.index.share(s.path) for s in signature.seen), default=0.0)
        releases = sum(len(s.versions) for s in signature.seen)
        return 0.25 * share + 0.02 * min(releases, 8) + (0.25 if signature.last == self.index.newest else 0.0)

    def _add_text(self, candidate: _Candidate, found: Fit, text: Text, alike: int) -> None:
        """Weigh how the text is carried; `alike` is how many texts are cut off in the same way."""
        base, long, least = _FIT_POINTS[found.kind]
        letters = found.covered * (found.likeness if found.kind == "damaged" else 1)
        points = base * min(1.0, letters / 16) + long * _long(letters)
        if found.kind == "whole" and candidate.text in self.index.named_values and "exception" in candidate.evidence:
            points = max(points, _NAMED_VALUE)
        elif letters < least:
            points -= 0.35 * (least - letters)
        if found.kind == "damaged":
            points -= max(0.0, 0.97 - found.likeness) * 9 + (1.2 if found.start > 3 and text.literals[0] else 0.0)
        if found.covered < found.total and found.kind in ("cut", "damaged"):
            lost = 1 - found.covered / found.total
            # A text that ends within the template is only short; one that goes on differently says something else.
            ends = found.kind == "cut" and self._ends(found)
            points -= lost * (0.5 if ends else 0.9 if self._ours(candidate.block) else 1.6)
            if alike:
                points += 0.6 - min(0.9, 0.4 * math.log2(alike))
        if found.kind in ("nested", "inside") and "exception" not in candidate.evidence and candidate.block >= 0:
            points += 1.0 if self.blocks[candidate.block].exception else 0.0
        if found.kind == "headless":
            points -= 2.5 * (1 - found.covered / found.total)
        if len(text.owners) > 3:
            crowd = 0.3 * math.log2(len(text.owners) / 3)
            points -= crowd
            candidate.behind -= crowd  # it makes the answer less sure, not a rival's text more likely
        block = self.blocks[candidate.block] if candidate.block >= 0 else None
        if block and origin.python_says(block) and not (found.kind in ("whole", "start") and found.covered >= 24):
            points -= 4.0
        if block and found.kind not in ("whole", "nested") and self._raised_elsewhere(candidate, block):
            points -= 2.0  # half a text
        if block and block.logger and found.kind != "whole" and self._other_logger(block.logger):
            points -= 2.0
        candidate.points += points
        candidate.evidence = {"message": _SAID[found.kind]} | candidate.evidence

    @staticmethod
    def _raised_elsewhere(candidate: _Candidate, block: Block) -> bool:
        """Return whether the block shows its `raise` and no frame is where the record is raised."""
        shown = block.closed and _raises(block.frames[-1].source)
        return shown and not _PLACES & candidate.evidence.keys()

    def _ends(self, found: Fit) -> bool:
        """Return whether the text ends inside a literal and not inside what may be a hole."""
        reached = [h for h in found.holes if h != (0, 0)]
        return not reached or reached[-1][1] < found.end

    def _ours(self, block: int) -> bool:
        """Return whether a frame of the block is in the package that the records are of."""
        if block < 0:
            return False
        frames = self.blocks[block].frames[-3:]
        return any(origin.package_of(f.path, self.index.parts, self.index.suffixes) in self.index.roots for f in frames)

    def _other_logger(self, logger: str) -> bool:
        """Return whether a log prefix names a file that no record is in."""
        return _base(logger.partition(":")[0]) not in self.index.files

    def _keep(self, candidate: _Candidate) -> None:
        known = self.best.get(candidate.signature)
        if known is None or candidate.rank > known.rank:
            self.best[candidate.signature] = candidate

    def _least(self, candidate: _Candidate) -> float:
        """Return the points that are enough: more for loose text of a log than where the paste is a message alone."""
        alone = not any(b.frames or b.exception for b in self.log.blocks) and len(self.log.paragraphs) <= 2
        return _ACCEPTED if candidate.block >= 0 or alone else _LOOSE_ACCEPTED

    # -- order -----------------------------------------------------------------------------------------------------

    def _ordered(self, accepted: list[_Candidate]) -> list[tuple[_Candidate, bool]]:
        """Return the answer: root causes, the wrappers beside them, then further records with the same texts."""
        accepted.sort(key=lambda c: (-c.rank, self.index.signatures[c.signature].record_id))
        heads: list[_Candidate] = []
        rest: list[_Candidate] = []
        for candidate in accepted:
            rival = next((h for h in heads if self._rivals(h, candidate)), None)
            if rival is None:
                heads.append(candidate)
            elif not (rival.decided and not candidate.decided) and candidate.rank >= rival.rank - 2.0:
                rest.append(candidate)
        wrappers = {id(c) for c in heads if any(self._wraps(c, o) for o in heads if o is not c)}
        heads.sort(
            key=lambda c: (id(c) in wrappers, -min(c.score, 0.9), c.block if c.block >= 0 else 1 << 20, -c.points)
        )
        ordered = [(c, id(c) in wrappers) for c in heads[:5]] + [(c, False) for c in rest[:5]]
        ordered += [(c, id(c) in wrappers) for c in heads[5:]]
        return ordered[:MAX_MATCHES]

    def _rivals(self, one: _Candidate, other: _Candidate) -> bool:
        """Return whether both explain the same words, so that at most one can be right."""
        if one.fit is None or other.fit is None:
            return one.block == other.block
        if self.segments[one.segment].block != self.segments[other.segment].block:
            return one.text == other.text
        if one.segment != other.segment:
            return True
        return _overlap(one.fit, other.fit)

    def _wraps(self, outer: _Candidate, inner: _Candidate) -> bool:
        """Return whether one match only wraps the other: the other's words fill its hole, or it was raised while that
        one was being handled."""
        if outer.fit and inner.fit and outer.segment == inner.segment:
            return _in_hole(outer.fit, inner.fit)
        if outer.block <= inner.block or inner.block < 0:
            return False
        between = self.blocks[inner.block + 1 : outer.block + 1]
        return all(b.chained in ("context", "cause") for b in between)

    def _match(self, candidate: _Candidate, wrapper: bool) -> Match:
        signature = self.index.signatures[candidate.signature]
        parts: tuple[str, ...] = ()
        values: dict[str, str] = {}
        others: list[Signature] = []
        if candidate.fit is not None:
            text = self.index.texts[candidate.text]
            parts = text.parts
            values = self._values(candidate, text)
            others = [self.index.signatures[o] for o in text.owners if o != candidate.signature][:_ALSO]
        return Match(
            record_id=signature.record_id,
            package=signature.package,
            title=signature.title,
            exception=signature.exception,
            message=Template(parts).text if parts else signature.message,
            score=round(candidate.score, 3),
            values=values,
            evidence=tuple(candidate.evidence),
            reasons=tuple(candidate.evidence.values()),
            also=tuple(other.record_id for other in others),
            also_places=tuple(_place(other) for other in others),
            parts=parts,
            wrapper=wrapper,
        )

    def _values(self, candidate: _Candidate, text: Text) -> dict[str, str]:
        """Return what fills each hole, as it stands in the pasted text."""
        assert candidate.fit is not None
        segment = self.segments[candidate.segment]
        where = segment.where()
        values: dict[str, str] = {}
        for n, (hole, (start, end)) in enumerate(zip(text.parts[1::2], candidate.fit.holes, strict=False)):
            if end <= start or end > len(where):
                continue
            value = segment.text[where[start] : where[end - 1] + 1]
            if end == candidate.fit.end and n == len(text.parts) // 2 - 1 and not text.literals[-1]:
                value = value.strip().partition("\n")[0]  # an open end takes its line
            before = segment.text[where[start] - 1 : where[start]] if where[start] else ""
            after = segment.text[where[end - 1] + 1 : where[end - 1] + 2]
            if before and before == after and before in "'\"" and not text.parts[2 * n].endswith(before):
                value = before + value + after
            values.setdefault("{" + hole + "}", value.strip()[:_MAX_VALUE])
        return values


_SAID = {
    "whole": "the message is the record's text, with values filled in",
    "start": "the message begins with the record's text",
    "nested": "the record's text stands inside the message",
    "inside": "the record's text stands inside the message",
    "cut": "the message is the beginning of the record's text",
    "headless": "the message is the record's text without its beginning",
    "damaged": "the message is nearly the record's text",
}


def _place(signature: Signature) -> str:
    if not signature.seen:
        return signature.title
    newest = signature.seen[-1]
    return f"{newest.function} in {newest.path}"


def _long(letters: float) -> float:
    """Return how much a text of so many letters says, 0..1."""
    return 1 - math.exp(-max(letters, 0) / 18)


def _behind(fits: Sequence[Fit]) -> list[float]:
    """Return for each find how far it is behind the one that explains most of the same words, in points."""
    explained = [_explained(found) for found in fits]
    best = sorted(range(len(fits)), key=lambda n: -explained[n])[:3]
    behind = [0.0] * len(fits)
    for n, found in enumerate(fits):
        for other in best:
            less = explained[other] - explained[n]
            if less > 0 and _overlap(found, fits[other]):
                behind[n] = max(behind[n], min(_MOST_BEHIND, 0.7 + 0.15 * less))
    return behind


def _explained(found: Fit) -> float:
    """Return how many literal characters a find explains, less what its slips and empty holes make it doubtful."""
    slips = sum(2 + 2 * (e.lost_end - e.lost + e.put_end - e.put) for e in found.edits)
    empty = sum(start == end and (end > 0 or found.kind == "whole") for start, end in found.holes)
    return found.covered - slips - 3 * empty - (0 if found.kind in ("whole", "damaged") else 3)


def _overlap(one: Fit, other: Fit) -> bool:
    """Return whether two finds explain some of the same words."""
    return one.start < other.end and other.start < one.end and not (_in_hole(one, other) or _in_hole(other, one))


def _in_hole(outer: Fit, inner: Fit) -> bool:
    """Return whether one find lies in what fills a hole of the other."""
    return any(start <= inner.start and inner.end <= end and end > start for start, end in outer.holes)


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _raises(source: str) -> bool:
    """Return whether a source line is a `raise` or an `assert`."""
    return source.startswith(("raise", "assert"))


def _agreement(frame: Frame, seen: Seen) -> tuple[float, dict[str, str]]:
    """Return the points for one frame being in one place, and which facts agree."""
    facts: dict[str, str] = {}
    points = 0.0
    path = frame.path.replace("\\", "/")
    base = _base(seen.path)
    if _base(path) != base:
        same_file = False
    elif path.endswith(seen.path) or "/" not in path:
        same_file = True
        points += 1.2 if "/" in path else 0.8
        facts["path"] = f"the frame is in {seen.path}"
    else:
        same_file = True
        common = _common_tail(path, seen.path)
        points += 0.2 * common
        if common >= 3:
            facts["path"] = f"the frame is in {seen.path}"
    if frame.function and bare(frame.function) == bare(seen.function):
        points += 1.5 if same_file else 0.4
        facts["function"] = f"the frame is in the function {seen.function}"
    if _raises(frame.source) and _same_statement(frame.source, seen):
        special = len(normal(frame.source)) >= 24
        points += 2.0 if special else 0.7
        facts["source line"] = "the source line is the record's statement"
    if not same_file and "source line" not in facts:
        return 0.0, {}
    if same_file and "function" in facts and frame.line in seen.lines:
        points += 0.8  # parts two sites that agree in everything else; a line alone says nothing
    if set(facts) == {"path"}:
        return min(points, 0.5), facts
    return points, facts


def _same_statement(source: str, seen: Seen) -> bool:
    shape = normal(source)
    statement = normal(seen.statement)
    if shape == statement:
        return True
    if seen.condition and shape.startswith(normal("assert " + seen.condition)):
        return True
    shorter = min(len(shape), len(statement))
    return shorter >= 24 and (
        shape.startswith(statement) or statement.startswith(shape) or fuzz.ratio(shape, statement) >= 80
    )


def _common_tail(one: str, other: str) -> int:
    count = 0
    for a, b in zip(reversed(one.split("/")), reversed(other.split("/")), strict=False):
        if a != b:
            break
        count += 1
    return count


def _nearness(block: Block, signature: Signature) -> float:
    """Return up to half a point for records whose files are called like those of the frames."""
    words = {w for f in block.frames[-6:] for w in _words(f.path)}
    best = 0.0
    for seen in signature.seen:
        mine = set(_words(seen.path))
        if mine:
            best = max(best, len(mine & words) / len(mine))
    return 0.5 * best


def _words(path: str) -> list[str]:
    tail = path.replace("\\", "/").split("/")[-5:]
    return [w for piece in tail for w in piece.removesuffix(".py").split("_")]
