"""The life of a record: places and changes across the ingested releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from app.lineage.identity import folded_code, identity_text
from app.mine.model import Site
from app.store.document import Change, Detail, History, Place
from app.store.origin import Origin

_GUARD_LIMIT = 2000


def history(origin: Origin, ingested: Sequence[str], sites: Mapping[int, Site]) -> History:
    """Return the history of one record. `sites` maps the index of a release in `ingested` to its site there."""
    present = sorted(sites)
    if not present:
        return History(
            first=None,
            first_is_bound=False,
            last=None,
            gone_since=None,
            releases=(),
            changes=(),
            ingested=tuple(ingested),
        )
    last = present[-1]
    return History(
        first=ingested[present[0]],
        first_is_bound=present[0] == 0,
        last=ingested[last],
        gone_since=ingested[last + 1] if last + 1 < len(ingested) else None,
        releases=tuple(_place(origin, ingested[r], sites[r]) for r in present),
        changes=tuple(_changes(origin, ingested, sites, present)),
        ingested=tuple(ingested),
    )


def _place(origin: Origin, version: str, site: Site) -> Place:
    return Place(
        version=version,
        path=origin.repository_path(site.path),
        line=site.line,
        end_line=site.end_line,
        function=site.function,
        url=origin.link(origin.ref(version), site.path, site.line),
    )


def _changes(
    origin: Origin, ingested: Sequence[str], sites: Mapping[int, Site], present: Sequence[int]
) -> Iterator[Change]:
    for before, after in pairwise(present):
        if after > before + 1:
            yield Change(version=ingested[before + 1], what="gone")
            yield Change(version=ingested[after], what="back")
        yield from _differences(origin, ingested[after], sites[before], sites[after])
    if present[-1] + 1 < len(ingested):
        yield Change(version=ingested[present[-1] + 1], what="gone")


def _differences(origin: Origin, version: str, old: Site, new: Site) -> Iterator[Change]:
    detail = move(old, new)
    if detail == "line":
        yield Change(version=version, what="moved", detail=detail, old=str(old.line), new=str(new.line))
    elif detail is not None:
        yield Change(version=version, what="moved", detail=detail, old=_at(origin, old), new=_at(origin, new))
    if reworded(old, new):
        yield Change(version=version, what="reworded", old=_said(old), new=_said(new))
    if guard_changed(old, new):
        yield Change(version=version, what="guard changed", old=_guards(old), new=_guards(new))


def move(old: Site, new: Site) -> Detail | None:
    """Return the greatest move between two releases: file, then function, then line."""
    if old.path != new.path:
        return "file"
    if old.function != new.function:
        return "function"
    return "line" if old.line != new.line else None


def reworded(old: Site, new: Site) -> bool:
    """Tell whether the text or the exception differs; formatting does not count."""
    return (old.exception, identity_text(old)) != (new.exception, identity_text(new))


def guard_changed(old: Site, new: Site) -> bool:
    """Tell whether the conditions differ under which control reaches the site."""
    return [folded_code(guard) for guard in old.guards] != [folded_code(guard) for guard in new.guards]


def _at(origin: Origin, site: Site) -> str:
    return f"{origin.repository_path(site.path)}, {site.function}"


def _said(site: Site) -> str:
    text = site.template.text if site.template else site.condition
    return f"{site.exception}: {text}" if site.exception else text


def _guards(site: Site) -> str:
    return "\n".join(site.guards)[:_GUARD_LIMIT]
