"""Record pages rendered ahead of their first reader, and when such a page may still be served.

A page costs milliseconds to render and microseconds to read. `prerender` is called after an ingest; a page is kept
under a fingerprint of everything it was made from (code, templates, static files, libraries, the site's address, the
licences, its document), so that a stale one is never served: it is simply not found, and rendered when asked for.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from hashlib import blake2b
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from app.processes import end_with_parent
from app.store import document as document_module
from app.store import pages as kept
from app.store.document import (
    Change,
    Defence,
    Document,
    Example,
    Excerpt,
    History,
    PackageName,
    Place,
    Provenance,
    Related,
    Solution,
    Source,
    Verified,
)
from app.store.engine import Store
from app.store.pages import KeptPage, RecordReader
from app.store.queries import StoredDocument
from app.web import assets, frame
from app.web.assets import Assets
from app.web.frame import TEMPLATES, Site
from app.web.pages import Pages
from app.web.record import record_page

PAGE_KIND = "record"
LIBRARIES = ("jinja2", "markdown-it-py", "markupsafe", "pygments")
_CODE = Path(__file__).parent
_CHUNK = 50
_COMMIT = 20
_DICTIONARY_LENGTH = 32 * 1024
# Level 4 is twice as fast as 6 and, with the dictionary, 4 % larger.
_LEVEL = 4


class RecordRenderer:
    """Renders record pages as they stand at their plain address, and packs them for keeping."""

    def __init__(self, site: Site, licences: Mapping[str, str], *, files: Assets | None = None) -> None:
        self._files = files or assets.load()
        self._pages = Pages(frame.environment(site, self._files))
        self._licences = dict(licences)
        self._site = site

    def html(self, body: bytes) -> bytes:
        """Return the page of a stored document."""
        document = Document.model_validate_json(body)
        page = record_page(document, licence=self._licences.get(document.package.name, ""))
        return self._pages.html(page).encode()

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest of everything but the document that a page is made from."""
        digest = blake2b(digest_size=12)
        sources = [*sorted(_CODE.rglob("*.py")), Path(document_module.__file__), *sorted(TEMPLATES.rglob("*.html"))]
        for path in sources:
            digest.update(path.read_bytes())
        known = [self._site.url, *(self._files.url(name) for name in ("site.css", "site.js", "icon.svg"))]
        known += [f"{name} {version(name)}" for name in LIBRARIES]
        known += [f"{name} {licence}" for name, licence in sorted(self._licences.items())]
        digest.update("\n".join(known).encode())
        return digest.hexdigest()

    def pack(self, stored: StoredDocument) -> tuple[str, str, bytes]:
        """Return the row to keep: id, fingerprint, compressed page."""
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=self._dictionary)
        packed = packer.compress(self.html(stored.body)) + packer.flush()
        return stored.id, f"{self.fingerprint}:{stored.etag}", packed

    def unpack(self, page: KeptPage) -> bytes | None:
        """Return the HTML of a kept page; None where it was made from something else."""
        if page.fingerprint != f"{self.fingerprint}:{page.etag}":
            return None
        return zlib.decompressobj(-zlib.MAX_WBITS, zdict=self._dictionary).decompress(page.body)

    @cached_property
    def _dictionary(self) -> bytes:
        """Return what pages have in common: a specimen with every section. Same code, same bytes; never stored."""
        html = self._pages.html(record_page(specimen(), licence="Apache-2.0")).encode()
        return html[-_DICTIONARY_LENGTH:]


