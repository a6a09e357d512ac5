"""What the application is made of: `create_app` takes it, a route finds it with `PartsDep`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from app.store.engine import Store
from app.web import assets, frame
from app.web.assets import Assets
from app.web.checks import Checks
from app.web.frame import Site
from app.web.pages import Pages
from app.web.telemetry import Telemetry


@dataclass(frozen=True)
class Parts:
    """The parts of one application."""

    store: Store
    site: Site = field(default_factory=Site)
    assets: Assets = field(default_factory=assets.load)
    telemetry: Telemetry = field(default_factory=Telemetry)
    checks: Checks | None = None

    def pages(self) -> Pages:
        """Return a renderer of pages of this site."""
        return Pages(frame.environment(self.site, self.assets))


def parts(request: Request) -> Parts:
    """Return the parts of the application that answers a request."""
    found: Parts = request.app.state.parts
    return found


def pages(request: Request) -> Pages:
    """Return the renderer of the application that answers a request."""
    found: Pages = request.app.state.pages
    return found


PartsDep = Annotated[Parts, Depends(parts)]
PagesDep = Annotated[Pages, Depends(pages)]
