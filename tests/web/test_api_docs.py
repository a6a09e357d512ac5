"""docs/api.md names every address."""

from __future__ import annotations

import re
from pathlib import Path

from app.store.engine import Store
from app.web.app import create_app
from app.web.parts import Parts

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
# Named by what they do, or for machines that look for them by convention.
ELSEWHERE = {"/robots.txt", "/sitemap.xml", "/static/{}", "/favicon.ico"}


def _shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def test_every_route_is_described() -> None:
    app = create_app(Parts(Store("sqlite:///:memory:")))
    described = {_shape(path) for path in re.findall(r"(/[\w.{}/-]*)", TEXT)}

    routes = {_shape(str(getattr(route, "path", ""))) for route in app.routes} - {""}
    assert routes - described - ELSEWHERE == set()
