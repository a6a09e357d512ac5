"""Pages and their templates agree, and nothing but `markdown.py` makes markup."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from jinja2 import UndefinedError, meta, nodes

import app.web
from app.web import assets, frame
from app.web.frame import TEMPLATES, Site
from app.web.pages import template_name

ENVIRONMENT = frame.environment(Site(), assets.load())


def page_classes() -> list[type]:
    """Return every page class of the web layer."""
    found = []
    for module in pkgutil.walk_packages(app.web.__path__, "app.web."):
        members = vars(importlib.import_module(module.name)).items()
        found += [
            kind
            for name, kind in members
            if name.endswith("Page")
            and is_dataclass(kind)
            and isinstance(kind, type)
            and kind.__module__ == module.name
        ]
    return found


def used(template: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """Return the names that a template looks up, those of what it extends and includes among them."""
    source, _, _ = ENVIRONMENT.loader.get_source(ENVIRONMENT, template)  # type: ignore[union-attr]
    tree = ENVIRONMENT.parse(source)
    # What the template itself imports or defines is set for its blocks too, which this analysis does not see.
    own = {macro.name for macro in tree.find_all(nodes.Macro)}
    own |= {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"}
    for imported in tree.find_all(nodes.FromImport):
        own |= {name if isinstance(name, str) else name[1] for name in imported.names}
    names = meta.find_undeclared_variables(tree) - ENVIRONMENT.globals.keys() - own
    for other in tree.find_all((nodes.Extends, nodes.Include)):
        name = other.template.value  # type: ignore[attr-defined]
        if name not in seen:
            names |= used(name, seen | {name})
    return names


@pytest.mark.parametrize("page", page_classes(), ids=lambda page: page.__name__)
def test_a_page_has_exactly_the_fields_that_its_template_uses(page: type) -> None:
    assert used(template_name(page)) == {field.name for field in fields(page)}


def test_every_page_template_has_its_class() -> None:
    templates = {f"pages/{path.name}" for path in (TEMPLATES / "pages").glob("*.html")}

    assert templates == {template_name(page) for page in page_classes()}


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_a_template_says_its_arguments_and_trusts_nothing(path: Path) -> None:
    text = path.read_text()

    assert text.startswith("{#- ")
    assert not re.search(r"\|\s*safe\b|autoescape|style=|\son[a-z]+=", text)


def test_markup_is_made_in_one_place_only() -> None:
    makers = [
        path.name for path in Path(app.web.__path__[0]).rglob("*.py") if re.search(r"\bMarkup\(", path.read_text())
    ]

    assert makers == ["markdown.py"]


def test_a_missing_field_is_an_error_and_not_a_blank() -> None:
    template = ENVIRONMENT.from_string("{{ absent }}")

    with pytest.raises(UndefinedError):
        template.render()
