"""Messages as runs, and the reader's own values."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from app.web.message import MAX_VALUE_LENGTH, MAX_VALUES, reader_values, record_url, segments

PARTS = st.lists(st.text(max_size=12), min_size=0, max_size=3).map(lambda pairs: (*(pairs * 2), "end"))


def test_literals_and_holes_alternate() -> None:
    found = segments(("a ", "x.y", " b"), values={"{x.y}": "3"})

    assert [(s.text, s.hole, s.value) for s in found] == [
        ("a ", False, None),
        ("{x.y}", True, "3"),
        (" b", False, None),
    ]
    assert found[1].expression == "x.y"


@given(PARTS, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=4))
def test_no_character_is_lost_or_doubled_whatever_the_hits_are(
    parts: tuple[str, ...], hits: list[tuple[int, int]]
) -> None:
    text = "".join("{" + part + "}" if i % 2 else part for i, part in enumerate(parts))

    assert "".join(s.text for s in segments(parts, hits=sorted(hits))) == text


def test_a_hit_is_marked_exactly() -> None:
    found = segments(("must be divisible", "x", ""), hits=((5, 7), (17, 18)))

    assert [(s.text, s.hit) for s in found] == [("must ", False), ("be", True), (" divisible", False), ("{x}", True)]


@given(st.dictionaries(st.text(min_size=1, max_size=20).map(lambda t: "{" + t + "}"), st.text(max_size=50), max_size=5))
def test_an_address_carries_values_there_and_back(values: dict[str, str]) -> None:
    url = record_url("0" * 16, values)

    back = reader_values(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    printable = {hole: value for hole, value in values.items() if value.isprintable()}
    assert {hole: back[hole] for hole in printable} == printable


def test_values_are_bounded_and_without_control_characters() -> None:
    many = [(f"v[x{n}]", "a" * 5000) for n in range(500)]
    found = reader_values(
        [("v[y]", "a\x00b\u202ec\nd"), ("other", "x"), ("v[", "x"), ("v[" + "x" * 999 + "]", "1"), *many]
    )

    assert found["{y}"] == "abc\nd"
    assert len(found) == MAX_VALUES
    assert max(map(len, found.values())) == MAX_VALUE_LENGTH
