"""The documents say what is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_dependency_says_what_it_saves() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(d for group in project["optional-dependencies"].values() for d in group)]
    names = {re.split(r"[\[<>=; ]", requirement)[0] for requirement in wanted}
    text = (ROOT / "docs/dependencies.md").read_text()
    described = {
        name.strip() for row in re.findall(r"^\| ([a-z][^|]*) \| [^|]+ \|$", text, re.M) for name in row.split(",")
    }

    assert names - described == set()
    assert described - names - {"package"} == set()


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")

    assert broken == []


def test_every_decision_has_its_four_parts() -> None:
    for page in sorted((ROOT / "docs/decisions").glob("[0-9]*.md")):
        text = page.read_text().lower()

        assert [part for part in ("context", "decision", "consequences", "alternatives") if part not in text] == [], (
            page
        )