def prerender(
    store: Store,
    site: Site,
    *,
    processes: int = 0,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> int:
    """Render and keep every record page that is not kept yet; return how many were rendered.

    Shape: `processes` 0 is one a core; `progress` is told (done, all). Killed in between, it has kept what was
    done, and the next call goes on from there.
    """
    with store.reading() as connection:
        licences = kept.licences(connection)
        fingerprint = RecordRenderer(site, licences).fingerprint
        waiting = kept.stale(connection, kind=PAGE_KIND, fingerprint=fingerprint)
    if waiting:
        workers = min(processes or os.cpu_count() or 1, -(-len(waiting) // _CHUNK))
        with _mapping(workers, store.url, site, licences) as mapped:
            done = 0
            # A bounded number of pages is in flight, and each commit is short: a reader or another writer can go on.
            for start in range(0, len(waiting), _CHUNK * _COMMIT):
                chunks = list(_chunks(waiting[start : start + _CHUNK * _COMMIT]))
                rows = [row for packed in mapped(_pack, chunks) for row in packed]
                with store.writing() as writing:
                    kept.keep(writing, PAGE_KIND, rows)
                done += len(rows)
                progress(done, len(waiting))
    with store.writing() as writing:
        kept.drop_orphans(writing)
    return len(waiting)


_renderer: RecordRenderer | None = None
_reader: RecordReader | None = None


@contextmanager
def _mapping(workers: int, url: str, site: Site, licences: Mapping[str, str]) -> Iterator[Callable[..., Iterator[Any]]]:
    """Lend a `map` over processes; a single worker is this process, which a few pages need no other for."""
    if workers > 1:
        with ProcessPoolExecutor(
            workers, get_context("spawn"), initializer=_start, initargs=(url, site, licences)
        ) as pool:
            yield pool.map
        return
    _start(url, site, licences)
    try:
        yield map
    finally:
        if _reader is not None:
            _reader.close()


def _start(url: str, site: Site, licences: Mapping[str, str]) -> None:
    global _renderer, _reader  # noqa: PLW0603
    end_with_parent()
    _renderer = RecordRenderer(site, licences)
    _reader = RecordReader(Store(url))


def _pack(ids: Sequence[str]) -> list[tuple[str, str, bytes]]:
    assert _renderer is not None and _reader is not None
    documents = map(_reader.document, ids)
    return [_renderer.pack(stored) for stored in documents if stored is not None]


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]


def specimen() -> Document:
    """Return a document that shows every section of the page: what pages have in common."""
    excerpt = "\n".join(
        f"    {line}"
        for line in (
            "def name(self, value: int | None = None) -> None:",
            "    if not isinstance(value, int) or value is None:",
            '        raise ValueError(f"expected {value!r}")',
            "    elif self.server_args.value == 0:",
            "        return None",
        )
    )
    place = Place(version="0.5.18", path="python/a.py", line=3, end_line=3, function="A.f", url="https://github.com/")
    verified = Verified(engine="0.5.18", run="pass", date="2026-12-01", hardware="h100-80gb")
    return Document(
        id="0" * 16,
        url="/errors/" + "0" * 16,
        slug="specimen",
        aliases=("1" * 16,),
        package=PackageName(name="sglang", repository="sgl-project/sglang"),
        kind="raise",
        exception="ValueError",
        title="Specimen",
        message="expected {value!r}",
        parts=("expected ", "value!r", ""),
        module="sglang/srt/a.py",
        status="mined",
        meaning="What it means.",
        trigger="It is raised when `a` and not `b`.",
        situations=("A situation.",),
        source=Source(
            path="python/sglang/srt/a.py",
            line=3,
            end_line=3,
            function="A.f",
            ref="v0.5.18",
            url="https://github.com/sgl-project/sglang/blob/v0.5.18/python/sglang/srt/a.py#L3",
            excerpt=Excerpt(ref="v0.5.18", start_line=1, text=excerpt),
        ),
        guards=("not (a)", "b"),
        flags=("--a",),
        solutions=(Solution(text="Upgrade.", derived=True, verified=(verified,)),),
        example=Example(before="python -m sglang.launch_server --a", after="python -m sglang.launch_server"),
        defence=Defence(strategy="validation", code="if a:\n    raise ValueError", prevention=("Check.",)),
        history=History(
            first="0.5.17",
            first_is_bound=True,
            last="0.5.18",
            gone_since=None,
            releases=(place,),
            changes=(Change(version="0.5.18", what="moved", detail="file"), Change(version="0.5.18", what="reworded")),
            ingested=("0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23"),
        ),
        related=(Related(id="1" * 16, title="Other", exception="ValueError", why="same function"),),
        provenance=Provenance(
            analysis="derived", source="sgl-project/sglang@v0.5.18", report_url="https://github.com/"
        ),
    )
