"""The page of the API: the OpenAPI document as plain HTML, without anybody's script or style."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.web.frame import Head, head_title

METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation."""

    name: str
    place: str
    type: str
    required: bool
    description: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `body` names the schema of its request body, "" where it has none."""

    method: str
    path: str
    anchor: str
    summary: str
    body: str
    parameters: tuple[Parameter, ...]
    responses: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a schema."""

    name: str
    type: str
    required: bool
    description: str


@dataclass(frozen=True, slots=True)
class Schema:
    """One schema of the document."""

    name: str
    description: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class ApiPage:
    """`/api`. Fields are the names that `templates/pages/api.html` uses."""

    head: Head
    operations: tuple[Operation, ...]
    schemas: tuple[Schema, ...]


def api_page(document: Mapping[str, Any]) -> ApiPage:
    """Return the page of an OpenAPI document."""
    operations = tuple(
        _operation(method, path, item[method])
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    )
    schemas = document.get("components", {}).get("schemas", {})
    return ApiPage(
        head=Head(
            title=head_title("API"),
            description="Every record, list, identification and check of this site as JSON.",
            section="/api",
            canonical="/api",
            json="/openapi.json",
        ),
        operations=operations,
        schemas=tuple(_schema(name, schema) for name, schema in sorted(schemas.items())),
    )


def _operation(method: str, path: str, item: Mapping[str, Any]) -> Operation:
    body = item.get("requestBody", {}).get("content", {})
    return Operation(
        method=method.upper(),
        path=path,
        anchor=item.get("operationId", f"{method}-{path}"),
        summary=item.get("description") or item.get("summary", ""),
        body=", ".join(f"{media}: {type_of(content.get('schema', {}))}" for media, content in body.items()),
        parameters=tuple(_parameter(parameter) for parameter in item.get("parameters", ())),
        responses=tuple(_response(status, response) for status, response in item.get("responses", {}).items()),
    )


def _parameter(item: Mapping[str, Any]) -> Parameter:
    schema = item.get("schema", {})
    return Parameter(
        name=item["name"],
        place=item["in"],
        type=type_of(schema),
        required=item.get("required", False),
        description=item.get("description") or _limits(schema),
    )


def _response(status: str, item: Mapping[str, Any]) -> tuple[str, str, str]:
    kinds = {type_of(content.get("schema", {})) for content in item.get("content", {}).values()}
    return status, item.get("description", ""), ", ".join(sorted(kinds - {""}))


def _schema(name: str, schema: Mapping[str, Any]) -> Schema:
    required = set(schema.get("required", ()))
    members = tuple(
        Member(member, type_of(item), member in required, item.get("description", ""))
        for member, item in schema.get("properties", {}).items()
    )
    return Schema(name, schema.get("description", ""), members)


def type_of(schema: Mapping[str, Any]) -> str:
    """Return a JSON schema in a few words: "array of Solution", "string or null"."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(type_of(option) for option in schema[key]))
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    kind = str(schema.get("type", ""))
    if kind == "array":
        items = schema.get("items", {})
        return f"array of {type_of(items)}" if items else "array"
    return kind


def _limits(schema: Mapping[str, Any]) -> str:
    words = []
    if "minimum" in schema and "maximum" in schema:
        words.append(f"{schema['minimum']} to {schema['maximum']}")
    if "maxLength" in schema:
        words.append(f"at most {schema['maxLength']:,} characters")
    if "default" in schema and schema["default"] not in {"", None}:
        words.append(f"else {schema['default']}")
    return "; ".join(words)
