"""Pages around the records: home and its one box, packages, flags, releases, about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import RedirectResponse, Response

from app.check import released
from app.check.service import PACKAGE
from app.store import queries
from app.store.queries import Counts, Filters, Flag, Package, Release, ReleaseChanges
from app.web import bodies, paste
from app.web.frame import Head, head_title
from app.web.listing import Row, list_url, row
from app.web.optionlist import OptionGroup, option_groups
from app.web.parts import PagesDep, PartsDep

router = APIRouter(include_in_schema=False)
_SHOWN_CHANGES = 100
# A pasted text that is longer does not fit into an address: it is posted on instead.
_ADDRESS_LENGTH = 1_500


@dataclass(frozen=True, slots=True)
class HomePage:
    """`/`. Fields are the names that `templates/pages/home.html` uses."""

    head: Head
    counts: Counts
    packages: tuple[Package, ...]
    newest: Release | None
    new_rows: tuple[Row, ...]
    new_total: int


@dataclass(frozen=True, slots=True)
class PackagePage:
    """`/{owner}/{name}`. Fields are the names that `templates/pages/package.html` uses."""

    head: Head
    package: Package
    list_url: str
    links: tuple[tuple[str, tuple[tuple[str, int, str], ...]], ...]


@dataclass(frozen=True, slots=True)
class FlagPage:
    """`/flags/{flag}`. Fields are the names that `templates/pages/flag.html` uses."""

    head: Head
    flag: Flag
    rows: tuple[Row, ...]
    list_url: str


@dataclass(frozen=True, slots=True)
class FlagsPage:
    """`/flags`. Fields are the names that `templates/pages/flags.html` uses."""

    head: Head
    flags: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ReleasesPage:
    """`/releases`. Fields are the names that `templates/pages/releases.html` uses."""

    head: Head
    packages: tuple[Package, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """One kind of change of a release."""

    title: str
    anchor: str
    total: int
    rows: tuple[Row, ...]
    empty: str


@dataclass(frozen=True, slots=True)
class ReleasePage:
    """`/releases/{version}`. Fields are the names that `templates/pages/release.html` uses."""

    head: Head
    changes: ReleaseChanges
    groups: tuple[Group, ...]
    options: tuple[OptionGroup, ...]
    list_url: str


@dataclass(frozen=True, slots=True)
class AboutPage:
    """`/about`. Fields are the names that `templates/pages/about.html` uses."""

    head: Head
    counts: Counts
    packages: tuple[Package, ...]


@router.get("/")
def home(parts: PartsDep, pages: PagesDep) -> Response:
    """Show the one box."""
    with parts.store.reading() as connection:
        counts = queries.counts(connection)
        packages = queries.packages(connection)
        newest = packages[0].releases[0] if packages and packages[0].releases else None
        changes = queries.release(connection, newest.version, package=newest.package, limit=6) if newest else None
    return pages.response(
        HomePage(
            head=Head(
                title="Errata: what this error means and what to change",
                description=f"{counts.records:,} errors read from published releases: meaning, source, fix, history.",
                canonical="/",
                search=False,
            ),
            counts=counts,
            packages=packages,
            newest=newest,
            new_rows=tuple(map(row, changes.new)) if changes else (),
            new_total=changes.counts.get("new", 0) if changes else 0,
        )
    )


@router.get("/go")
def go(q: Annotated[str, Query(max_length=20_000)] = "") -> Response:
    """Lead to what a text from the one box is for."""
    return _go(q)


@router.post("/go")
async def go_posted(request: Request) -> Response:
    """Lead to what a text from the one box is for, also a long one."""
    return _go((await bodies.form(request, paste.MAX_LENGTH)).get("q", ""))


def _go(text: str) -> Response:
    match paste.kind_of(text):
        case "nothing":
            return RedirectResponse("/errors", status_code=303)
        case "record":
            return RedirectResponse(f"/errors/{text.strip()}", status_code=303)
        case "words":
            return RedirectResponse("/errors?" + urlencode({"q": text.strip()}), status_code=303)
        case "command":
            return _handed_on("/check", "command", text)
        case "error":
            return _handed_on("/identify", "text", text)


def _handed_on(path: str, field: str, text: str) -> Response:
    if len(text) <= _ADDRESS_LENGTH:
        return RedirectResponse(f"{path}?" + urlencode({field: text}), status_code=303)
    # 307 keeps method and body: the browser posts the same form there, where `q` is understood as well.
    return RedirectResponse(path, status_code=307)


@router.get("/flags")
def flags_page(parts: PartsDep, pages: PagesDep) -> Response:
    """Show every flag that a record names."""
    with parts.store.reading() as connection:
        found = queries.flags(connection)
    head = Head(
        title=head_title("Flags"),
        description=f"{len(found):,} command-line flags and the errors they are involved in.",
        canonical="/flags",
    )
    return pages.response(FlagsPage(head=head, flags=tuple(sorted(found.items()))))


@router.get("/flags/{flag}")
def flag_page(flag: str, parts: PartsDep, pages: PagesDep) -> Response:
    """Show the errors that a flag is involved in."""
    with parts.store.reading() as connection:
        found = queries.flag(connection, flag, limit=100)
    head = Head(
        title=head_title(f"{found.flag}: errors"),
        description=f"{found.total:,} errors that {found.flag} is involved in.",
        section="/errors",
        canonical=f"/flags/{found.flag}",
        json=list_url(Filters(flag=found.flag), path="/api/errors"),
    )
    rows = tuple(map(row, found.records))
    return pages.response(FlagPage(head=head, flag=found, rows=rows, list_url=list_url(Filters(flag=found.flag))))


@router.get("/releases")
def releases_page(parts: PartsDep, pages: PagesDep) -> Response:
    """Show every release that was read."""
    with parts.store.reading() as connection:
        packages = queries.packages(connection)
    head = Head(
        title=head_title("Releases"),
        description="The releases that were read, and what each one changed.",
        section="/releases",
        canonical="/releases",
    )
    return pages.response(ReleasesPage(head=head, packages=packages))


@router.get("/releases/{version}")
def release_page(
    version: str, parts: PartsDep, pages: PagesDep, package: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Show what one release changed."""
    with parts.store.reading() as connection:
        changes = queries.release(connection, version, package=package, limit=_SHOWN_CHANGES)
        flags = queries.flags(connection)
    release = changes.release
    name = f"{release.package} {release.version}"
    return pages.response(
        ReleasePage(
            head=Head(
                title=head_title(f"{name}: new and changed errors"),
                description=f"What {name} changed: {_summary(changes)}.",
                section="/releases",
                canonical=f"/releases/{release.version}",
            ),
            changes=changes,
            groups=_groups(changes),
            options=_options(changes, flags),
            list_url=list_url(Filters(package=release.package, release=release.version)),
        )
    )


