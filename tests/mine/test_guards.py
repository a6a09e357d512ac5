"""Under which conditions a site is reached."""

from __future__ import annotations

import textwrap

import pytest

from app.mine.model import Site
from app.mine.sites import sites_of


def sites(source: str) -> list[Site]:
    return sites_of(textwrap.dedent(source), "pkg/mod.py")


def guards(source: str) -> tuple[str, ...]:
    """Return the guards of the last site."""
    return sites(source)[-1].guards


CASES = {
    "if": ("if a:\n    raise E1('x')", ("a",)),
    "else": ("if a:\n    pass\nelse:\n    raise E1('x')", ("not (a)",)),
    "elif": ("if a:\n    pass\nelif b is not None:\n    raise E1('x')", ("not (a)", "b is not None")),
    "a negation of a negation": ("if not a:\n    pass\nelse:\n    raise E1('x')", ("a",)),
    "early return": ("def f():\n    if a:\n        return\n    raise E1('x')", ("not (a)",)),
    "early continue": ("for i in b:\n    if i:\n        continue\n    raise E1('x')", ("not (i)",)),
    "early break": ("while a:\n    if b:\n        break\n    raise E1('x')", ("a", "not (b)")),
    "else leaves": ("def f():\n    if a:\n        pass\n    else:\n        return\n    raise E1('x')", ("a",)),
    "elif chain leaves": (
        "def f():\n    if a:\n        return 1\n    elif b:\n        return 2\n    raise E1('x')",
        ("not (a)", "not (b)"),
    ),
    "early exit of an outer block": (
        "def f():\n    if a:\n        return\n    if b:\n        raise E1('x')",
        ("not (a)", "b"),
    ),
    "with": ("def f():\n    with a:\n        if b:\n            return\n    raise E1('x')", ("not (b)",)),
    "endless loop": ("while True:\n    raise E1('x')", ()),
    "except": ("try:\n    a()\nexcept (KeyError, OSError) as e:\n    raise E1('x')", ("except (KeyError, OSError)",)),
    "bare except": ("try:\n    a()\nexcept:\n    raise E1('x')", ("except",)),
    "try else": ("try:\n    a()\nexcept OSError:\n    pass\nelse:\n    raise E1('x')", ()),
    "match": ("match a:\n    case [1, b] if b > c:\n        raise E1('x')", ("match a: case [1, b] if b > c",)),
    "assert": ("if a:\n    assert b > c", ("a", "not (b > c)")),
    "assert that always fails": ("if a:\n    assert False, 'x'", ("a",)),
    "a function starts anew": ("if a:\n    def f():\n        raise E1('x')", ()),
}


@pytest.mark.parametrize(("source", "expected"), CASES.values(), ids=CASES.keys())
def test_names_the_conditions_outermost_first(source: str, expected: tuple[str, ...]) -> None:
    assert guards(source) == expected


def test_forgets_an_early_exit_whose_names_were_assigned_since() -> None:
    source = """
        def f(a):
            if a is None:
                return
            a = load(a)
            raise ValueError("x")
    """

    assert guards(source) == ()


def test_keeps_of_earlier_errors_only_those_about_the_same_thing() -> None:
    source = """
        def f(a, b):
            if a < 0:
                raise ValueError("a is negative")
            if b < 0:
                raise ValueError("b is negative")
            if a > 10:
                raise ValueError("a is too large")
    """

    assert guards(source) == ("not (a < 0)", "a > 10")


def test_bounds_length_and_number() -> None:
    deep = "".join(f"{'    ' * i}if a{i}{' + 1' * 200}:\n" for i in range(20)) + "    " * 20 + "raise E1('x')"

    found = guards(deep)

    assert len(found) == 12
    assert max(map(len, found)) <= 300


def test_says_where_a_site_is() -> None:
    source = """
        class A:
            @decorated
            def f(self):
                def inner():
                    raise ValueError(
                        "x"
                    )
    """

    (site,) = sites(source)

    assert (site.function, site.line, site.end_line) == ("A.f.inner", 6, 8)
    assert site.statement == "raise ValueError("
    assert site.excerpt_line == 5
    assert site.excerpt.splitlines()[0].strip() == "def inner():"


def test_leaves_out_what_is_no_new_exception() -> None:
    source = """
        try:
            a()
        except OSError as error:
            raise error
        except KeyError:
            raise
        raise self.failure
        raise next(iter(failures))
    """

    assert sites(source) == []


def test_counts_an_exception_that_was_made_before() -> None:
    source = """
        error = ValueError("made before")
        log(error)
        raise error
    """

    (site,) = sites(source)

    assert (site.exception, site.template.text, site.line) == ("ValueError", "made before", 4)


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbfraise ValueError('\xc3\xa9')\n",
        b"# coding: latin-1\nraise ValueError('\xe9')\n",
        b"raise ValueError('\xc3\xa9')\r\n",
        b"\x0craise ValueError('\xc3\xa9')\r",
    ],
    ids=["byte order mark", "declared encoding", "CRLF", "form feed and CR"],
)
def test_decodes_as_python_does(source: bytes) -> None:
    (site,) = sites_of(source, "a.py")

    assert site.template.text == "é"


@pytest.mark.parametrize(
    "source",
    [b"def f(:\n", b"x = '\x00'\n", b"# coding: nonsense\n", b"'\xff'\n", b"(" * 5000 + b")" * 5000],
    ids=["syntax", "null byte", "unknown encoding", "bad bytes", "too deep"],
)
def test_reports_a_file_that_cannot_be_read(source: bytes) -> None:
    with pytest.raises(SyntaxError):
        sites_of(source, "a.py")
