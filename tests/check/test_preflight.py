"""How the comparison with real commands decides: which release, which machine, which error is the same."""

from __future__ import annotations

import pytest

from bench.capacity import BYTES, Row, launch, summary
from bench.cases import Case, is_old, machine, release
from bench.preflight import expected, same_error


@pytest.mark.parametrize(
    ("said", "profile"),
    [
        ("8x H100 80GB", "h100-80gb"),
        ("1x B300 (SM 10.3), TP=1", "b300"),
        ("B300 class (275.75 GB free before load)", "gb300"),
        ("SM100 (B200 class)", "b200-180gb"),
        ("8x A100 80GB (tp 1)", "a100-80gb"),
        ("RTX 5090 32GB", "rtx-5090-32gb"),
        ("8x RTX PRO 6000 (SM120)", "rtx-pro-6000"),
        ("not seen", ""),
    ],
)
def test_a_machine_is_read_from_a_description(said: str, profile: str) -> None:
    assert machine(said) == profile


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("0.5.18 + PR 36607", "0.5.18"),
        ("main, about 2026-07-17 (scheduled CI)", "0.5.17"),
        ("main 2026-08-13 (about 0.5.17)", "0.5.17"),
        ("2026-09 (pip install)", "0.5.19"),
        ("main 2026-09-14", "0.5.20"),
        ("0.4.3.post2", "0.5.17"),
        ("not stated", ""),
    ],
)
def test_a_case_runs_on_the_release_nearest_to_it(said: str, version: str) -> None:
    assert release(said) == version


def test_a_case_of_last_year_is_old() -> None:
    assert is_old("2025-08-01")
    assert not is_old("main, 2026-04-27")
    assert not is_old("not stated")


def test_numbers_and_flags_do_not_make_an_error_another() -> None:
    reported = "ValueError: User-specified context_length (128000) is greater than the derived context_length (32768)."

    assert same_error(
        reported, "ValueError: User-specified context_length (64000) is greater than the derived context_length (1)."
    )
    assert not same_error(reported, "ValueError: Loaded weights leave no GPU memory for the KV cache")


def test_an_argparse_error_is_known_by_its_words() -> None:
    reported = "launch_server.py: error: unrecognized arguments: --reasoning_parser kimi_k2"

    assert same_error(
        reported, "SystemExit: usage: x [-h]\nx: error: unrecognized arguments: --reasoning_parser kimi_k2"
    )


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [("args_error", "fail"), ("starts", "pass"), ("accepted_then_crash", "pass"), ("unknown_error", "")],
)
def test_what_is_expected_of_a_case(kind: str, verdict: str) -> None:
    assert expected(Case("x", {"outcome_class": kind})) == verdict


def test_settings_of_a_log_become_flags() -> None:
    case = Case(
        "x", {"model": "Qwen/Qwen3-8B", "server_args": {"tp_size": 1, "page_size": 64, "trust_remote_code": True}}
    )

    assert launch(case) == "sglang serve --model-path Qwen/Qwen3-8B --tp-size 1 --page-size 64 --trust-remote-code"


def test_the_summary_counts_only_scored_rows_and_says_what_was_missed() -> None:
    rows = [
        Row("a", "one GPU", 101.0, 100.0, low=99, high=102),
        Row("b", "one GPU", 100.0, 100.0, low=99, high=101),
        Row("c", "", 200.0, 100.0, "calibrated the reserve"),
        Row("d", BYTES, 10.0, 10.0),
    ]

    lines = summary(rows)

    assert f"{BYTES}: n=1, median 0.00 %, largest 0.00 % (goal largest <= 0.1 %: met)" in lines
    assert "one GPU: n=2, median 0.50 %, largest 1.00 % (goal median <= 0.3 %, largest <= 1.0 %: MISSED)" in lines
    assert lines[-1] == "logs within the range given: 2 of 2"
