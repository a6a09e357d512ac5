"""Curated text to HTML: the one place of the project that declares a string to be safe markup.

HTML in the text is shown, not obeyed (`html` is off), and the renderer escapes every text it puts out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

# A link of a curated text leads to a page here, to a section or to https; anything else is shown as text.
_LINK = re.compile(r"(https://|/(?!/)|#)", re.IGNORECASE)


def _renderer() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    markdown.disable("image")
    markdown.validateLink = lambda url: _LINK.match(url.strip()) is not None  # type: ignore[method-assign]
    return markdown


_MARKDOWN = _renderer()


def block(text: str, *, values: Mapping[str, str] | None = None) -> Markup:
    """Return paragraphs, lists and code. `values` maps "{hole}" to the reader's text that is shown in its place."""
    tokens = _MARKDOWN.parse(text)
    return _rendered(tokens, values)


def inline(text: str, *, values: Mapping[str, str] | None = None) -> Markup:
    """Return the text without a paragraph around it."""
    tokens = _MARKDOWN.parseInline(text)
    return _rendered(tokens, values)


def _rendered(tokens: list[Token], values: Mapping[str, str] | None) -> Markup:
    if values:
        _fill(tokens, values)
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}).strip())


def _fill(tokens: Sequence[Token], values: Mapping[str, str]) -> None:
    """Put values into texts and code, after parsing: a value can never become markup."""
    for token in tokens:
        if token.children:
            _fill(token.children, values)
        elif token.type in {"text", "code_inline", "code_block", "fence"}:
            token.content = filled(token.content, values)


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return the text with each "{hole}" that has a value replaced by it, in one pass."""
    if not values:
        return text
    holes = re.compile("|".join(re.escape(hole) for hole in sorted(values, key=len, reverse=True)))
    return holes.sub(lambda match: values[match[0]], text)
