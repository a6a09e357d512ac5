"""What a release's parser declares arrives as it is declared."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from app.check import options
from app.check.options import Options
from app.check.pool import Engine
from app.check.protocol import Option, Ready
from app.check.worker.options import declared


class DeprecatedAliasStoreAction(argparse.Action):
    """As releases write them: the class says it, `new_flag` names the other option."""

    def __init__(self, option_strings: list[str], dest: str, new_flag: str | None = None, **kwargs: object) -> None:
        self.new_flag = new_flag
        super().__init__(option_strings, dest, **kwargs)  # type: ignore[arg-type]


@pytest.fixture
def table() -> Options:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensor-size", "--tp-size", type=int, default=1, help="How many.\nMore.")
    parser.add_argument("--backend", choices=["a", "b"])
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--old", action=DeprecatedAliasStoreAction, new_flag="--backend", dest="backend")
    parser.add_argument("--gone", action="store_true", help="(Deprecated: use --backend=a) It did this.")
    return Options("1.0", declared(parser))


def engine(folder: Path) -> Engine:
    return Engine("1.0", folder / "python", folder / "sglang-1.0")


def test_an_option_is_what_the_parser_says(table: Options) -> None:
    assert table.named("--tensor-size") == Option(
        ("--tensor-size", "--tp-size"), "tensor_size", default=1, type="int", help="How many."
    )
    assert table.named("--backend") == Option(("--backend",), "backend", choices=("a", "b"), type="str")
    assert table.named("--fast") == Option(("--fast",), "fast", "0", default=False, const=True, type="bool")
    sizes = table.named("--sizes")
    assert sizes is not None
    assert sizes.nargs == "+"


def test_a_retired_option_says_what_took_its_place(table: Options) -> None:
    retired = {option.names[0]: option.instead for option in table if option.deprecated}

    assert retired == {"--old": "--backend", "--gone": "--backend=a"}


def test_a_name_may_be_shortened_as_far_as_argparse_lets_it(table: Options) -> None:
    assert table.named("--tens") is table.named("--tp-size")
    assert table.named("--t") is table.named("--tp-size")  # both spellings are of one option
    assert table.named("--") is None
    assert table.named("--nothing") is None


def test_a_field_is_set_by_the_option_that_is_not_retired(table: Options) -> None:
    backend = table.setting("backend")
    assert backend is not None
    assert backend.names == ("--backend",)
    assert table.setting("nothing") is None


def test_options_are_read_as_they_were_written(tmp_path: Path, table: Options) -> None:
    options.write(engine(tmp_path), table.options)

    assert options.read(engine(tmp_path)) == table
    assert Options.of(engine(tmp_path)) == table


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 0, "version": "1.0", "options": []}'])
def test_a_file_of_another_format_is_made_anew(
    tmp_path: Path, table: Options, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    ready = Ready("1.0", "sm90", 1, 1.0, 1.0, 1, 1, options=table.options)
    monkeypatch.setattr(options, "self_test", lambda engine, device: ready)
    options.file_of(engine(tmp_path)).write_text(text)

    assert Options.of(engine(tmp_path)) == table
    assert options.read(engine(tmp_path)) == table
