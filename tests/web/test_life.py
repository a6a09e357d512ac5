"""The life line and its sentence."""

from __future__ import annotations

import pytest

from app.store.document import Change, History, Place
from app.web.life import change_sentence, life_line, life_range, life_sentence

INGESTED = ("0.5.17", "0.5.18", "0.5.19", "0.5.20")


def history(*versions: str, bound: bool = False, gone: str | None = None, changes: tuple[Change, ...] = ()) -> History:
    places = tuple(Place(version=v, path="a.py", line=1, end_line=1, function="f") for v in versions)
    return History(
        first=versions[0] if versions else None,
        first_is_bound=bound,
        last=versions[-1] if versions else None,
        gone_since=gone,
        releases=places,
        changes=changes,
        ingested=INGESTED,
    )


@pytest.mark.parametrize(
    ("life", "sentence"),
    [
        (history("0.5.18", "0.5.19", gone="0.5.20"), "New in 0.5.18. In 0.5.18 and 0.5.19; gone since 0.5.20."),
        (history(*INGESTED, bound=True), "In 0.5.17 or earlier to 0.5.20, the newest release read."),
        (history("0.5.17", bound=True, gone="0.5.18"), "In 0.5.17 or earlier only; gone since 0.5.18."),
        (history("0.5.20"), "New in 0.5.20. In 0.5.20 only, the newest release read."),
        (
            history("0.5.17", "0.5.19", "0.5.20", bound=True),
            "In 0.5.17 or earlier, 0.5.19, 0.5.20, the newest release read.",
        ),
        (history(), "Not found in any release that was read."),
    ],
)
def test_the_sentence_says_what_the_cells_show(life: History, sentence: str) -> None:
    assert life_sentence(life) == sentence


def test_cells_are_filled_where_the_release_has_it_and_only_those_lead_somewhere() -> None:
    line = life_line(history("0.5.18", "0.5.19", gone="0.5.20"), record_url="/errors/x", shown="0.5.19")

    assert [cell.has for cell in line.cells] == [False, True, True, False]
    assert [cell.url for cell in line.cells] == [
        "",
        "/errors/x?release=0.5.18#source",
        "/errors/x?release=0.5.19#source",
        "",
    ]
    assert [cell.version for cell in line.cells if cell.shown] == ["0.5.19"]
    assert [cell.x for cell in line.cells] == [0, line.step, 2 * line.step, 3 * line.step]


def test_a_move_of_file_or_function_is_a_tick_a_reword_a_diamond_and_a_moved_line_nothing() -> None:
    changes = (
        Change(version="0.5.18", what="moved", detail="line", old="1", new="2"),
        Change(version="0.5.19", what="moved", detail="file", old="a.py", new="b.py"),
        Change(version="0.5.20", what="reworded", old="x", new="y"),
    )
    line = life_line(history(*INGESTED, changes=changes), record_url="/errors/x")

    assert [cell.marks for cell in line.cells] == [(), (), ("tick",), ("diamond",)]
    assert line.changes == ("0.5.19: moved to another file: from a.py to b.py", "0.5.20: reworded: from x to y")


def test_a_range_fits_a_list_row() -> None:
    assert life_range("0.5.17", "0.5.23", "") == "since 0.5.17"
    assert life_range("0.5.17", "0.5.18", "0.5.19") == "0.5.17 – 0.5.18"
    assert life_range("0.5.18", "0.5.18", "0.5.19") == "0.5.18"


def test_every_kind_of_change_has_its_words() -> None:
    assert change_sentence(Change(version="1", what="gone")) == "1: gone"
    assert change_sentence(Change(version="1", what="back")) == "1: back again"
    assert change_sentence(Change(version="1", what="guard changed", old="a", new="b")) == (
        "1: other conditions lead to it. New: b. No longer: a"
    )
