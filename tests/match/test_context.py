"""What stands round a find and in its holes."""

from __future__ import annotations

import pytest

from app.match.context import begins_inside, goes_on, is_prose, is_value, resumes, takes_prose

VOCABULARY = frozenset({"must", "be", "positive", "when", "the", "pool", "is", "set", "with", "tokens"})


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("", False),
        ("the pool ", True),
        ("lower it, ", True),
        ("ValueError: ", False),
        ("first line\n", False),
        ("it ended with exception ", False),
        ("“", False),
    ],
)
def test_a_find_within_a_sentence(before: str, inside: bool) -> None:
    assert begins_inside(before + "The ring", len(before)) is inside


@pytest.mark.parametrize(
    ("after", "literal", "more"),
    [
        (" when the pool is set", "must be positive", True),
        (", got 4", "must be positive", True),
        (" when the pool is set", "must be positive.", False),
        (". Try again", "must be positive", False),
        ("\nwhen", "must be positive", False),
        ("", "must be positive", False),
        (" when", "", False),
    ],
)
def test_a_sentence_that_goes_on(after: str, literal: str, more: bool) -> None:
    assert goes_on(literal + after, len(literal), literal) is more


@pytest.mark.parametrize(
    "text", ["4096", "'Qwen/Qwen3-8B'", "[1, 2, 3]", "torch.Size([8, 5])", "{'a', 'b'}", "Qwen ForCausal", "/a/b c/d"]
)
def test_values(text: str) -> None:
    assert is_value(text, VOCABULARY)
    assert not is_prose(text, VOCABULARY)


@pytest.mark.parametrize("text", ["4 must be positive", "x when the pool is set"])
def test_words_are_no_value(text: str) -> None:
    assert not is_value(text, VOCABULARY)
    assert is_prose(text, VOCABULARY)


def test_only_what_follows_a_colon_or_bracket_may_be_a_sentence() -> None:
    assert takes_prose("failed: ")
    assert takes_prose("failed (")
    assert not takes_prose("the pool of ")


def test_a_text_with_the_words_of_the_rest_resumes_it() -> None:
    assert resumes("the pool with other tokens", [" tokens of ", " pool"])
    assert not resumes("4096", [" tokens of ", " pool"])
    assert not resumes("anything", [""])
