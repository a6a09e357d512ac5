"""Texts that a raise takes from elsewhere: variables, constants, classes, helpers, in one file or several."""

from __future__ import annotations

import textwrap
from pathlib import Path

from app.mine.mine import mine
from app.mine.model import MinedRelease, Site
from app.mine.wheels import archive


def mined(folder: Path, **files: str) -> MinedRelease:
    """Mine a package `pkg` of these modules; "a__b" stands for a/b.py."""
    for name, source in files.items():
        path = folder / "pkg" / (name.replace("__", "/").replace("init", "__init__") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
    return mine(archive(folder), package="pkg", version="1", workers=1)


def only(release: MinedRelease, kind: str = "raise") -> Site:
    (site,) = (site for site in release.sites if site.kind == kind)
    return site


def texts(site: Site) -> list[str]:
    return [variant.template.text for variant in site.variants]


def test_follows_a_variable_through_branches_and_additions(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        def f(x, y):
            msg = f"The value {x} does not fit"
            if y:
                msg += f" into {y}"
            raise ValueError(msg)
        """,
    )

    assert only(release).template.text == "The value {x} does not fit"
    assert texts(only(release)) == ["The value {x} does not fit into {y}"]


def test_does_not_trust_a_variable_that_a_loop_assigns(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        def f(xs):
            kind = "first"
            for x in xs:
                if x:
                    raise ValueError(f"bad {kind}")
                kind = compute(x)
        """,
    )

    assert only(release).template.text == "bad {kind}"
    assert texts(only(release)) == ["bad first"]


def test_follows_a_constant_of_another_module_through_a_re_export(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        init="from .texts import HINT",
        texts='HINT = "Try less." " Or more."',
        sub__init="",
        sub__a="""
        from .. import HINT

        def f(e):
            raise RuntimeError(f"Failed: {e}. {HINT}")
        """,
    )

    assert only(release).template.text == "Failed: {e}. Try less. Or more."


def test_takes_no_global_that_a_function_assigns_for_a_constant(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        STATE = "not loaded"

        def load():
            global STATE
            STATE = read()

        def f():
            raise ValueError(f"state: {STATE}")
        """,
    )

    assert only(release).template.text == "state: {STATE}"


def test_takes_a_class_attribute_for_a_constant_only_where_nothing_changes_it(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        class A:
            fixed = "fixed text"
            set_later = "default"
            overridden = "base"
            field: str = "default"
            shared: ClassVar[str] = "shared"

            def __init__(self, x):
                self.set_later = x

            def f(self):
                raise ValueError(f"{self.fixed} {self.set_later} {self.overridden} {self.field} {self.shared}")

        class B(A):
            overridden = "sub"
        """,
    )

    assert only(release).template.text == "fixed text {self.set_later} {self.overridden} {self.field} shared"


def test_reads_the_text_of_an_exception_class(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        errors="""
        class Base(Exception):
            hint = "no hint"

            def __str__(self):
                return f"{self.reason} (room {self.room}; {self.hint})"

        class Lost(Base):
            hint = "look again"

            def __init__(self, room, reason="gone"):
                super().__init__(reason)
                self.room = room
                self.reason = reason
        """,
        a="""
        from pkg.errors import Lost as L

        def f(x):
            raise L(x.room)
        """,
    )

    assert only(release).exception == "Lost"
    assert only(release).template.text == "gone (room {x.room}; look again)"


def test_reads_what_a_class_hands_to_its_base(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        class Base(Exception):
            def __init__(self, text, *rest, code=1):
                super().__init__(f"[{code}] {text}", *rest)

        class Sub(Base):
            def __init__(self, name):
                super().__init__(f"no {name} here", code=7)

        def f():
            raise Sub("key")
        """,
    )

    assert only(release).template.text == "[7] no key here"


def test_falls_back_on_the_argument_where_a_class_cannot_be_followed(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        class Hard(Exception):
            def __str__(self):
                return self.compute()

        def f(x):
            raise Hard(f"no {x} here")
        """,
    )

    assert only(release).template.text == "no {x} here"


def test_gives_a_raise_helper_the_texts_of_its_callers(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        tools="""
        def fail(strict, message):
            if strict:
                raise ValueError(message)

        def fail_hard(message):
            fail(True, message)
        """,
        a="""
        from pkg import tools
        from pkg.tools import fail, fail_hard

        def one(x):
            text = f"{x} leaks memory"
            fail(True, text)

        def two():
            tools.fail(strict=False, message="nothing is left")

        def three():
            fail_hard("too hard")

        def other():
            somewhere.fail(True, "not ours")
        """,
    )

    site = only(release)

    assert site.template.text == "{message}"
    assert {(v.template.text, v.path, v.function) for v in site.variants} == {
        ("{x} leaks memory", "pkg/a.py", "one"),
        ("nothing is left", "pkg/a.py", "two"),
        ("too hard", "pkg/a.py", "three"),
    }


def test_follows_a_function_that_returns_the_text_or_the_exception(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        class C:
            def _text(self, what):
                return f"cannot do {what} now"

            def f(self):
                raise ValueError(self._text("this"))

            def _error(self, code):
                return KeyError(f"code {code}")

            def g(self):
                raise self._error(5)
        """,
    )

    assert [(s.exception, s.template.text) for s in release.sites] == [
        ("ValueError", "cannot do this now"),
        ("KeyError", "'code 5'"),
    ]


def test_ends_on_circles(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        from pkg.b import X, f
        Y = X
        class A(B): pass
        class B(A): pass
        def g():
            a = b; b = a
            raise A(f"{Y} {X} {f()} {a.c}")
        """,
        b="""
        from pkg.a import Y, g
        X = Y
        def f():
            return f()
        """,
    )

    assert only(release).exception == "A"


def test_finds_messages_that_are_never_raised(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        def validate_length(n, limit) -> Optional[str]:
            if n > limit:
                error_msg = f"Input of {n} tokens is too long"
                return error_msg
            return None

        def check_kind(kind):
            return "the kind of thing it is"

        def load(path):
            if not path:
                return False, "no path was given"
            return True, "all went well"

        async def serve(req, self):
            req.set_finish_with_abort("The request was aborted")
            logger.error("This is a log line only")
            if req.bad:
                return self.create_error_response(message=f"Bad request {req.id}")
            self.out.error_message = "Could not do it"
            return JSONResponse({"error": {"message": "No such model"}}, status_code=404)
        """,
    )

    assert [(s.kind, s.exception, s.template.text) for s in release.sites] == [
        ("message", "", text)
        for text in (
            "Input of {n} tokens is too long",
            "no path was given",
            "The request was aborted",
            "Bad request {req.id}",
            "Could not do it",
            "No such model",
        )
    ]


def test_counts_a_returned_text_once(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        def validate(x) -> str | None:
            if x:
                return "x must not be set"

        def reason(y) -> str | None:
            return f"no support for {y}" if y else None

        def serve(req):
            error_msg = validate(req.x)
            if error_msg:
                req.set_finish_with_abort(error_msg)
            why = unsupported_reason(req.y)
            raise ValueError(why)

        def unsupported_reason(y):
            if y:
                return f"no support for {y}"
            return None
        """,
    )

    assert [(s.kind, s.function, s.template.text) for s in release.sites] == [
        ("message", "validate", "x must not be set"),
        ("raise", "serve", "no support for {req.y}"),
    ]


def test_reports_a_broken_file_and_counts_the_rest(tmp_path: Path) -> None:
    release = mined(tmp_path, a="def f(:\n", b="raise ValueError('x')\nraise\n", c="'" + "x" * 9_000_000 + "'")

    assert dict(release.failed) == {"pkg/a.py": "line 1: invalid syntax", "pkg/c.py": "pkg/c.py is larger than 8 MiB"}
    assert (release.files, release.lines, len(release.sites)) == (3, 2, 1)
    assert release.omitted == {"excluded file": 0, "raise without an exception": 1}


def test_leaves_out_excluded_files_and_counts_them(tmp_path: Path) -> None:
    (tmp_path / "pkg" / "test").mkdir(parents=True)
    (tmp_path / "pkg" / "test" / "a.py").write_text("assert 1")
    (tmp_path / "pkg" / "contest.py").write_text("assert 2")

    release = mine(archive(tmp_path), package="pkg", version="1", exclude=["**/test/**", "**/test_*.py"])

    assert [site.path for site in release.sites] == ["pkg/contest.py"]
    assert release.omitted["excluded file"] == 1


def test_finds_the_same_with_any_number_of_workers(tmp_path: Path) -> None:
    for i in range(5):
        (tmp_path / f"m{i}.py").write_text(f"from m{(i + 1) % 5} import X\nX = 'x{i}'\nassert a, f'no {{X}}'\n")

    one, two = (mine(archive(tmp_path), package="p", version="1", workers=n) for n in (1, 2))

    assert one == two
    assert len(one.sites) == 5


def test_keeps_the_hole_of_a_field_that_has_a_default(tmp_path: Path) -> None:
    release = mined(
        tmp_path,
        a="""
        class Args:
            policy: str = "fcfs"
            known: ClassVar[str] = "fcfs or lof"

            def check(self):
                raise ValueError(f"{self.policy} is not {self.known}")
        """,
    )

    assert only(release).template.text == "{self.policy} is not fcfs or lof"
