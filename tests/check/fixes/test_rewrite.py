"""A fix is written in the asker's own form, and reads as exactly what was run."""

from __future__ import annotations

import pytest

from app.check import command
from app.check.fixes.rewrite import rewritten

DOCKER = "docker run --gpus all -e SGLANG_A=1 -p 30000:30000 lmsysorg/sglang:v0.5.18 python3 -m sglang.launch_server"


@pytest.mark.parametrize(
    ("text", "arguments", "environment", "after"),
    [
        ("python -m sglang.launch_server --model-path m --fast", "--model-path m", {},
         "python -m sglang.launch_server --model-path m"),
        ("python3 -m sglang.launch_server \\\n  --model-path m \\\n  --fast \\\n  --tp 8", "--model-path m --tp 4", {},
         "python3 -m sglang.launch_server \\\n  --model-path m \\\n  --tp 4"),
        ("python3 -m sglang.launch_server \\\n  --model-path m", "--model-path m --tp 4", {},
         "python3 -m sglang.launch_server \\\n  --model-path m \\\n  --tp 4"),
        ("sglang serve m --tp=8", "--model-path m --tp=4 --fast", {}, "sglang serve m --tp=4 --fast"),
        (f"{DOCKER} --model-path m --tp 8", "--model-path m --tp 2", {"SGLANG_A": "1"},
         f"{DOCKER} --model-path m --tp 2"),
        ("SGLANG_A=1 sglang serve m", "--model-path m", {}, "sglang serve m"),
        ("SGLANG_A=1 sglang serve m", "--model-path m", {"SGLANG_A": "0"}, "SGLANG_A=0 sglang serve m"),
        ("CUDA_VISIBLE_DEVICES=0 sglang serve m", "--model-path m", {"SGLANG_B": "1"},
         "CUDA_VISIBLE_DEVICES=0 SGLANG_B=1 sglang serve m"),
        ("""sglang serve m --x '{"a": 1}' --fast""", """--model-path m --x|{"a": 1}""", {},
         """sglang serve m --x '{"a": 1}'"""),
    ],
)  # fmt: skip
def test_the_form_is_kept(text: str, arguments: str, environment: dict[str, str], after: str) -> None:
    launch = command.read(text)
    wanted = tuple(arguments.replace("|", " ", 1).split(" ", 3)) if "|" in arguments else tuple(arguments.split())

    written = rewritten(text, launch, wanted, tuple(environment.items()))

    assert written == after
    read = command.read(written)
    assert (read.arguments, dict(read.environment)) == (wanted, environment)


@pytest.mark.parametrize(
    "text",
    [
        "M=m\npython -m sglang.launch_server --model-path $M --tp 8",
        '["python", "-m", "sglang.launch_server", "--model-path", "m", "--tp", "8"]',
        "services:\n  a:\n    image: lmsysorg/sglang\n    command: sglang serve m --tp 8",
        "bash -c 'sglang serve m --tp 8'",
    ],
)
def test_what_cannot_be_edited_is_written_on_one_line(text: str) -> None:
    wanted = ("--model-path", "m", "--tp", "2", "--x", "a b")

    written = rewritten(text, command.read(text), wanted, ())

    assert command.read(written).arguments == wanted


def test_the_release_that_is_named_is_exchanged() -> None:
    text = f"{DOCKER} --model-path m"
    launch = command.read(text)

    written = rewritten(text, launch, launch.arguments, launch.environment, "0.5.20")

    assert written == text.replace("v0.5.18", "v0.5.20")
    assert command.read(written).release == "0.5.20"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("docker run --gpus all img:v1 python -m sglang.launch_server --tp 2", "img:v1 env A_B=1 python -m"),
        ("docker run \\\n  img:v1 \\\n  python -m sglang.launch_server --tp 2", "env A_B=1 python -m"),
        ("nohup python -m sglang.launch_server --tp 2", "nohup env A_B=1 python -m"),
        ("X=1 python -m sglang.launch_server --tp 2", "X=1 A_B=1 python -m"),
    ],
)
def test_a_variable_stands_where_it_is_one(text: str, wanted: str) -> None:
    launch = command.read(text)

    made = rewritten(text, launch, launch.arguments, (*launch.environment, ("SGLANG_A_B", "1")))

    assert wanted.replace("A_B", "SGLANG_A_B") in made


def test_a_quoted_number_of_a_manifest_stays_a_text() -> None:
    text = 'image: img:v1\ncommand: ["python3", "-m", "sglang.launch_server"]\nargs:\n- --tp\n- "3"\n- --port\n- "1"\n'
    launch = command.read(text)
    changed = tuple("4" if word == "3" else word for word in launch.arguments)

    assert '- "4"' in rewritten(text, launch, changed, launch.environment)
