"""An identification as the body of `POST /api/identify`."""

from __future__ import annotations

from typing import Any

from app.match.log import Block
from app.match.model import Identification, Match


def body(found: Identification) -> dict[str, Any]:
    """Return what the API answers and `errata identify --format json` prints."""
    return {
        "matches": [_match(match) for match in found.matches],
        "blocks": [_block(block) for block in found.blocks],
        "looks_like": found.looks_like or None,
    }


def _match(match: Match) -> dict[str, Any]:
    return {
        "id": match.record_id,
        "url": match.url,
        "title": match.title,
        "exception": match.exception,
        "message": match.message,
        "score": match.score,
        "values": dict(match.values),
        "evidence": list(match.evidence),
        "reasons": list(match.reasons),
        "also": list(match.also),
        "wrapper": match.wrapper,
    }


def _block(block: Block) -> dict[str, Any]:
    return {
        "exception": block.exception,
        "message": block.message,
        "frames": [{"path": f.path, "line": f.line, "function": f.function, "source": f.source} for f in block.frames],
        "chained": block.chained,
    }
