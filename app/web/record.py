"""A record page: `Document` and the reader's wishes to `RecordPage`. Pure; the template only lays it out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

from app.store.document import Defence, Document, Example, Solution
from app.store.queries import SitePlace
from app.web import diff, highlight, life, markdown, proofs
from app.web.frame import DESCRIPTION_LENGTH, Head, Link, head_title, shortened
from app.web.message import Segment, segments

KIND_WORDS = {"raise": "raises", "assert": "asserts", "message": "answers with a message"}


@dataclass(frozen=True, slots=True)
class Step:
    """One solution. `proofs` are sentences about stored runs; there are none where nothing was run."""

    text: Markup
    derived: bool
    proofs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """Where the error is. `note` is set where the reader asked for a release; `origin` says whose text it is."""

    path: str
    line: int
    function: str
    url: str
    origin: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on the way to the error: a word that joins it to the one before, and its source."""

    words: str
    code: str


@dataclass(frozen=True, slots=True)
class ShownExample:
    """Both halves of an example with their differences marked, and what was run."""

    before: tuple[diff.Piece, ...]
    after: tuple[diff.Piece, ...]
    proofs: tuple[str, ...]
    scope: str


@dataclass(frozen=True, slots=True)
class ShownDefence:
    """How a caller guards against the error."""

    strategy: Markup
    code: tuple[tuple[highlight.Run, ...], ...]
    prevention: tuple[Markup, ...]


@dataclass(frozen=True, slots=True)
class RecordPage:
    """`/errors/{id}`. Fields are the names that `templates/pages/record.html` uses."""

    head: Head
    document: Document
    crumbs: tuple[Link, ...]
    kind_word: str
    exception_url: str
    package_url: str
    titled: bool
    message: tuple[Segment, ...]
    filled: bool
    own_values: tuple[tuple[str, str], ...]
    meaning: Markup | None
    trigger: Markup | None
    situations: tuple[Markup, ...]
    guards: tuple[Guard, ...]
    chain_end: str
    variants: tuple[tuple[Segment, ...], ...]
    place: ShownPlace | None
    code: highlight.Code | None
    licence: str
    solutions: tuple[Step, ...]
    fixed_command: tuple[diff.Piece, ...]
    example: ShownExample | None
    defence: ShownDefence | None
    life: life.LifeLine
    sections: tuple[Link, ...]


def record_page(
    document: Document,
    *,
    place: SitePlace | None = None,
    values: Mapping[str, str] | None = None,
    licence: str = "",
) -> RecordPage:
    """Return the page of a record.

    Shape: `place` is another release's place and excerpt, shown instead of the newest; `values` are what the
    reader's own message has in the holes; `licence` is the name of the licence of the package's source.
    """
    values = values or {}
    texts = (document.parts, *(variant.parts for variant in document.variants))
    used = {hole: values[hole] for parts in texts for hole in map("{{{}}}".format, parts[1::2]) if hole in values}
    shown, code = _shown_at(place) if place else _shown_source(document)
    example = _example(document.example) if document.example else None
    message_text = document.message or document.condition or document.title
    return RecordPage(
        head=_head(document, indexed=place is None and not values),
        document=document,
        crumbs=_crumbs(document),
        kind_word=f"{document.package.name} {KIND_WORDS[document.kind]}",
        exception_url="/errors?" + urlencode({"exception": document.exception}),
        package_url=f"/{document.package.repository}" if document.package.repository else "",
        # The title of a mined record is only its message again, without the holes.
        titled=document.status != "mined",
        message=segments(document.parts, values=used) if document.message else (Segment(message_text),),
        filled=bool(used),
        own_values=tuple((hole[1:-1], value) for hole, value in used.items()),
        meaning=markdown.block(document.meaning, values=used) if document.meaning else None,
        trigger=markdown.block(document.trigger, values=used) if document.trigger else None,
        situations=tuple(markdown.inline(item, values=used) for item in document.situations),
        guards=tuple(_guards(document.guards)),
        chain_end=_chain_end(document),
        variants=tuple(
            segments(variant.parts, values=used) for variant in document.variants if variant.message != document.message
        ),
        place=shown,
        code=code,
        licence=f"Excerpt under {licence}." if licence and code else "",
        solutions=tuple(_step(solution, used) for solution in document.solutions),
        fixed_command=example.after if example and document.example and document.example.solution in (None, 1) else (),
        example=example,
        defence=_defence(document.defence) if document.defence else None,
        life=life.life_line(document.history, record_url=document.url, shown=place.version if place else ""),
        sections=_sections(document),
    )


