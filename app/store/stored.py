"""Sites as rows and back: what the database holds of a release is enough to build its records again."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Connection

from app.mine.model import MinedRelease, Site, Template, Variant
from app.store import sqlite


def wording(site: Site) -> str:
    """Return everything of a site but its place and excerpt, as JSON."""
    return orjson.dumps(
        {
            "kind": site.kind,
            "exception": site.exception,
            "parts": site.template.parts,
            "statement": site.statement,
            "condition": site.condition,
            "guards": site.guards,
            "flags": site.flags,
            "variants": [(v.template.parts, v.path, v.function) for v in site.variants],
        }
    ).decode()


def packed_excerpt(text: str) -> bytes:
    """Return an excerpt as it is stored."""
    return zlib.compress(text.encode(), 6)


def unpacked_excerpt(body: bytes) -> str:
    """Return the excerpt that `packed_excerpt` wrote."""
    return zlib.decompress(body).decode()


def storable(site: Site) -> Site:
    """Return the site with lone surrogates written as escapes: neither JSON nor a text column can hold them."""
    try:
        wording(site)
        site.excerpt.encode()
    except (TypeError, UnicodeEncodeError):
        return _escaped(site)
    return site


def mined_release(connection: Connection, package: str, version: str) -> MinedRelease:
    """Return a stored release as mining gave it. The release must be there."""
    row = sqlite.query_rows(
        connection,
        "SELECT l.id, l.sha256, l.files, l.lines, l.failed, l.options, l.omitted FROM release AS l "
        "JOIN package AS p ON p.id = l.package_id WHERE p.name = ? AND l.version = ?",
        (package, version),
    )[0]
    release_id, sha256, files, lines, failed, options, omitted = row
    return MinedRelease(
        package=package,
        version=version,
        sha256=sha256,
        files=files,
        lines=lines,
        failed=tuple((path, why) for path, why in orjson.loads(failed)),
        options={name: tuple(strings) for name, strings in orjson.loads(options).items()},
        sites=_sites(connection, release_id),
        omitted=orjson.loads(omitted),
    )


def _sites(connection: Connection, release_id: int) -> tuple[Site, ...]:
    rows = sqlite.query_rows(
        connection,
        "SELECT s.path, s.line, s.end_line, s.function, w.body, s.excerpt_line, e.body FROM site AS s "
        "JOIN wording AS w ON w.id = s.wording_id JOIN excerpt AS e ON e.id = s.excerpt_id "
        "WHERE s.release_id = ? ORDER BY s.path, s.line, s.end_line, s.record_key",
        (release_id,),
    )
    return tuple(map(_site, rows))


def _site(row: tuple[str, int, int, str, str, int, bytes]) -> Site:
    path, line, end_line, function, body, excerpt_line, excerpt = row
    values = read_wording(body)
    return Site(
        **values,
        path=path,
        function=function,
        line=line,
        end_line=end_line,
        excerpt_line=excerpt_line,
        excerpt=unpacked_excerpt(excerpt),
    )


def read_wording(body: str) -> Mapping[str, Any]:
    """Return the fields of `Site` that a wording holds."""
    values = orjson.loads(body)
    return {
        "kind": values["kind"],
        "exception": values["exception"],
        "template": Template(tuple(values["parts"])),
        "statement": values["statement"],
        "condition": values["condition"],
        "guards": tuple(values["guards"]),
        "flags": tuple(values["flags"]),
        "variants": tuple(Variant(Template(tuple(parts)), path, name) for parts, path, name in values["variants"]),
    }


def _escaped(site: Site) -> Site:
    return Site(
        kind=site.kind,
        exception=_plain(site.exception),
        template=_plain_template(site.template),
        path=_plain(site.path),
        function=_plain(site.function),
        line=site.line,
        end_line=site.end_line,
        statement=_plain(site.statement),
        condition=_plain(site.condition),
        guards=tuple(map(_plain, site.guards)),
        flags=tuple(map(_plain, site.flags)),
        variants=tuple(Variant(_plain_template(v.template), _plain(v.path), _plain(v.function)) for v in site.variants),
        excerpt_line=site.excerpt_line,
        excerpt=_plain(site.excerpt),
    )


def _plain_template(template: Template) -> Template:
    return Template(tuple(map(_plain, template.parts)))


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
