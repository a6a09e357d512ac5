"""Every read of the database, as frozen values of `values.py`. A function takes the connection of `Store.reading()`."""

from __future__ import annotations

from app.store.catalogue import counts, flag, flags, package, packages, release, releases, repository
from app.store.facets import DIMENSIONS as FACETS
from app.store.lists import MAX_LIMIT, records, suggestions
from app.store.reads import canonical, document, generation, site_history, summaries
from app.store.signatures import signatures
from app.store.values import (
    Counts,
    Filters,
    Flag,
    Package,
    Page,
    Release,
    ReleaseChanges,
    Seen,
    Signature,
    SitePlace,
    StoredDocument,
    Suggestion,
    Summary,
)

__all__ = [
    "FACETS",
    "MAX_LIMIT",
    "Counts",
    "Filters",
    "Flag",
    "Package",
    "Page",
    "Release",
    "ReleaseChanges",
    "Seen",
    "Signature",
    "SitePlace",
    "StoredDocument",
    "Suggestion",
    "Summary",
    "canonical",
    "counts",
    "document",
    "flag",
    "flags",
    "generation",
    "package",
    "packages",
    "records",
    "release",
    "releases",
    "repository",
    "signatures",
    "site_history",
    "suggestions",
    "summaries",
]
