"""The text of a raised expression, against a table and against Python itself."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.mine.model import Site, Template
from app.mine.sites import sites_of

CASES = {
    '"plain"': "plain",
    '"a" "b"': "ab",
    'f"{x} and {y.z}"': "{x} and {y.z}",
    'f"{x!r} {x=} {x:>{w}}"': "{x} x={x} {x}",
    'f"{{x}}"': "{x}",
    '"%s of %d (100%%)" % (a, len(b))': "{a} of {len(b)} (100%)",
    '"%(one)s %(two)r" % {"one": a, "two": b}': "{a} {b}",
    '"only %s" % a': "only {a}",
    '"%s %s" % pair': "{pair[0]} {pair[1]}",
    '"%s" % "x"': "x",
    '"%.2f %*d" % (a, w, b)': "{a} {b}",
    '"{} {}".format(a, b)': "{a} {b}",
    '"{1} {0!r}".format(a, b)': "{b} {a}",
    '"{n.size} {n[0]} {other}".format(n=a, **rest)': "{a.size} {a[0]} {other}",
    '"{:>{}} {}".format(a, w, b)': "{a} {b}",
    '"a " + b + " c"': "a {b} c",
    '"a " + str(b)': "a {str(b)}",
    'textwrap.dedent("""\n    one {x}\n      two""")': "\none {x}\n  two",
    '" padded ".strip()': "padded",
    'f"{a} ".strip() + "."': "{a}.",
    '", ".join(["a", b, "c"])': "a, {b}, c",
    '", ".join(names)': "{', '.join(names)}",
    '"=" * 20': "{'=' * 20}",
    '_("translated %s") % a': "translated {a}",
    "5": "5",
    'f"{n + 1=} {10 % n} {n + (1 if a else 2)}"': "n + 1={n + 1} {10 % n} {n + (1 if a else 2)}",
    'f"{n + LIMIT}"': "{n + LIMIT}",
    "None": "None",
    "a": "{a}",
}


def the_site(source: str) -> Site:
    (site,) = sites_of(source, "pkg/mod.py")
    return site


@pytest.mark.parametrize(("expression", "text"), CASES.items(), ids=CASES.keys())
def test_reads_an_expression(expression: str, text: str) -> None:
    assert the_site(f"raise ValueError({expression})\n").template.text == text


CONSTRUCTIONS = {
    "raise ValueError": ("ValueError", ""),
    "raise ValueError()": ("ValueError", ""),
    'raise KeyError("no such key")': ("KeyError", "'no such key'"),
    'raise KeyError(f"it\'s {x}")': ("KeyError", '"it\'s {x}"'),
    "raise KeyError(x)": ("KeyError", "{x}"),
    'raise ValueError("a", 1)': ("ValueError", "('a', 1)"),
    'raise OSError(2, "gone")': ("OSError", "[Errno 2] gone"),
    'raise HTTPException(status_code=400, detail=f"bad {x}")': ("HTTPException", "bad {x}"),
    'raise HTTPException(400, "bad request body")': ("HTTPException", "bad request body"),
    'raise torch.cuda.OutOfMemoryError("full")': ("OutOfMemoryError", "full"),
    'raise ValueError("x") from e': ("ValueError", "x"),
    'raise ValueError("x").with_traceback(tb)': ("ValueError", "x"),
    "assert x, f'no {y}'": ("AssertionError", "no {y}"),
    "assert x": ("AssertionError", ""),
}


@pytest.mark.parametrize(("source", "expected"), CONSTRUCTIONS.items(), ids=CONSTRUCTIONS.keys())
def test_reads_a_construction_as_a_traceback_prints_it(source: str, expected: tuple[str, str]) -> None:
    site = the_site(source + "\n")

    assert (site.exception, site.template.text) == expected


def test_gives_each_arm_of_a_conditional_expression_as_a_variant() -> None:
    site = the_site("raise ValueError(f\"no {'model' if a else b} here\")\n")

    assert site.template.text == "no {'model' if a else b} here"
    assert [v.template.text for v in site.variants] == ["no model here", "no {b} here"]


def test_bounds_the_variants_of_many_conditional_expressions() -> None:
    arms = " ".join(f"{{'a{i}' if c{i} else 'b{i}'}}" for i in range(30))

    assert 0 < len(the_site(f'raise ValueError(f"{arms}")\n').variants) <= 8


def test_cuts_a_huge_literal() -> None:
    site = the_site(f'raise ValueError("{"x" * 100_000}")\n')

    assert len(site.template.text) == 20_000


# ---- against Python itself ------------------------------------------------------------------------


class Marker:
    """A value that reads the same however it is formatted."""

    def __init__(self, name: str) -> None:
        self.name = f"<{name}>"

    def __format__(self, spec: str) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


NAMES = ("alpha", "beta", "gamma")
numbers = ("count + 1", "1 + count", "10 % count", "-count", "(2 if yes else 3) + count", "5")
literals = st.text(
    st.characters(codec="ascii", exclude_categories=["Cc"]) | st.sampled_from("\n%{}'\"\\é"), max_size=12
)
names = st.sampled_from(NAMES)


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


@st.composite
def f_strings(draw: st.DrawFn) -> ast.expr:
    values: list[ast.expr] = []
    for _ in range(draw(st.integers(1, 4))):
        values.append(ast.Constant(draw(literals)))
        conversion = draw(st.sampled_from((-1, ord("r"), ord("s"), ord("a"))))
        # Under a conversion Python itself pads the text, which a template leaves out.
        spec = draw(st.sampled_from((None, ">10", "{beta}"))) if conversion < 0 else None
        parts: list[ast.expr] = []
        if spec == "{beta}":
            parts = [ast.FormattedValue(_name("beta"), -1, None)]
        elif spec is not None:
            parts = [ast.Constant(spec)]
        values.append(ast.FormattedValue(_name(draw(names)), conversion, ast.JoinedStr(parts) if parts else None))
        values.append(ast.FormattedValue(ast.parse(draw(st.sampled_from(numbers)), mode="eval").body, -1, None))
    return ast.JoinedStr(values)


@st.composite
def percents(draw: st.DrawFn) -> ast.expr:
    text, arguments = "", []
    for _ in range(draw(st.integers(0, 3))):
        text += draw(literals).replace("%", "%%") + draw(st.sampled_from(("%s", "%r", "%a", "%-1s")))
        arguments.append(draw(names))
    return ast.BinOp(ast.Constant(text), ast.Mod(), ast.Tuple([_name(a) for a in arguments], ast.Load()))


@st.composite
def formats(draw: st.DrawFn) -> ast.expr:
    text = ""
    arguments = draw(st.lists(names, min_size=1, max_size=3))
    automatic = draw(st.booleans())
    for i in range(len(arguments)):
        field = "" if automatic else str(draw(st.integers(0, len(arguments) - 1)))
        text += draw(literals).replace("{", "{{").replace("}", "}}") + "{" + field
        text += draw(st.sampled_from(("", "!r", "!s", ":>12"))) + "}"
        assert i < 3
    named = draw(st.booleans())
    text += "{named}" if named else ""
    keywords = [ast.keyword("named", _name(draw(names)))] if named else []
    function = ast.Attribute(ast.Constant(text), "format", ast.Load())
    return ast.Call(function, [_name(a) for a in arguments], keywords)


texts = st.one_of(literals.map(ast.Constant), f_strings(), percents(), formats())
expressions = st.recursive(
    texts,
    lambda inner: st.one_of(
        st.builds(lambda a, b: ast.BinOp(a, ast.Add(), b), inner, inner),
        st.builds(lambda a, b, c: ast.IfExp(_name(c), a, b), inner, inner, st.sampled_from(("yes", "no"))),
        inner.map(lambda a: ast.Call(ast.Attribute(a, "strip", ast.Load()), [], [])),
        inner.map(lambda a: ast.JoinedStr([ast.FormattedValue(a, -1, None)])),
    ),
    max_leaves=4,
)


def filled(template: Template, values: Mapping[str, object]) -> str:
    """Return the message that a template stands for, its holes evaluated."""
    text = ""
    for i, part in enumerate(template.parts):
        text += part if i % 2 == 0 else str(eval(part, dict(values)))
    return text


@given(expressions, st.sampled_from(("direct", "variable", "augmented", "branches", "exception")))
def test_agrees_with_the_message_that_python_makes(expression: ast.expr, form: str) -> None:
    try:
        source = ast.unparse(ast.fix_missing_locations(ast.Expression(expression)))
        ast.parse(source, mode="eval")
    except (ValueError, SyntaxError):
        return  # this Python cannot write the f-string down
    program = {
        "direct": f"raise ValueError({source})",
        "variable": f"text = {source}\nraise ValueError(text)",
        "augmented": f"text = 'head '\ntext += {source}\nraise ValueError(text)",
        "branches": f"if no:\n    text = 'other'\nelse:\n    text = {source}\nraise ValueError(text)",
        "exception": f"error = ValueError({source})\nraise error",
    }[form]
    values: dict[str, object] = {name: Marker(name) for name in NAMES} | {"yes": True, "no": False, "count": 7}
    values["text"] = None
    namespace = dict(values)

    with pytest.raises(ValueError) as caught:
        exec(program, namespace)

    message = str(caught.value)
    site = the_site(program + "\n")
    readings = [site.template, *(variant.template for variant in site.variants)]
    if message.strip() and len(site.variants) < 8:
        # A hole longer than the limit is cut and cannot be evaluated; its variants can.
        assert message in [filled(reading, namespace) for reading in readings if "…" not in reading.text]
