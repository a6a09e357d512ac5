"""Container manifests (compose, Kubernetes, JSON lists) to the command lines in them. Bounded and without construction.

YAML is read from its events, so no tag is honoured, no alias is expanded and no recursion happens; a manifest over the
bounds is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from app.errors import BadInput

NODE_LIMIT = 20_000
DEPTH_LIMIT = 40

Node = str | list["Node"] | dict[str, "Node"] | None
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEY = re.compile(r"(?:^|[{,])[ \t-]*(?:command|args|entrypoint|Cmd|Entrypoint)[ \t]*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Container:
    """The command of one container. `script` is set where it is one string that a shell-like splitter reads."""

    words: tuple[str, ...]
    script: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    image: str = ""
    kind: str = "kubernetes"


def looks_like_manifest(text: str) -> bool:
    """Say whether `text` is a JSON list or object or YAML with a command in it, rather than a shell line."""
    return text.lstrip().startswith(("[", "{")) or _KEY.search(text) is not None


def containers(text: str) -> list[Container]:
    """Return the containers of a manifest, in order.

    Raises: BadInput: it is neither JSON nor YAML, or over the bounds.
    """
    documents = _documents(text)
    if len(documents) == 1 and isinstance(documents[0], list) and all(isinstance(w, str) for w in documents[0]):
        return [Container(tuple(w for w in documents[0] if isinstance(w, str)), kind="list")]
    return [found for document in documents for found in _containers(document)]


def _documents(text: str) -> list[Node]:
    if text.lstrip().startswith(("[", "{")):
        try:
            return [_plain(json.loads(text, parse_int=str, parse_float=str, parse_constant=str))]
        except (ValueError, RecursionError):
            pass  # YAML's flow style looks the same
    try:
        return list(_from_events(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" on line {mark.line + 1}" if mark is not None else ""
        raise BadInput(
            f"This looks like a manifest, but is not YAML{where}: {getattr(error, 'problem', error)}"
        ) from None


def _plain(value: object) -> Node:
    """Return JSON as nodes, without recursion deeper than the limit."""
    count = 0

    def walk(item: object, depth: int) -> Node:
        nonlocal count
        count += 1
        if count > NODE_LIMIT or depth > DEPTH_LIMIT:
            raise BadInput(f"The manifest has more than {NODE_LIMIT} values or {DEPTH_LIMIT} levels.")
        if isinstance(item, dict):
            return {str(k): walk(v, depth + 1) for k, v in item.items()}
        if isinstance(item, list):
            return [walk(v, depth + 1) for v in item]
        if item is None or isinstance(item, str):
            return item
        return str(item).lower() if isinstance(item, bool) else str(item)

    return walk(value, 0)


def _from_events(text: str) -> Iterator[Node]:
    """Build plain nodes from YAML events. An alias is the node it names, or nothing while that is still open."""
    anchors: dict[str, Node] = {}
    stack: list[tuple[Node, str | None]] = []
    root: Node = None

    def put(node: Node) -> None:
        nonlocal root
        if not stack:
            root = node
            return
        parent, key = stack[-1]
        if isinstance(parent, list):
            parent.append(node)
        elif isinstance(parent, dict):
            if key is None:
                stack[-1] = (parent, node if isinstance(node, str) else "")
            else:
                parent[key] = node
                stack[-1] = (parent, None)

    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if count > NODE_LIMIT or len(stack) > DEPTH_LIMIT:
            raise BadInput(f"The manifest has more than {NODE_LIMIT} values or {DEPTH_LIMIT} levels.")
        if isinstance(event, yaml.ScalarEvent):
            if event.anchor:
                anchors[event.anchor] = event.value
            put(event.value)
        elif isinstance(event, yaml.AliasEvent):
            put(anchors.get(event.anchor or ""))
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            node: Node = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            put(node)
            if event.anchor:
                anchors[event.anchor] = None  # while it is open: no node contains itself
                stack.append((event.anchor, None))
            stack.append((node, None))
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            closed, _ = stack.pop()
            if stack and isinstance(stack[-1][0], str):
                anchors[str(stack.pop()[0])] = closed
        elif isinstance(event, yaml.DocumentEndEvent):
            yield root
            root = None


def _containers(document: Node) -> Iterator[Container]:
    """Walk `document` in order for mappings that carry a command. Shared nodes are looked at once."""
    seen: set[int] = set()
    pending: list[tuple[Node, bool]] = [(document, False)]
    while pending:
        node, service = pending.pop()
        if not isinstance(node, (dict, list)) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, list):
            pending.extend((item, service) for item in reversed(node))
            continue
        found = _container(node, compose=service)
        if found is not None:
            yield found
        pending.extend((value, key == "services" or service) for key, value in reversed(list(node.items())))


def _container(node: dict[str, Node], *, compose: bool) -> Container | None:
    merged = _merged(node)
    entry = merged.get("entrypoint", merged.get("Entrypoint"))
    compose = compose or entry is not None or "environment" in merged
    first = entry if compose else merged.get("command")
    then = (merged.get("command") or merged.get("Cmd")) if compose else merged.get("args")
    if first is None and then is None:
        return None
    if not all(_is_text(part) for part in (first, then)):
        return None
    words, script = _joined(first, then)
    image = merged.get("image")
    return Container(
        words, script, _environment(merged), image if isinstance(image, str) else "",
        "compose" if compose or script else "kubernetes",
    )  # fmt: skip


def _is_text(part: Node) -> bool:
    return part is None or isinstance(part, str) or (isinstance(part, list) and all(isinstance(w, str) for w in part))


def _joined(first: Node, then: Node) -> tuple[tuple[str, ...], str]:
    """Return the words of both parts, or one script where both are strings."""
    if not isinstance(first, list) and not isinstance(then, list):
        return (), " ".join(part for part in (first, then) if isinstance(part, str))
    words: list[str] = []
    for part in (first, then):
        words.extend(part.split() if isinstance(part, str) else [str(w) for w in part or ()])
    return tuple(words), ""


def _merged(node: dict[str, Node]) -> dict[str, Node]:
    """Return `node` with one level of `<<` merges applied."""
    merge = node.get("<<")
    sources = merge if isinstance(merge, list) else [merge]
    merged: dict[str, Node] = {}
    for source in reversed(sources):
        if isinstance(source, dict):
            merged.update(source)
    merged.update(node)
    return merged


def _environment(node: dict[str, Node]) -> dict[str, str]:
    """Return the environment of a container: a map, `NAME=value` items, or `{name, value}` items."""
    found: dict[str, str] = {}
    for source in (node.get("environment"), node.get("env")):
        if isinstance(source, dict):
            found.update({k: v for k, v in source.items() if isinstance(v, str)})
        elif isinstance(source, list):
            for item in source:
                if isinstance(item, str) and "=" in item:
                    name, _, value = item.partition("=")
                    found[name] = value
                elif isinstance(item, dict):
                    name_node, value_node = item.get("name"), item.get("value")
                    if isinstance(name_node, str) and isinstance(value_node, str):
                        found[name_node] = value_node
    return found
