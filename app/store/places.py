"""Which record stands at a place of one release: how a raise that really happened finds its record."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

_AT = text(
    "SELECT record.id, record.title, record.exception, record.status, site.function, site.line "
    "FROM release JOIN package ON package.id = release.package_id "
    "JOIN site ON site.release_id = release.id JOIN record ON record.key = site.record_key "
    "WHERE package.name = :package AND release.version = :version AND site.path = :path "
    "AND site.line <= :line AND site.end_line >= :line "
    "ORDER BY site.line DESC, record.key"
)


@dataclass(frozen=True, slots=True)
class RecordAt:
    """The record of a place."""

    id: str
    title: str
    exception: str
    status: str

    @property
    def url(self) -> str:
        """Return the record's address."""
        return f"/errors/{self.id}"


def record_at(
    connection: Connection,
    *,
    version: str,
    path: str,
    line: int,
    function: str,
    exception: str = "",
    package: str = "sglang",
) -> RecordAt | None:
    """Return the record of the statement at a place of one release; None where nothing is recorded there.

    Shape: `path` is relative to the folder that holds the package ("sglang/srt/x.py"), `line` is any line of the
           statement, `function` its qualified or bare name. Of several statements on the line the innermost with
           this `exception` is preferred.
    """
    rows = connection.execute(_AT, {"package": package, "version": version, "path": path, "line": line}).all()
    bare = function.rpartition(".")[2]
    fitting = [row for row in rows if row.function.rpartition(".")[2] == bare]
    best = next((row for row in fitting if row.exception == exception), fitting[0] if fitting else None)
    return None if best is None else RecordAt(best.id, best.title, best.exception, best.status)


_UNDER = text(
    "SELECT record.id, record.exception, record.title, site.path, site.line, site.end_line, site.function "
    "FROM release JOIN package ON package.id = release.package_id "
    "JOIN site ON site.release_id = release.id JOIN record ON record.key = site.record_key "
    "WHERE package.name = :package AND release.version = :version AND record.kind != 'message' "
    "AND site.path LIKE :under ESCAPE '!' ORDER BY site.path, site.line, record.key"
)


@dataclass(frozen=True, slots=True)
class RaisedAt:
    """A raise or assert statement of one release, and its record."""

    record: str
    exception: str
    title: str
    path: str
    line: int
    end_line: int
    function: str


def raised_under(connection: Connection, *, version: str, folder: str, package: str = "sglang") -> list[RaisedAt]:
    """Return the raise and assert statements of a release below a folder, by path and line."""
    like = folder.replace("!", "!!").replace("_", "!_").replace("%", "!%")
    rows = connection.execute(_UNDER, {"package": package, "version": version, "under": f"{like}%"})
    return [RaisedAt(r.id, r.exception, r.title, r.path, r.line, r.end_line, r.function) for r in rows]