@router.get("/about")
def about_page(parts: PartsDep, pages: PagesDep) -> Response:
    """Say what this site is and how it knows what it says."""
    with parts.store.reading() as connection:
        counts = queries.counts(connection)
        packages = queries.packages(connection)
    head = Head(
        title=head_title("About"),
        description="Where the facts of this site come from, and what its words promise.",
        section="/about",
        canonical="/about",
    )
    return pages.response(AboutPage(head=head, counts=counts, packages=packages))


class OwnerConvertor(Convertor[str]):
    """The owner of a repository in an address: not a name under which this site has other pages.

    Without it `GET /api/identify` would be an unknown package (404) and not a wrong method (405).
    """

    regex = r"(?!(?:api|errors|flags|releases|static)/)[A-Za-z0-9][A-Za-z0-9._-]*"

    def convert(self, value: str) -> str:
        """Return the owner."""
        return value

    def to_string(self, value: str) -> str:
        """Return the segment of an address."""
        return value


register_url_convertor("owner", OwnerConvertor())
# Registered last by create_app: two path segments of any name would also fit pages of other routes.
package_router = APIRouter(include_in_schema=False)


@package_router.get("/{owner:owner}/{name}")
def package_page(owner: str, name: str, parts: PartsDep, pages: PagesDep) -> Response:
    """Show a package."""
    with parts.store.reading() as connection:
        package = queries.package(connection, owner, name)
    head = Head(
        title=head_title(f"{package.name}: errors"),
        description=f"{package.records:,} errors of {package.name} in {len(package.releases)} releases.",
        section="/errors",
        canonical=f"/{package.repository}",
        json=list_url(Filters(package=package.name), path="/api/errors"),
    )
    return pages.response(
        PackagePage(
            head=head,
            package=package,
            list_url=list_url(Filters(package=package.name)),
            links=tuple(
                (title, _facet_links(package, dimension))
                for dimension, title in (("exception", "By exception"), ("module", "By module"), ("flag", "By flag"))
                if package.facets.get(dimension)
            ),
        )
    )


def _facet_links(package: Package, dimension: str) -> tuple[tuple[str, int, str], ...]:
    values = list(package.facets[dimension].items())[:20]
    return tuple(
        (value, count, list_url(Filters(**{"package": package.name, dimension: value}))) for value, count in values
    )


def _options(changes: ReleaseChanges, pages: Collection[str]) -> tuple[OptionGroup, ...]:
    """Return what the release changed in its options; nothing where those of it or of the one before are not known."""
    if changes.release.package != PACKAGE or not changes.before:
        return ()
    before, after = released.read(changes.before), released.read(changes.release.version)
    return option_groups(released.changes(before, after), pages) if before and after else ()


def _groups(changes: ReleaseChanges) -> tuple[Group, ...]:
    before = changes.before or "the release before"
    return (
        Group(
            "New", "new", changes.counts.get("new", 0), tuple(map(row, changes.new)), f"Nothing that {before} lacks."
        ),
        Group("Reworded", "reworded", changes.counts.get("reworded", 0), tuple(map(row, changes.reworded)), "None."),
        Group("Moved", "moved", changes.counts.get("moved", 0), tuple(map(row, changes.moved)), "None."),
        Group("Removed", "removed", changes.counts.get("removed", 0), tuple(map(row, changes.removed)), "None."),
    )


def _summary(changes: ReleaseChanges) -> str:
    return ", ".join(f"{changes.counts.get(name, 0):,} {name}" for name in ("new", "reworded", "moved", "removed"))
