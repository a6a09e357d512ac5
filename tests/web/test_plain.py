"""Markdown of a record: whatever stands in it cannot break out of its place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from app.web.plain import code, escaped, fenced

MARKDOWN = MarkdownIt("commonmark")
TEXT = st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs")) | st.sampled_from("`~ \n#*"))


@given(TEXT)
def test_a_fenced_text_is_one_block_that_holds_it(text: str) -> None:
    tokens = MARKDOWN.parse(fenced(text))

    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content == text + "\n"


@given(st.text(alphabet="ab`~ *<&", min_size=1).filter(lambda text: text.strip()))
def test_a_code_span_is_one_span_that_holds_it(text: str) -> None:
    children = MARKDOWN.parse(f"x {code(text)} x")[1].children or []

    assert [child.type for child in children] == ["text", "code_inline", "text"]
    assert children[1].content.strip() == " ".join(text.split())


@given(st.text(alphabet="ab`*_[]<>#|\\\n"))
def test_an_escaped_text_means_nothing(text: str) -> None:
    children = MARKDOWN.parse("x " + escaped(text))[1].children or []

    assert {child.type for child in children} <= {"text"}
    assert "".join(child.content for child in children) == ("x " + " ".join(text.split())).strip()
