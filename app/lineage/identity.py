"""Site ids: the name of an error site within one release, made only from what the site is."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from app.mine.model import Site, Template

_SPACE = re.compile(r"\s+")
_LENGTH = 16
Key = tuple[str, ...]


def identity_text(site: Site) -> str:
    """Return the text that identifies a site: its template, or the condition of a bare assert.

    Formatting carries no meaning and is folded: a run of white space in a literal counts as one space, holes and
    conditions lose white space and the difference between the quotes.
    """
    return folded(site.template) if site.template else folded_code(site.condition)


def folded(template: Template) -> str:
    """Return a template's text with formatting folded, as `identity_text` says."""
    parts = template.parts
    return "".join(_SPACE.sub(" ", p) if i % 2 == 0 else "{" + folded_code(p) + "}" for i, p in enumerate(parts))


def folded_code(source: str) -> str:
    """Return an expression without white space and with one kind of quote."""
    return _SPACE.sub("", source).replace('"', "'")


def site_ids(repository: str, sites: Sequence[Site]) -> list[str]:
    """Return the ids of one release's sites, in their order; no two are equal.

    Shape: 16 hex digits of SHA-256 over repository, exception, text and function. Sites that share those also take
    their path, then their innermost guard, then their ordinal among equals by line.
    Source: docs/decisions/0001-identity.md
    """
    keys: list[Key] = [(repository, site.exception, identity_text(site), site.function) for site in sites]
    keys = _refined(keys, range(len(sites)), lambda i: sites[i].path)
    keys = _refined(keys, range(len(sites)), lambda i: _innermost(sites[i]))
    keys = _numbered(keys, sites)
    return [hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH] for key in keys]


def _refined(keys: list[Key], indices: Iterable[int], detail: Callable[[int], str]) -> list[Key]:
    """Return the keys, lengthened by a detail where several sites share one."""
    counts = Counter(keys)
    return [(*keys[i], detail(i)) if counts[keys[i]] > 1 else keys[i] for i in indices]


def _innermost(site: Site) -> str:
    return folded_code(site.guards[-1]) if site.guards else ""


def _numbered(keys: list[Key], sites: Sequence[Site]) -> list[Key]:
    """Return the keys, the second and later of equals with their ordinal: the first keeps the plain key."""
    groups = defaultdict(list)
    for i, key in enumerate(keys):
        groups[key].append(i)
    numbered = list(keys)
    for key, members in groups.items():
        for ordinal, i in enumerate(sorted(members, key=lambda i: (sites[i].line, sites[i].end_line, i))):
            numbered[i] = (*key, f"#{ordinal}") if ordinal else key
    return numbered
