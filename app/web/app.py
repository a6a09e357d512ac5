"""The application: `create_app` takes its parts, `asgi` puts the fast path in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from starlette.responses import Response

from app.web import answers, openapi, problems
from app.web.fastpath import FastPath
from app.web.matcher import Matcher
from app.web.parts import PagesDep, Parts
from app.web.reference import api_page
from app.web.routes import browse, check, compare, errors, health, identify, launches
from app.web.shell import Shell

TITLE = "Errata"
DESCRIPTION = (
    "Errors that published releases of Python packages can raise: records, search, identification of pasted errors, "
    "and dry runs of launch commands. Errors of the API itself are problem documents (RFC 9457)."
)


def create_app(parts: Parts) -> FastAPI:
    """Return the application, complete but for the fast path."""
    app = FastAPI(
        title=TITLE,
        description=DESCRIPTION,
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    pages = parts.pages()
    app.state.parts = parts
    app.state.pages = pages
    # More parts say here whether they are ready: name -> a function that returns "ok" or what is wrong.
    ready_checks: dict[str, Callable[[], str]] = {}
    app.state.ready_checks = ready_checks
    matcher = Matcher(parts.store)
    app.state.matcher = matcher
    ready_checks["identify"] = matcher.readiness
    problems.install(app, pages, lambda path: answers.near(parts.store, path))
    app.include_router(health.router)
    app.include_router(errors.router)
    app.include_router(browse.router)
    app.include_router(identify.router)
    app.include_router(check.router)
    app.include_router(compare.router)
    app.include_router(launches.router)
    if parts.checks is not None:
        ready_checks["engine"] = parts.checks.ready
        parts.telemetry.registry.register(parts.checks)

    @app.get("/api", include_in_schema=False)
    def api(request: Request, pages: PagesDep) -> Response:
        """Show the API."""
        return pages.response(api_page(request.app.openapi()))

    app.openapi = lambda: openapi.openapi(app)  # type: ignore[method-assign]
    # Routers of other pages go above this line: `/{owner}/{name}` fits any two path segments.
    app.include_router(browse.package_router)
    app.add_middleware(Shell, telemetry=parts.telemetry)
    return app


def asgi(parts: Parts) -> FastPath:
    """Return what a server serves: the application behind its fast path."""
    app = create_app(parts)
    front = FastPath(app, parts)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        app.state.matcher.start()
        if parts.checks is not None:
            await parts.checks.start()
        yield
        if parts.checks is not None:
            await parts.checks.close()
        front.close()
        parts.store.close()

    app.router.lifespan_context = lifespan
    return front
