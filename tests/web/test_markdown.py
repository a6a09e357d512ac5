"""Markdown becomes markup, and a text can never become more than Markdown allows."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web import markdown

ALLOWED = {
    *("p", "a", "code", "pre", "em", "strong", "ul", "ol", "li", "blockquote", "br", "hr"),
    *(f"h{n}" for n in range(1, 7)),
}


class Tags(HTMLParser):
    """Collects tags and attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def test_it_renders_code_lists_and_links() -> None:
    html = markdown.block("Drop `--a`:\n\n1. one\n2. [two](/errors)\n")

    assert "<code>--a</code>" in html and "<li>one</li>" in html and '<a href="/errors">two</a>' in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,a)",
        "[x](//evil.example)",
        "[x](http://plain.example)",
        "![x](https://evil.example/a.png)",
        "<https://x><img src=x onerror=alert(1)>",
    ],
)
def test_no_html_script_image_or_odd_link_comes_through(text: str) -> None:
    tags = Tags(markdown.block(text))

    assert tags.tags <= ALLOWED
    assert all(name == "href" and (value or "").startswith("https://") for name, value in tags.attributes)


@given(st.text(max_size=300))
def test_any_text_gives_allowed_tags_only(text: str) -> None:
    tags = Tags(markdown.block(text)).tags | Tags(markdown.inline(text, values={"{x}": text})).tags

    assert tags <= ALLOWED


@given(st.text(max_size=200))
def test_a_readers_value_is_text_wherever_it_is_put(value: str) -> None:
    html = markdown.block("Set {a} or `{a}`.", values={"{a}": value})

    assert Tags(html).tags <= {"p", "code"}


def test_values_fill_holes_in_one_pass() -> None:
    assert markdown.filled("{a}{b}", {"{a}": "{b}", "{b}": "2"}) == "{b}2"
