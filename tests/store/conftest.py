"""A small package with a life: what store, records and commands are tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.lineage.ledger import Ledger
from app.mine.model import MinedRelease, Site, Template, Variant
from app.records.load import load
from app.records.model import CuratedRecord
from app.store import migrate
from app.store.engine import Store
from app.store.ingest import Outcome, PackageInput, ingest
from app.store.origin import Origin

ORIGIN = Origin("demo", "acme/demo", "https://git.example", "python/", "v{version}", "MIT")


def template(text: str) -> Template:
    """Return the template of a text whose holes are in braces (no brace within a hole)."""
    parts: list[str] = []
    for chunk in text.split("{"):
        parts += chunk.split("}", 1) if parts else [chunk]
    return Template(tuple(parts))


def site(text: str = "", **values: Any) -> Site:
    """Return a site with plain values where none are given."""
    line = values.pop("line", 10)
    defaults: dict[str, Any] = {
        "kind": "raise",
        "exception": "ValueError",
        "path": "demo/core/pool.py",
        "function": "Pool.check",
        "statement": "raise ValueError(",
        "excerpt_line": max(1, line - 1),
        "excerpt": f"def check(self):\n    raise ValueError({text!r})\n",
    }
    return Site(**(defaults | values), template=template(text), line=line, end_line=line + 1)


def release(version: str, *sites: Site, **values: Any) -> MinedRelease:
    """Return a release of these sites."""
    defaults: dict[str, Any] = {"sha256": version.ljust(64, "0"), "files": 3, "lines": 100, "failed": (), "options": {}}
    ordered = tuple(sorted(sites, key=lambda s: (s.path, s.line)))
    return MinedRelease(package="demo", version=version, sites=ordered, **(defaults | values))


POOL = "--unified-memory is not supported for {model.name}: it has no recurrent layer."
REWORDED = "--unified-memory is not supported for {model.name}: the model has no recurrent layer."
GONE = "Speculative decoding needs --unified-memory off, found draft {draft!r}"


def releases() -> list[MinedRelease]:
    """Return three releases: one error is reworded, one goes, one comes, one moves to another file."""
    options = {"unified_memory": ("--unified-memory", "--um")}
    flags = ("--unified-memory",)
    helper = site(
        "{message}",
        line=90,
        function="fail",
        exception="RuntimeError",
        variants=(Variant(template("Out of memory: {n} tokens wanted"), "demo/core/pool.py", "Pool.alloc"),),
    )
    bare = site(kind="assert", exception="AssertionError", condition="size > 0", function="Pool.grow", line=60)
    moved = site("page size {p} does not divide {n}", path="demo/args.py", function="check_args", line=5)
    guarded = {"guards": ("self.unified_memory", "not (model.recurrent)"), "flags": flags}
    return [
        release(
            "1.0",
            site(POOL, line=20, **guarded),
            site(GONE, line=30, flags=flags),
            helper,
            bare,
            moved,
            options=options,
        ),
        release(
            "1.1",
            site(POOL, line=25, **guarded),
            site(GONE, line=36, flags=flags),
            helper,
            bare,
            site("page size {p} does not divide {n}", path="demo/hooks/args.py", function="check_args", line=7),
            options=options,
            failed=(("demo/broken.py", "line 3: invalid syntax"),),
        ),
        release(
            "1.2",
            site(REWORDED, line=25, **guarded),
            helper,
            bare,
            site("page size {p} does not divide {n}", path="demo/hooks/args.py", function="check_args", line=7),
            site("unknown dtype {dtype}", line=70, function="Pool.dtype", kind="message", exception=""),
            options=options,
        ),
    ]


def trigger(site: Site) -> str | None:
    """Stand for the miner's wording."""
    return f"Raised when {site.guards[0]}." if site.guards else None


def package(mined: list[MinedRelease], **values: Any) -> PackageInput:
    """Return the input of an ingest."""
    defaults: dict[str, Any] = {
        "origin": ORIGIN,
        "releases": tuple(mined),
        "release_keys": {one.version: f"key {one.version}" for one in mined},
        "curated": (),
        "ledger": Ledger(),
        "key": "key " + " ".join(one.version for one in mined),
        "strict": False,
        "trigger": trigger,
    }
    return PackageInput(**(defaults | values))


def quiet(_stage: str, _done: int, _total: int) -> None:
    """Show nothing."""


def put(store: Store, mined: list[MinedRelease], **values: Any) -> Outcome:
    """Ingest these releases."""
    return ingest(store, package(mined, **values), quiet)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty database with the newest schema."""
    made = Store(f"sqlite:///{tmp_path / 'test.db'}")
    migrate.upgrade(made)
    yield made
    made.close()


@pytest.fixture
def filled(store: Store) -> Store:
    """A database with the three releases of `releases`."""
    put(store, releases())
    return store


CURATED = """+++
id = "{id}"
package = "demo"
kind = "raise"
exception = "ValueError"
message = "{message}"
function = "Pool.check"
title = "Unified memory needs a recurrent model"
status = "reviewed"

[source]
ref = "abc1234567"
ref_date = "2026-08-28"
path = "python/demo/core/pool.py"
line = 24
end_line = 26

[provenance]
analysis = "AI-assisted"
report_url = "https://git.example/report"

[example]
before = \"\"\"
demo serve --unified-memory
\"\"\"
after = \"\"\"
demo serve
\"\"\"
engines = ["1.1"]
{related}
+++

## Meaning

The unified pool holds recurrent state, and this model
has none.

## Trigger

`--unified-memory` with an attention-only model.

## Situations

- A launch script is used again
  for another model.
- The flag was copied.

## Solutions

1. Drop `--unified-memory`.
2. Choose a hybrid model,
   such as the small one.

## Defence

### Strategy

validation

### Code

```python
## not a heading
if unified and not recurrent:
    raise SystemExit("drop it")
```

### Prevention

- Check the model's configuration first.
"""


@pytest.fixture
def curated(tmp_path: Path) -> Callable[..., CuratedRecord]:
    """Write and load a curated record of the demo package."""

    def write(record_id: str = "00000000000000aa", message: str = POOL, related: str = "") -> CuratedRecord:
        folder = tmp_path / "errors" / "demo"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{record_id}-unified-memory.md"
        text = CURATED.replace("{id}", record_id).replace("{message}", message).replace("{related}", related)
        path.write_text(text)
        return load(path)

    return write
