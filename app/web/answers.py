"""Answers that several routes give: JSON by orjson, Markdown, and links to what is near an unknown path."""

from __future__ import annotations

import re
from typing import Any

import orjson
from starlette.responses import Response

from app.store import queries
from app.store.engine import Store
from app.web.frame import Link

MARKDOWN = "text/markdown; charset=utf-8"
_WORD = re.compile(r"[A-Za-z0-9_.-]{2,60}")
_MOST_WORDS = 6


def json(body: Any) -> Response:
    """Return a value as a JSON answer."""
    return Response(orjson.dumps(body), media_type="application/json")


def markdown(text: str) -> Response:
    """Return Markdown."""
    return Response(text, media_type=MARKDOWN, headers={"vary": "accept"})


def near(store: Store, path: str) -> tuple[Link, ...]:
    """Return links to what the words of an unknown path could have meant; empty where nothing is near."""
    words = _WORD.findall(path.replace("-", " "))[:_MOST_WORDS]
    if not words:
        return ()
    with store.reading() as connection:
        # All words together first; else the last one that means something: the end of a path says the most.
        for text in dict.fromkeys((" ".join(words), *reversed(words))):
            if found := queries.suggestions(connection, text, limit=6):
                return tuple(Link(suggestion.text, suggestion.url) for suggestion in found)
    return ()
