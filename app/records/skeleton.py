"""The skeleton of a curated file, with everything mined filled in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MinedFacts:
    """What mining knows of the record that is to be written."""

    id: str
    package: str
    kind: str
    exception: str
    message: str
    function: str
    path: str
    title: str
    flags: tuple[str, ...]
    trigger: str
    guards: tuple[str, ...]
    releases: str
    report_url: str


def skeleton(facts: MinedFacts) -> str:
    """Return the text of a new curated file. What a person must write is marked TODO, which `errata lint` refuses."""
    guards = "".join(f"# guard: {_one_line(guard)}\n" for guard in facts.guards)
    report = f"report_url = {_toml(facts.report_url)}\n" if facts.report_url else ""
    return f"""+++
id = {_toml(facts.id)}
package = {_toml(facts.package)}
kind = {_toml(facts.kind)}
exception = {_toml(facts.exception)}
message = {_toml(facts.message)}
function = {_toml(facts.function)}
path = {_toml(facts.path)}
title = {_toml(facts.title)}
status = "reviewed"
flags = [{", ".join(map(_toml, facts.flags))}]
# in releases: {facts.releases}
{guards}
[provenance]
analysis = "TODO who analysed it"
{report}
[example]
before = '''
TODO a launch command or code that meets the error
'''
after = '''
TODO the same without it
'''
# hardware = "h100-80gb"  # where another machine is needed
solution = 1  # the numbered solution that `after` carries out; no line where it is none of them
+++

## Meaning

TODO what the engine says here and why, in one to three sentences.

## Trigger

{facts.trigger or "TODO the condition in plain words."}

## Situations

- TODO when a reader meets it.

## Solutions

1. TODO what to do first.

## Defence

### Strategy

validation

### Code

```python
raise NotImplementedError("TODO: check this before calling")
```

### Prevention

- TODO how not to meet it again.

## Not verified

TODO why no engine can be made to raise it. Delete this heading where `errata verify` has run the example.
"""


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


def _one_line(text: str) -> str:
    return " ".join(text.split())
