"""Which form a client gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.negotiate import best

OFFERED = ("text/html", "text/markdown")


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", "text/html"),
        ("*/*", "text/html"),
        ("text/markdown", "text/markdown"),
        ("text/markdown, text/html", "text/html"),
        ("text/markdown;q=0.9, text/html;q=0.8", "text/markdown"),
        ("text/html;q=0.8, text/markdown;q=0.9, */*;q=0.1", "text/markdown"),
        ("text/*;q=0.5, text/markdown;q=0", "text/html"),
        ("text/html;q=0, */*", "text/markdown"),
        ("TEXT/MARKDOWN; Q=1", "text/markdown"),
        ("application/json", "text/html"),
        ("text/markdown;q=2, text/html;q=0.1", "text/html"),
        ("text/markdown;q=nan, text/html;q=0.1", "text/html"),
        (";;;,,/,", "text/html"),
    ],
)
def test_q_values_decide_and_the_first_offered_breaks_ties(accept: str, wanted: str) -> None:
    assert best(accept, OFFERED) == wanted


@given(st.text(max_size=400))
def test_any_header_has_an_answer(accept: str) -> None:
    assert best(accept, OFFERED) in OFFERED
