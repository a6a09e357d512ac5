"""Titles and primary messages of mined records: short and plain, made from what the source says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.mine.model import Site, Template, Variant

_LONGEST = 96
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_SENTENCE = re.compile(r"(?<=[a-z0-9)`'\"\]])[.!?](?=\s+[A-Z`'\"-])|\n")
_TRIMMED = " \t\n.,:;=-(["


def message(site: Site) -> Template:
    """Return the text that shows a reader what the site says.

    A template that is nothing but holes ("{message}") says nothing: then it is the richest of its variants.
    """
    return primary(site.template, site.variants)


def primary(template: Template, variants: Sequence[Variant]) -> Template:
    """Return the text that stands for a template and its variants, as `message` says."""
    if says_something(template) or not variants:
        return template
    best = max(variants, key=lambda variant: _words(variant.template))
    return best.template if says_something(best.template) else template


def says_something(template: Template) -> bool:
    """Tell whether a template has a word of its own."""
    return _words(template) > 0


def title(site: Site) -> str:
    """Return the title of a mined record: the first sentence of its message, or what a bare assert demands."""
    text = message(site)
    if says_something(text):
        return _shortened(_first_sentence(text))
    if site.condition:
        return _shortened(f"Assertion failed: {' '.join(site.condition.split())}")
    where = site.function if site.function != "<module>" else site.path.rpartition("/")[2]
    return _shortened(f"{site.exception or 'Error'} in {where}")


def _words(template: Template) -> int:
    return min(sum(len(_LETTERS.findall(literal)) for literal in template.literals), 60)


def _first_sentence(template: Template) -> str:
    # A hole in a title is an ellipsis; what stands in it is shown with the message.
    text = "".join(part if i % 2 == 0 else "…" for i, part in enumerate(template.parts))
    text = text.strip().lstrip("\n")
    for sentence in _SENTENCE.split(text):
        if _LETTERS.search(sentence):
            return " ".join(sentence.split()).rstrip(_TRIMMED).lstrip(" ,:;") or text
    return " ".join(text.split())


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    cut = text[:_LONGEST].rsplit(" ", 1)[0] if " " in text[40:_LONGEST] else text[:_LONGEST]
    return cut.rstrip(_TRIMMED + "…") + "…"
