"""A record as Markdown: the same facts as the page and the JSON, for terminals and language models."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.store.document import Document, Solution
from app.web import proofs
from app.web.life import change_sentence, life_sentence

_TICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|])")


def record_markdown(document: Document, *, site_url: str = "") -> str:
    """Return the record as CommonMark."""
    return "\n".join(_lines(document, site_url)).rstrip() + "\n"


def fenced(text: str, language: str = "") -> str:
    """Return a code block whose fence is longer than any run of backticks in the text."""
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def code(text: str) -> str:
    """Return the text as a code span."""
    line = " ".join(text.split())
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def escaped(text: str) -> str:
    """Return text that was not written as Markdown with its special characters escaped, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _lines(document: Document, site_url: str) -> Iterator[str]:
    kind = document.exception or "message"
    yield f"# {escaped(document.title)}"
    yield f"\n{escaped(document.package.name)}, {document.kind}, {code(kind)}, {document.status}\n"
    yield fenced(document.message or document.condition)
    if document.meaning:
        yield f"\n## Meaning\n\n{document.meaning}"
    yield from _source(document)
    yield "\n## Solutions\n"
    yield from [f"{n}. {_solution(s)}" for n, s in enumerate(document.solutions, 1)] or ["None is known yet."]
    if document.example:
        yield f"\n## Example fix\n\nBefore:\n\n{fenced(document.example.before, 'sh')}"
        yield f"\nAfter:\n\n{fenced(document.example.after, 'sh')}"
        yield from (f"\n{proof[:1].upper()}{proof[1:]}." for proof in proofs.of_example(document.example.verified))
    if document.not_verified:
        yield f"\nNot verified here: {document.not_verified}"
    if document.defence:
        yield f"\n## Defensive pattern\n\nStrategy: {document.defence.strategy}"
        if document.defence.code:
            yield f"\n{fenced(document.defence.code, 'python')}"
        yield from (["", *(f"- {item}" for item in document.defence.prevention)])
    yield from _when(document)
    yield f"\n## Life across releases\n\n{life_sentence(document.history)}"
    yield from (["", *(f"- {escaped(change_sentence(change))}" for change in document.history.changes)])
    if document.related:
        yield "\n## Related errors\n"
        yield from (f"- [{escaped(r.title)}]({site_url}/errors/{r.id}): {escaped(r.why)}" for r in document.related)
    yield f"\n## Provenance\n\n- Analysis: {escaped(document.provenance.analysis)}"
    yield f"- Source: {escaped(document.provenance.source)}"
    yield f"- Record: {site_url}{document.url} (JSON: {site_url}/api/errors/{document.id})"
    if document.provenance.report_url:
        yield f"- Report a fault: <{document.provenance.report_url}>"


def _source(document: Document) -> Iterator[str]:
    source = document.source
    yield "\n## Source\n"
    if source is None:
        yield "The place in the source is not known."
        return
    place = code(f"{source.path}:{source.line}")
    yield f"{place} in {code(source.function)} at {source.ref}" + (f": <{source.url}>" if source.url else "")
    if source.excerpt:
        yield f"\nFrom {source.excerpt.ref}, line {source.excerpt.start_line}:\n"
        yield fenced(source.excerpt.text.rstrip("\n"), "python")


def _solution(solution: Solution) -> str:
    derived = " (derived from releases)" if solution.derived else ""
    return solution.text + derived + "".join(f" [{proof}]" for proof in proofs.of_solution(solution.verified))


def _when(document: Document) -> Iterator[str]:
    yield "\n## When it happens\n"
    if document.trigger:
        yield document.trigger
    if document.situations:
        yield from ("", *(f"- {item}" for item in document.situations))
    if document.guards:
        yield "\nConditions on the way to it, outermost first:\n"
        yield from (f"{n}. {code(guard)}" for n, guard in enumerate(document.guards, 1))
    if document.flags:
        yield f"\nFlags involved: {', '.join(code(flag) for flag in document.flags)}"
