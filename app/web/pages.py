"""A page is a dataclass; its template uses exactly its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from jinja2 import Environment, Template
from starlette.responses import HTMLResponse

FOLDER = "pages"
SUFFIX = "Page"


def template_name(page: type) -> str:
    """Return the template of a page class: `ReleasePage` -> "pages/release.html"."""
    return f"{FOLDER}/{page.__name__.removesuffix(SUFFIX).lower()}.html"


class Pages:
    """Renders pages with one Jinja environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._templates: dict[type, Template] = {}

    def html(self, page: Any) -> str:
        """Return a page (a dataclass instance) as HTML."""
        kind = type(page)
        template = self._templates.get(kind)
        if template is None:
            template = self._templates[kind] = self._environment.get_template(template_name(kind))
        return template.render({field.name: getattr(page, field.name) for field in fields(page)})

    def part(self, template: str, **values: Any) -> str:
        """Return a part of a page alone, for a script that puts it in place."""
        return self._environment.get_template(template).render(values)

    def response(self, page: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HTMLResponse:
        """Return a page as an answer."""
        return HTMLResponse(self.html(page), status_code=status, headers=dict(headers or {}))
