"""Static files: read once, named after their content, so that a reader's browser may keep them for ever."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
# Not hashed: a name that browsers and crawlers ask for by convention would be in this list.
IMMUTABLE = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """One static file. `url` holds a hash of `body`."""

    url: str
    media_type: str
    body: bytes


class Assets:
    """The static files by plain name ("site.css") and by address."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._by_name = {name: _asset(name, body) for name, body in files.items()}
        self._by_url = {asset.url: asset for asset in self._by_name.values()}

    def url(self, name: str) -> str:
        """Return the address of a file by its plain name."""
        return self._by_name[name].url

    def served(self, url: str) -> Asset | None:
        """Return the file at an address."""
        return self._by_url.get(url)


def load(folder: Path = FOLDER) -> Assets:
    """Read every file of the folder that has a known media type; style sheets lose what only authors need."""
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in MEDIA_TYPES}
    return Assets({name: squeezed(body) if name.endswith(".css") else body for name, body in files.items()})


_COMMENT = re.compile(rb"/\*.*?\*/", re.DOTALL)
_BLANKS = re.compile(rb"\s+")
# After a colon only: before one a blank means "any descendant".
_LOOSE = re.compile(rb" ?([{};,>]) ?|(:) ")


def squeezed(sheet: bytes) -> bytes:
    """Return a style sheet without comments and needless blanks (its strings hold none of `{};,>`)."""
    sheet = _BLANKS.sub(b" ", _COMMENT.sub(b"", sheet)).strip()
    return _LOOSE.sub(lambda match: match[1] or match[2], sheet).replace(b";}", b"}")


def _asset(name: str, body: bytes) -> Asset:
    path = Path(name)
    digest = blake2b(body, digest_size=5).hexdigest()
    return Asset(f"/static/{path.stem}.{digest}{path.suffix}", MEDIA_TYPES[path.suffix], body)
