"""The decision: properties over made-up records."""

from __future__ import annotations

import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.match import identify as decision
from app.match.answer import body
from app.match.identify import identify
from app.match.index import Index
from app.store.queries import Signature
from tests.match.conftest import SIGNATURES

LONG = [s for s in SIGNATURES if s.texts and sum(map(len, s.texts[0][0::2])) >= 20]
VALUE = st.text(string.ascii_letters + string.digits + " _./-", min_size=1, max_size=20).filter(str.strip)


def rendered(signature: Signature, values: list[str]) -> str:
    """Return the signature's first text with its holes filled."""
    parts = signature.texts[0]
    return "".join(part if n % 2 == 0 else values[n // 2] for n, part in enumerate(parts))


def printed(signature: Signature, message: str) -> str:
    """Return what Python prints last."""
    return f"{signature.exception}: {message}" if signature.exception else message


@given(st.sampled_from(LONG), st.lists(VALUE, min_size=4, max_size=4))
def test_a_message_is_found_whatever_fills_its_holes(index: Index, signature: Signature, values: list[str]) -> None:
    found = identify(index, printed(signature, rendered(signature, values)))

    assert any(m.parts == signature.texts[0] for m in found.matches[:2])


@given(st.sampled_from([s for s in SIGNATURES if s.exception]), st.lists(VALUE, min_size=4, max_size=4))
def test_with_the_frame_the_site_is_first(index: Index, signature: Signature, values: list[str]) -> None:
    seen = signature.seen[-1]
    message = rendered(signature, values) if signature.texts else ""
    function = seen.function.rpartition(".")[2]
    frame = f'  File "/x/site-packages/{seen.path}", line 1, in {function}\n    {seen.statement}'
    text = f"{frame}\n{signature.exception}: {message}"

    found = identify(index, text)

    assert found.matches
    assert found.matches[0].record_id == signature.record_id


@given(st.text(max_size=200))
def test_scores_are_ordered_facts(index: Index, text: str) -> None:
    found = identify(index, text)

    assert len(found.matches) <= decision.MAX_MATCHES
    assert all(0.5 <= m.score <= 1 and m.evidence and len(m.evidence) == len(m.reasons) for m in found.matches)
    assert not (found.matches and found.looks_like)


@given(st.text(string.ascii_lowercase + " .:,", max_size=120))
def test_words_alone_are_no_error(index: Index, text: str) -> None:
    assert not identify(index, "prose " + text).matches


@given(st.permutations(SIGNATURES))
def test_the_order_of_the_records_changes_nothing(index: Index, order: list[Signature]) -> None:
    text = "RuntimeError: Cannot hand out a slot, the pool is exhausted"

    assert [m.record_id for m in identify(Index(order), text).matches] == [
        m.record_id for m in identify(index, text).matches
    ]


def test_a_release_narrows(index: Index) -> None:
    text = "ValueError: The striped weights need an operator that this build does not have."

    assert identify(index, text, release="0.5.17").matches
    assert not identify(index, text, release="0.5.19").matches
    assert not identify(index, text, package="another").matches


def test_the_same_text_is_named_beside_the_one_that_the_frame_decides(index: Index) -> None:
    text = (
        '  File "sglang/srt/mem_cache/slot_pool.py", line 4, in take\n'
        '    raise RuntimeError("Cannot hand out a slot, the pool is exhausted")\n'
        "RuntimeError: Cannot hand out a slot, the pool is exhausted"
    )

    (match,) = identify(index, text).matches

    assert match.title == "slots (pool)"
    assert match.also == tuple(s.record_id for s in SIGNATURES if s.title == "slots (host)")


def test_a_line_number_alone_decides_nothing(index: Index) -> None:
    text = '  File "/x/sglang/srt/server_args.py", line 100, in other\nValueError: something else'

    assert not identify(index, text).matches


def test_nothing_is_known_of_an_empty_index() -> None:
    found = identify(Index(()), "ValueError: The page size 64 does not divide the chunk of 1000 tokens.")

    assert found.matches == ()


def test_the_body_has_the_documented_keys(index: Index) -> None:
    answer = body(identify(index, "ValueError: The page size 64 does not divide the chunk of 1000 tokens."))

    assert {"matches", "blocks", "looks_like"} == set(answer)
    assert {"id", "url", "title", "exception", "message", "score", "values", "evidence", "also"} <= set(
        answer["matches"][0]
    )
    assert {"exception", "message", "frames", "chained"} == set(answer["blocks"][0])


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: it is not supported\n",
        '  File "/a/sglang/srt/b.py", line 1, in f\n    raise ValueError(\n',
        '"message": \\"\'',
        "│ “x” is not supported\n",
        "a\n",
        "AssertionError: The ring width must be a power of two, got \n",
    ],
)
def test_the_work_does_not_grow_faster_than_the_text(index: Index, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            nonlocal counted
            counted += 1
            return function(*arguments)

        return call

    for name in ("fit", "damaged", "_agreement", "normal"):
        monkeypatch.setattr(decision, name, counting(getattr(decision, name)))

    def work(repeats: int) -> int:
        nonlocal counted
        counted = 0
        identify(index, line * repeats)
        return counted

    small, large = work(200), work(2_000)

    assert large <= 10 * small + 500