def _head(document: Document, *, indexed: bool) -> Head:
    said = document.meaning or document.trigger or f"{document.exception or 'Message'} in {document.package.name}"
    return Head(
        title=head_title(f"{document.exception}: {document.title}" if document.exception else document.title),
        description=shortened(said, DESCRIPTION_LENGTH),
        section="/errors",
        canonical=document.url,
        json=f"/api/errors/{document.id}",
        markdown=f"/errors/{document.id}.md",
        kind="article",
        indexed=indexed,
    )


def _crumbs(document: Document) -> tuple[Link, ...]:
    name = document.package.name
    package = Link(name, f"/{document.package.repository}" if document.package.repository else "")
    crumbs = [package]
    if document.module:
        crumbs.append(Link(document.module, "/errors?" + urlencode({"package": name, "module": document.module})))
    if document.source:
        crumbs.append(Link(document.source.function))
    return tuple(crumbs)


def _shown_source(document: Document) -> tuple[ShownPlace | None, highlight.Code | None]:
    source = document.source
    if source is None:
        return None, None
    dated = f" of {source.ref_date}" if source.ref_date else ""
    origin = f"Place pinned to {source.ref}{dated}."
    code = None
    if source.excerpt:
        if source.excerpt.ref != source.ref:
            origin += f" The excerpt is {source.excerpt.ref}'s, the nearest release that was read."
        code = _excerpt(source.excerpt.text, source.excerpt.start_line, _lines_in_excerpt(document))
    return ShownPlace(source.path, source.line, source.function, source.url or "", origin), code


def _lines_in_excerpt(document: Document) -> range:
    """Return the lines that raise, in the release whose excerpt is shown: a pinned commit has other numbers."""
    source = document.source
    assert source is not None and source.excerpt is not None
    if source.excerpt.ref != source.ref:
        for place in document.history.releases:
            if source.excerpt.ref in {place.version, f"v{place.version}"}:
                return range(place.line, place.end_line + 1)
    return range(source.line, source.end_line + 1)


def _shown_at(place: SitePlace) -> tuple[ShownPlace, highlight.Code | None]:
    shown = ShownPlace(
        path=place.path,
        line=place.line,
        function=place.function,
        url=place.url,
        origin=f"Place and excerpt of release {place.version}.",
        note=f"You are looking at release {place.version}.",
    )
    if place.excerpt is None:
        return shown, None
    return shown, _excerpt(place.excerpt.text, place.excerpt.start_line, range(place.line, place.end_line + 1))


def _excerpt(text: str, start_line: int, marked: range) -> highlight.Code:
    return highlight.excerpt(text, start_line=start_line, marked=marked)


def _step(solution: Solution, values: Mapping[str, str]) -> Step:
    return Step(markdown.inline(solution.text, values=values), solution.derived, proofs.of_solution(solution.verified))


def _example(example: Example) -> ShownExample:
    before, after = diff.halves(example.before, example.after)
    scope = ""
    if example.engines:
        scope = f"For {', '.join(example.engines)}"
        scope += f" on {example.hardware}." if example.hardware else "."
    return ShownExample(before, after, proofs.of_example(example.verified), scope)


def _defence(defence: Defence) -> ShownDefence:
    return ShownDefence(
        strategy=markdown.inline(defence.strategy),
        code=highlight.python_lines(defence.code) if defence.code else (),
        prevention=tuple(markdown.inline(item) for item in defence.prevention),
    )


_NEGATED = re.compile(r"not \((?P<inner>.*)\)", re.DOTALL)


def _guards(guards: tuple[str, ...]) -> list[Guard]:
    """Return the conditions as a chain that reads aloud: "if a", "and not b"."""
    chain: list[Guard] = []
    for guard in guards:
        joined = "and" if chain else "if"
        negated = _NEGATED.fullmatch(guard)
        if guard.startswith(("except ", "except:", "case ", "while ", "for ", "with ")):
            chain.append(Guard(f"{joined} in", guard))
        elif negated and _balanced(negated["inner"]):
            chain.append(Guard(f"{joined} not", negated["inner"]))
        else:
            chain.append(Guard(joined, guard))
    return chain


def _balanced(text: str) -> bool:
    """Claim that parentheses close in order: "(a) or (b)" with its outer pair cut off does not."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _chain_end(document: Document) -> str:
    if document.kind == "message":
        return "then this message is the answer"
    return f"then {document.exception} is raised"


def _sections(document: Document) -> tuple[Link, ...]:
    present = (
        ("Source", "source", True),
        ("Solutions", "solutions", True),
        ("Example fix", "example", document.example is not None),
        ("Defensive pattern", "defence", document.defence is not None),
        ("When it happens", "when", True),
        ("Life across releases", "life", True),
        ("Related errors", "related", bool(document.related)),
        ("Provenance", "provenance", True),
    )
    return tuple(Link(text, anchor) for text, anchor, there in present if there)
