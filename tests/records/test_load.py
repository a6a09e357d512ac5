"""Curated files are read strictly, and an error says where and what."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.records.load import RecordError, load, load_all, survey

NAME = "00000000000000aa-needs-a-pool.md"
GOOD = '''+++
id = "00000000000000aa"
package = "demo"
kind = "raise"
exception = "ValueError"
message = "no pool for {model.name}"
function = "Pool.check"
title = "No pool for this model"
status = "reviewed"
flags = ["--pool"]

[source]
ref = "abc1234567"
ref_date = "2026-08-28"
path = "python/demo/pool.py"
line = 24

[provenance]
analysis = "AI-assisted"

[example]
before = """
demo serve --pool
"""
after = """
demo serve
"""

[[related]]
id = "00000000000000bb"
why = "the same pool"
+++

## Meaning

The pool needs state,
which this model has not.

A second paragraph.

## Trigger

`--pool` with such a model.

## Situations

- A script is used again
  for another model.
- The flag was copied.

## Solutions

1. Drop `--pool`:

   ```
   ## no heading
   demo serve
   ```
2. Choose another model,
   a small one.

## Defence

### Strategy

validation

### Code

```python
# a comment, no heading
check()
```

### Prevention

- Look first.

## Not verified

The engine has no such model.
'''


def write(folder: Path, text: str, name: str = NAME) -> Path:
    package = folder / "demo"
    package.mkdir(exist_ok=True)
    path = package / name
    path.write_text(text)
    return path


def test_a_file_becomes_a_value(tmp_path: Path) -> None:
    record = load(write(tmp_path, GOOD))

    assert (record.file, record.slug, record.front.id) == (NAME, "needs-a-pool", "00000000000000aa")
    assert record.front.source is not None
    assert record.front.source.line == 24
    assert record.body.meaning == "The pool needs state, which this model has not.\n\nA second paragraph."
    assert record.body.situations == ["A script is used again for another model.", "The flag was copied."]
    assert record.body.solutions == [
        "Drop `--pool`:\n\n```\n## no heading\ndemo serve\n```",
        "Choose another model, a small one.",
    ]
    assert record.body.code == "# a comment, no heading\ncheck()"
    assert record.body.not_verified == "The engine has no such model."


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('kind = "raise"', 'kind = "throw"', "kind: Input should be 'raise', 'assert' or 'message'"),
        ('status = "reviewed"', 'status = "mined"', "status: Input should be"),
        ('title = "No pool for this model"\n', "", "title: Field required"),
        ('package = "demo"', 'package = "other"', "package: 'other' differs from the folder's name 'demo'"),
        ('id = "00000000000000aa"', 'id = "00000000000000ab"', "id: '00000000000000ab' differs from the file name's"),
        ('id = "00000000000000aa"', 'id = "AA"', "id: String should match"),
        ("line = 24", 'line = "24"', "source.line: Input should be a valid integer"),
        ('ref_date = "2026-08-28"', "ref_date = 2026-08-28", "source.ref_date: Input should be a valid string"),
        ('flags = ["--pool"]', 'flags = ["pool"]', "flags.0: String should match"),
        ('why = "the same pool"', 'reason = "x"', "related.0.why: Field required"),
        ('function = "Pool.check"', 'functions = "Pool.check"', "function: Field required"),
        ("[example]", "[examples]", "example: Field required"),
        ('flags = ["--pool"]', 'colour = "red"', "colour: Extra inputs are not permitted; known are id, package"),
        ("line = 24", "line = ", "front matter"),
        ("+++\n\n## Meaning", "\n\n## Meaning", "the front matter is not closed"),
        ("## Trigger", "## Triggers", "'## Triggers' is no heading of a record"),
        ("## Trigger\n\n`--pool` with such a model.\n", "", "## Trigger: the heading is missing"),
        ("## Trigger", "## Meaning", "## Meaning: the heading stands there 2 times"),
        ("### Strategy\n\nvalidation\n", "### Strategy\n", "### Strategy (line 64): there is no text under it"),
        ("## Defence\n", "## Defence\n\nBe careful.\n", "## Defence: text belongs under ### Strategy"),
        ("- A script", "A script", "## Situations (line 45): every item begins with '- '"),
        ("2. Choose", "3. Choose", "## Solutions (line 51): item '3.' should be '2.'"),
        ("```python", "```", "### Code (line 68): exactly one block fenced by ```python"),
        ("check()\n```", "check()\n", "a code block opened with ``` is not closed"),
        ("The flag was copied.", "TODO", "line 49: write what TODO stands for"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert old in GOOD

    with pytest.raises(RecordError) as caught:
        load(write(tmp_path, GOOD.replace(old, new, 1)))

    assert caught.value.detail.startswith(f"demo/{NAME}: ")
    assert complaint in caught.value.detail


def test_headings_stand_in_their_order(tmp_path: Path) -> None:
    swapped = GOOD.replace("## Trigger", "## X").replace("## Situations", "## Trigger").replace("## X", "## Situations")

    with pytest.raises(RecordError, match="'## Situations' stands where '## Trigger' is expected"):
        load(write(tmp_path, swapped))


@pytest.mark.parametrize("name", ["aa-x.md", "00000000000000aa.md", "00000000000000aa-Upper.md"])
def test_the_name_of_the_file_is_fixed(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError, match=r"the name must be <id>-<slug>\.md"):
        load(write(tmp_path, GOOD, name))


def test_bytes_that_are_no_text_and_floods_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    path.write_bytes(GOOD.encode() + b"\xff")
    with pytest.raises(RecordError, match="is not UTF-8"):
        load(path)
    path.write_bytes(GOOD.encode() + b"x" * 70_000)
    with pytest.raises(RecordError, match="a record has at most 65536"):
        load(path)


def test_a_folder_tells_every_fault_and_duplicate(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, GOOD, "00000000000000aa-again.md")
    write(tmp_path, "nothing", "00000000000000cc-broken.md")

    records, problems = survey(tmp_path / "demo")

    assert [record.slug for record in records] == ["again"]
    assert len(problems) == 2
    with pytest.raises(RecordError, match=r"id: 00000000000000aa is 00000000000000aa-again\.md's already"):
        load_all(tmp_path / "demo")


def test_a_missing_folder_holds_no_records(tmp_path: Path) -> None:
    assert load_all(tmp_path / "none") == ()
