"""Settings come from the environment, once, and are documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import BadInput
from app.settings import Settings, table

DOCUMENT = Path(__file__).parents[1] / "docs" / "settings.md"


def test_values_are_read_and_others_left_alone() -> None:
    settings = Settings.from_environment({"ERRATA_PORT": "9000", "PORT": "1", "PATH": "/bin"})

    assert settings.port == 9000
    assert settings.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("ERRATA_PROT", "ERRATA_PROT is not a setting; did you mean ERRATA_PORT?"),
        ("ERRATA_DATABASE", "did you mean ERRATA_DATABASE_URL?"),
        ("ERRATA_", "did you mean ERRATA_"),
    ],
)
def test_a_misspelt_variable_names_the_nearest(name: str, complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        Settings.from_environment({name: "1"})

    assert complaint in caught.value.detail


def test_a_wrong_value_names_its_variable() -> None:
    with pytest.raises(BadInput, match="ERRATA_PORT: Input should be a valid integer"):
        Settings.from_environment({"ERRATA_PORT": "many"})


def test_the_documented_table_is_this_one() -> None:
    assert DOCUMENT.read_text(encoding="utf-8").endswith("-->\n" + table())
