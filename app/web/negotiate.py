"""Which form of a resource a client wants: the Accept header with its q-values (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Sequence

MAX_HEADER_LENGTH = 2_000


def best(accept: str, offered: Sequence[str]) -> str:
    """Return the media type of `offered` that the header prefers; the first where it has no preference.

    A client that accepts none of them gets the first too: an answer it can look at beats a 406.
    """
    ranges = _ranges(accept[:MAX_HEADER_LENGTH])
    if not ranges:
        return offered[0]
    return max(offered, key=lambda media_type: (_quality(media_type, ranges), -offered.index(media_type)))


def _ranges(accept: str) -> list[tuple[str, float]]:
    found = []
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if "/" not in name:
            continue
        quality = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                quality = _number(value.strip())
        found.append((name, quality))
    return found


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0.0 <= value <= 1.0 else 0.0


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the q-value of the most specific range that covers the type; 0 where none does."""
    family = media_type.partition("/")[0] + "/*"
    for wanted in (media_type, family, "*/*"):
        values = [quality for name, quality in ranges if name == wanted]
        if values:
            return max(values)
    return 0.0
