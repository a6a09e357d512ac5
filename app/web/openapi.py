"""The OpenAPI document: FastAPI's, with errors described as what they are, RFC 9457 problem documents."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.web.problems import MEDIA_TYPE, Problem

_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
# FastAPI describes its own form of a validation error, which no answer here has.
_NOT_OURS = ("HTTPValidationError", "ValidationError")


def openapi(app: FastAPI) -> dict[str, Any]:
    """Return the document of an application; it is made once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in _NOT_OURS:
            schemas.pop(name, None)
        schemas.setdefault("Problem", Problem.model_json_schema())
        for item in document["paths"].values():
            for operation in item.values():
                _describe_problems(operation["responses"])
        app.openapi_schema = document
    return app.openapi_schema


def _describe_problems(responses: dict[str, Any]) -> None:
    for status, response in responses.items():
        if status.startswith(("4", "5")):
            response["content"] = _PROBLEM
    responses["default"] = {"description": "Any other error", "content": _PROBLEM}
