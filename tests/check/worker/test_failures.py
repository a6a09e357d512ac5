"""Where an error comes from, and what it proves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from app.check.worker import failures, packages
from app.check.worker.failures import describe, judge
from tests.check.worker.failing import Pool

NOTHING: frozenset[str] = frozenset()


def caught(call: Callable[..., Any], *args: Any) -> BaseException:
    try:
        call(*args)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_a_raise_is_explicit_and_placed_at_its_first_line() -> None:
    error = describe(caught(Pool().refuse, 12))

    assert error.explicit
    assert (error.exception, error.message) == ("ValueError", "size 12 is too large for this pool")
    assert (error.function, error.qualified) == ("refuse", "Pool.refuse")
    assert error.statement == "raise ValueError("
    assert error.line == Pool.refuse.__code__.co_firstlineno + 5
    assert error.guards == ("size > 3", "not (size < 10)")
    assert error.traceback[-1] == "ValueError: size 12 is too large for this pool"


def test_a_bare_assert_names_its_condition() -> None:
    error = describe(caught(Pool().bare, 7))

    assert error.explicit
    assert (error.exception, error.message, error.condition) == ("AssertionError", "", "size % 64 == 0")


@pytest.mark.parametrize("method", ["missing", "wrong_message", "index"])
def test_what_breaks_by_itself_is_not_explicit(method: str) -> None:
    assert not describe(caught(getattr(Pool(), method))).explicit


def test_an_error_of_a_library_names_it() -> None:
    error = describe(caught(Pool().library))

    assert error.foreign == "json"
    assert error.path.startswith("json/")


def test_the_parser_says_why_it_exits(capsys: pytest.CaptureFixture[str]) -> None:
    raised = caught(Pool().parse)

    error = describe(raised, said=capsys.readouterr().err)

    assert (error.exception, error.explicit) == ("SystemExit", True)
    assert error.message == "sglang serve: error: unrecognized arguments: --no-such-flag"
    assert judge(raised, "arguments", NOTHING, set()).refused


def test_a_raise_is_a_refusal() -> None:
    assert judge(caught(Pool().refuse, 12), "pools", NOTHING, set()).refused


def test_a_decision_on_a_made_up_value_is_none() -> None:
    judgement = judge(caught(Pool().refuse, 12), "pools", NOTHING, {Pool.refuse.__code__})

    assert not judgement.refused


def test_an_error_that_repeats_what_a_hub_said_of_missing_files_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "unanswered", ["size 12 is too large"])

    judgement = judge(caught(Pool().refuse, 12), "model", NOTHING, set())

    assert not judgement.refused
    assert "files that a check does not have" in judgement.why
    assert judge(caught(Pool().refuse, 13), "model", NOTHING, set()).refused


def test_an_attribute_missing_on_a_real_object_is_a_refusal() -> None:
    assert judge(caught(Pool().missing), "attention backends", NOTHING, set()).refused


def test_what_the_cpu_build_of_torch_lacks_is_no_refusal() -> None:
    judgement = judge(caught(Pool().attribute, ModuleType("torch._C")), "attention backends", NOTHING, set())

    assert not judgement.refused
    assert judgement.why == "the CPU build of torch has no torch._C.no_such_thing"
    assert judge(caught(Pool().attribute, ModuleType("sglang.x")), "attention backends", NOTHING, set()).refused


def test_what_touches_something_simulated_is_no_refusal() -> None:
    judgement = judge(caught(Pool().blank, 1), "model", NOTHING, set())
    assert not judgement.refused

    broken = caught(Pool().blank, packages.Kernel(len))
    judgement = judge(broken, "arguments", NOTHING, set())

    assert (judgement.refused, judgement.stand_in) == (False, "a blank package")


def test_an_unraised_error_past_the_arguments_is_no_refusal() -> None:
    assert judge(caught(Pool().index), "arguments", NOTHING, set()).refused
    assert not judge(caught(Pool().index), "model", NOTHING, set()).refused


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "no", "/models/x"),
        PermissionError(13, "no"),
        ConnectionError(),
        MemoryError(),
        RecursionError(),
    ],
)
def test_what_a_check_lacks_is_no_refusal(error: BaseException) -> None:
    def fail() -> None:
        raise error

    assert not judge(caught(fail), "arguments", NOTHING, set()).refused


@pytest.mark.parametrize(("absent", "refused"), [(frozenset({"nixl_of_tests"}), True), (NOTHING, False)])
def test_a_missing_module_is_a_refusal_only_if_the_machine_lacks_it(absent: frozenset[str], refused: bool) -> None:
    def fail() -> None:
        import nixl_of_tests  # type: ignore[import-not-found]  # noqa: F401

    error = caught(fail)
    # importlib's own frames end this traceback where the module is looked for; SGLang's code is what imported it.
    assert judge(error, "model", absent, set()).refused is refused


def test_a_stand_in_that_breaks_is_named() -> None:
    finder = packages.Finder({})

    judgement = judge(caught(finder.change, {"no-such": ""}), "model", NOTHING, set())

    assert (judgement.refused, judgement.stand_in) == (False, "packages.py")


def test_a_message_that_cannot_be_printed_is_empty() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    def fail() -> None:
        raise OddError

    assert describe(caught(fail)).message == ""


def test_long_messages_are_cut() -> None:
    def fail() -> None:
        raise ValueError("x" * 100_000)

    assert len(describe(caught(fail)).message) == failures.MESSAGE_LIMIT


def test_a_command_that_asks_for_help_is_not_refused() -> None:
    assert not judge(caught(sys.exit, 0), "arguments", NOTHING, set()).refused
