"""What people paste, and what it is read as."""

from __future__ import annotations

import json
import shlex
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.check import command
from app.check.command import COMMAND_LIMIT, LaunchCommand, option, read
from app.errors import BadInput, ErrataError, TooLarge

MODULE = "python -m sglang.launch_server"
WANTED = ("--model-path", "a/b", "--tp", "2")


def arguments(text: str) -> tuple[str, ...]:
    return read(text).arguments


@pytest.mark.parametrize(
    "text",
    [
        f"{MODULE} --model-path a/b --tp 2",
        "python3 -m sglang.launch_server --model-path a/b --tp 2",
        "/usr/bin/python3.12 -u -W ignore -m sglang.launch_server --model-path a/b --tp 2",
        "sglang serve --model-path a/b --tp 2",
        "sglang serve a/b --tp 2",
        "sglang serve a/b --model-type llm --tp 2",
        "python -m sglang.cli.main serve a/b --tp 2",
        "python sglang/launch_server.py --model-path a/b --tp 2",
        f"$ {MODULE} --model-path a/b --tp 2",
        f"(base) root@gpu-1:/sgl-workspace# {MODULE} --model-path a/b --tp 2",
        f"user@host:~$ {MODULE} --model-path a/b --tp 2",
        f"{MODULE} \\\n  --model-path a/b \\\n  --tp 2\n",
        f"{MODULE} \\\r\n  --model-path a/b \\\r\n  --tp 2\r\n",
        f"{MODULE} \\  \n  --model-path a/b \\\t\n  --tp 2",
        f"{MODULE} \\ # the launcher\n  --model-path a/b \\ # the model\n  --tp 2",
        f"{MODULE} \\\n> --model-path a/b \\\n> --tp 2",
        f"{MODULE} ^\n  --model-path a/b ^\n  --tp 2",
        f"{MODULE} `\n  --model-path a/b `\n  --tp 2",
        f"{MODULE}\n  --model-path a/b\n  --tp 2",
        f"# start it\n{MODULE} --model-path a/b --tp 2 # two GPUs",
        f"```bash\n{MODULE} --model-path a/b --tp 2\n```",
        f"nohup {MODULE} --model-path a/b --tp 2 > log.txt 2>&1 &",
        f"{MODULE} --model-path a/b --tp 2 2>&1 | tee -a server.log",
        f"{MODULE} --model-path a/b --tp 2 &> /dev/null",
        f"cd /sgl && source venv/bin/activate && {MODULE} --model-path a/b --tp 2",
        f"env A=1 nohup nice -n 5 {MODULE} --model-path a/b --tp 2",
        f"CUDA_VISIBLE_DEVICES=0,1 numactl --membind=0 {MODULE} --model-path a/b --tp 2",
        f"uv run {MODULE} --model-path a/b --tp 2",
        f"srun -N 1 --gres=gpu:8 {MODULE} --model-path a/b --tp 2",
        f"MODEL=a/b\nTP=2\n{MODULE} --model-path $MODEL --tp ${{TP}}",
        f"export MODEL=a/b; {MODULE} --model-path $MODEL --tp ${{TP:-2}}",
        f"ARGS='--model-path a/b --tp 2'\n{MODULE} $ARGS",
        f'ARGS=(\n  --model-path a/b\n  --tp 2\n)\n{MODULE} "${{ARGS[@]}}"',
        f"ARGS=(--model-path a/b); ARGS+=(--tp 2); {MODULE} ${{ARGS[@]}}",
        f'bash -c "{MODULE} --model-path a/b --tp 2"',
        f"bash -lc 'TP=2; exec {MODULE} --model-path a/b --tp $TP'",
        f"if true; then {MODULE} --model-path a/b --tp 2; fi",
        f"set FOO=1 && {MODULE} --model-path a/b --tp 2",
        f"cat > run.sh <<'EOF'\n{MODULE} --model-path a/b --tp 2\nEOF\nbash run.sh",
        f"docker run --gpus all -it --rm -p 30000:30000 lmsysorg/sglang:latest {MODULE} --model-path a/b --tp 2",
        f"sudo docker run -d --name s --ipc=host -v /m:/m lmsysorg/sglang {MODULE} --model-path a/b --tp 2",
        "docker run --entrypoint python3 img -m sglang.launch_server --model-path a/b --tp 2",
        f"docker run img bash -c '{MODULE} --model-path a/b --tp 2'",
        f"docker exec -it box {MODULE} --model-path a/b --tp 2",
        f"kubectl exec pod -- {MODULE} --model-path a/b --tp 2",
        "--model-path a/b --tp 2",
        '["python3", "-m", "sglang.launch_server", "--model-path", "a/b", "--tp", 2]',
        "[python3, -m, sglang.launch_server, --model-path, a/b, --tp, 2]",
        '{"command": ["python3", "-m", "sglang.launch_server"], "args": ["--model-path", "a/b", "--tp", "2"]}',
        "python –m sglang.launch_server –model-path a/b —tp 2",
        f"{MODULE}\u00a0--model-path “a/b” --tp ‘2’",
        f"\x1b[32m$\x1b[0m {MODULE} --model-path a/b\u200b --tp 2",
        f"{MODULE} --model-path a/b --tp 2 ...",
    ],
)  # fmt: skip
def test_read_as_the_same_launch(text: str) -> None:
    assert arguments(text) == WANTED


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("""--json-model-override-args '{"a": [1, 2]}'""", ("--json-model-override-args", '{"a": [1, 2]}')),
        (r"""--json-model-override-args "{\"a\": 1}" """, ("--json-model-override-args", '{"a": 1}')),
        ("--chat-template ''", ("--chat-template", "")),
        ("--a 'b'\"c\"d", ("--a", "bcd")),
        (r"--a b\ c", ("--a", "b c")),
        ("--a 'x # y'", ("--a", "x # y")),
        ("--a x#y", ("--a", "x#y")),
        ("--a $'x\\ty'", ("--a", "x\ty")),
        ("--a 'two\nlines'", ("--a", "two\nlines")),
        ("--a ~/m/*.json", ("--a", "~/m/*.json")),
        ("--a x^y", ("--a", "x^y")),
        ("--a 5 > out", ("--a", "5")),
        ("--a '$X'", ("--a", "$X")),
        ("--a costs\\$5", ("--a", "costs$5")),
        ("--a 100$", ("--a", "100$")),
        ("--nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.1:5000",
         ("--nnodes", "2", "--node-rank", "0", "--dist-init-addr", "10.0.0.1:5000")),
    ],
)  # fmt: skip
def test_words(text: str, wanted: tuple[str, ...]) -> None:
    assert arguments(f"{MODULE} {text}") == wanted


COMPOSE = """
x-common: &common
  image: lmsysorg/sglang:v0.5.20-cu130
  environment:
    SGLANG_ENABLE_SPEC_V2: "1"
    HF_TOKEN: ${HF_TOKEN}
services:
  db:
    image: postgres
    command: postgres -c shared_buffers=1GB
  sglang:
    <<: *common
    ports: ["30000:30000"]
    entrypoint: python3 -m sglang.launch_server
    command: >
      --model-path a/b
      --tp ${TP:-2}
"""
KUBERNETES = """
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
        - name: server
          image: lmsysorg/sglang:v0.5.19
          command: ["python3", "-m", "sglang.launch_server"]
          args:
            - --model-path
            - $(MODEL)
            - --tp
            - 2
          env:
            - name: MODEL
              value: a/b
            - name: SGLANG_X
              value: "yes"
            - name: HF_TOKEN
              valueFrom: {secretKeyRef: {name: hf, key: token}}
"""
SHELL_IN_KUBERNETES = """
containers:
- command: [/bin/bash, -c]
  args:
  - |
    set -ex
    python3 -m sglang.launch_server \\
      --model-path $MODEL \\
      --tp 2
  env: [{name: MODEL, value: a/b}]
"""


@pytest.mark.parametrize(
    ("text", "kind", "release", "environment"),
    [
        (COMPOSE, "compose", "0.5.20", (("SGLANG_ENABLE_SPEC_V2", "1"),)),
        (KUBERNETES, "kubernetes", "0.5.19", (("SGLANG_X", "yes"),)),
        (SHELL_IN_KUBERNETES, "kubernetes", "", ()),
    ],
)
def test_manifests(text: str, kind: str, release: str, environment: tuple[tuple[str, str], ...]) -> None:
    found = read(text)

    assert (found.arguments, found.kind, found.release, found.environment) == (WANTED, kind, release, environment)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"{MODULE} --model-path $MODEL", ["$MODEL"]),
        (f"{MODULE} --model-path ${{MODEL}} --tp ${{TP}}", ["${MODEL}", "${TP}"]),
        (f"{MODULE} --model-path <MODEL> --tp 2", ["<MODEL>"]),
        (f"{MODULE} --model-path $(pwd)/m", ["$(pwd)"]),
        (f"{MODULE} --model-path `pwd`/m", ["`pwd`"]),
        (f"{MODULE} --model-path $1", ["$1"]),
        (f"{MODULE} --model-path ${{X%.y}}", ["${X%.y}"]),
        (f"M=$OTHER; {MODULE} --model-path $M", ["$OTHER"]),
        ("containers: [{command: [python3, -m, sglang.launch_server, --model-path, $(MODEL)]}]", ["${MODEL}"]),
    ],
)
def test_values_that_only_a_shell_knows_are_asked_for(
    text: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL", "ours")

    with pytest.raises(BadInput) as caught:
        read(text)

    assert caught.value.extra["variables"] == names
    assert names[0] in caught.value.detail


def test_missing_values_elsewhere_do_not_matter() -> None:
    assert arguments(f"cd $HOME && {MODULE} --model-path a/b --tp 2 > $LOG") == WANTED


def test_environment_is_that_of_the_launch() -> None:
    found = read(
        f"UNSET=1\nexport SGLANG_A=1 SGLANG_B\nSGLANG_B=2\nSGLANG_C=3\n"
        f"SGLANG_D=4 env SGLANG_E=5 {MODULE} --model-path a/b"
    )

    assert dict(found.environment) == {"SGLANG_A": "1", "SGLANG_B": "2", "SGLANG_D": "4", "SGLANG_E": "5"}


def test_only_listed_variables_are_applied_and_the_rest_is_said() -> None:
    found = read(f"LD_PRELOAD=/evil.so PYTHONPATH=/x SGLANG_HOST_IP=1.2.3.4 SGLANG_OK=1 {MODULE} --model-path a/b")

    assert found.environment == (("SGLANG_OK", "1"),)
    assert any("`LD_PRELOAD`" in note and "`SGLANG_HOST_IP`" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "visible"),
    [("CUDA_VISIBLE_DEVICES=4,5,6,7", 4), ("HIP_VISIBLE_DEVICES=0", 1), ("CUDA_VISIBLE_DEVICES=", None), ("A=1", None)],
)
def test_visible_devices(text: str, visible: int | None) -> None:
    assert read(f"{text} {MODULE} --model-path a/b").visible == visible


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (f"docker run lmsysorg/sglang:v0.5.18-cu130 {MODULE} --model-path a", "0.5.18"),
        (f"docker run lmsysorg/sglang:dev {MODULE} --model-path a", ""),
        (f"pip install 'sglang[all]==0.5.20.post1' && {MODULE} --model-path a", "0.5.20.post1"),
        (f"{MODULE} --model-path a-0.5.18", ""),
        (f"docker run postgres:16.1.0 {MODULE} --model-path a", ""),
    ],
)
def test_the_release_that_the_text_names(text: str, release: str) -> None:
    assert read(text).release == release


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{MODULE} \\ \n --model-path a", "backslash"),
        ("sglang serve –model-path a", "typographic dash"),
        ("sglang serve “a”", "typographic quotes"),
        (f"{MODULE}\n--model-path a", "part of the command"),
        (f"{MODULE} --model-path a\n{MODULE} --model-path b", "2 launches"),
        (f"{MODULE} --model-path a ...", "left out"),
        ("--model-path a", "starts with an option"),
    ],
)
def test_what_is_read_otherwise_than_written_is_said(text: str, said: str) -> None:
    assert any(said in note for note in read(text).notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("ls -la", "not an SGLang launch command"),
        ("vllm serve a/b", "not an SGLang launch command"),
        ("sglang generate a/b", "not an SGLang launch command"),
        ("python -m sglang.bench_serving --port 1", "benchmark client"),
        ("python -m sglang_router.launch_server --model-path a", "router"),
        ("llm = sgl.Engine(model_path='a')", "Python code"),
        ("Traceback (most recent call last):\n  x", "/identify"),
        ("ValueError: no", "/identify"),
        (f"{MODULE} --model-path 'a", "never closed"),
        ("a\0b", "NUL"),
        ("a\ud800b", "Unicode"),
        ("sglang serve a --model-type diffusion", "another server"),
        ("command: [a, b\n  c: {", "not YAML"),
        ("A=${B:-${C:-${D:-${E:-${F:-${G:-${H:-${I:-${J:-x}}}}}}}}}; ls", "nested"),
    ],
)
def test_refused_with_a_sentence(text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(text)

    assert said in caught.value.detail
    assert len(caught.value.detail) < 600


def test_over_the_limit_is_too_large() -> None:
    with pytest.raises(TooLarge):
        read(f"{MODULE} --model-path " + "a" * COMMAND_LIMIT)
    with pytest.raises(TooLarge):
        read("é" * (COMMAND_LIMIT // 2 + 1))


def test_too_many_arguments() -> None:
    with pytest.raises(BadInput):
        read(MODULE + " a" * 5000)


# -- properties ---------------------------------------------------------------------------------------------

words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12), max_size=8)
PLAIN_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)


@settings(deadline=None)
@given(st.lists(PLAIN_TEXT, max_size=8))
def test_what_a_shell_would_split_is_split_the_same(given_words: list[str]) -> None:
    kept = [word for word in given_words if word not in ("...", "[...]", "\\")]

    assert list(arguments(f"{MODULE} --x " + shlex.join(kept))) == ["--x", *kept]


@settings(deadline=None)
@given(
    st.lists(PLAIN_TEXT, max_size=8), st.dictionaries(st.from_regex(r"SGLANG_[A-Z]{1,8}", fullmatch=True), PLAIN_TEXT)
)
def test_a_command_reads_its_own_text_back(given_words: list[str], environment: dict[str, str]) -> None:
    environment = {name: value for name, value in environment.items() if name not in command._OURS}
    launch = LaunchCommand(
        ("--x", *(w for w in given_words if w not in ("...", "\\", "[...]"))), tuple(environment.items())
    )

    again = read(launch.text())

    assert (again.arguments, dict(again.environment)) == (launch.arguments, environment)


@settings(deadline=None)
@given(words)
def test_json_lists_are_taken_word_for_word(given_words: list[str]) -> None:
    plain = [word for word in given_words if "$" not in word]
    text = json.dumps(["python3", "-m", "sglang.launch_server", "--x", *plain, "end"])

    try:
        found = arguments(text)
    except BadInput:
        return
    assert len(found) == len(plain) + 2


FRAGMENTS = [
    *(MODULE, "sglang serve", "docker run ", "img ", "-e ", "A=", "$A", "${A:-", "${A", "}", "(", ")", "'", '"', "`"),
    *("\\", "\n", " ", "#", ";", "&&", "|", ">", "<", "<<", "<X>", "2>&1", "^", "bash -c ", "command: ", "- ", "["),
    *("]", "{", ":", "&a ", "*a", "--x", "=", "$(", "$'", "\t", "é", "–"),
]
pieces = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)


@settings(deadline=None)
@given(pieces)
def test_any_text_is_a_launch_or_an_error_of_ours(text: str) -> None:
    try:
        found = read(text)
    except ErrataError:
        return
    assert all(isinstance(word, str) and "\0" not in word for word in found.arguments)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_unicode_is_a_launch_or_an_error_of_ours(text: str) -> None:
    try:
        read(f"{MODULE} {text}")
    except ErrataError:
        return


HOSTILE = {
    "backslashes": "\\ #" * 21_000,
    "quotes": "'" * 65_000,
    "opened quotes": "\"'" * 30_000,
    "braces": "${A:-" * 13_000,
    "substitutions": "$(" * 32_000,
    "backticks": "`a` " * 16_000,
    "assignments": "A=$A$A;" * 9_000,
    "doubling": "A=xx;" + "A=$A$A;" * 9_000,
    "arrays": "A=(x);" + "A+=(${A[@]});" * 4_000,
    "empty elements": "A=(" + "'' " * 10_000 + ");" + "b ${A[@]:-};" * 2_000,
    "exports": "export A%d=1;b;" * 4_000,
    "options on lines": MODULE + "\n-a" * 20_000,
    "launches": f"{MODULE};" * 2_000,
    "dockers": "docker run -e A=1 img " * 3_000,
    "shells": "bash -c " * 8_000,
    "prompts": "a@b:" * 16_000,
    "placeholders": "<a" * 32_000,
    "comments": "#\n" * 32_000,
    "escapes": "\x1b[" * 30_000,
    "sequences": "[" * 65_000,
    "mappings": "command:\n" + "".join(" " * i + "a:\n" for i in range(300)),
    "anchors": "command: &a [x]\n" + "".join(f"k{i}: &b{i} [*a, *a]\n" for i in range(1_500)),
    "laughs": "command: x\na0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 900)),
    "merges": "command: x\na0: &a0 {k: v}\n"
    + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 900)),
    "numbers": "[" + "9" * 60_000 + "]",
    "dashes": "–" * 30_000,
    "dollars": "$" * 65_000,
    "carets": "^\n" * 30_000,
    "json": '{"a":' * 10_000,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_answered_within_a_bound(name: str) -> None:
    """Processor time, not wall clock, and a bound far above what is needed: a quadratic reader takes minutes."""
    began = time.process_time()

    for text in (HOSTILE[name][:COMMAND_LIMIT], (MODULE + " --x " + HOSTILE[name])[:COMMAND_LIMIT]):
        try:
            read(text)
        except ErrataError:
            continue

    assert time.process_time() - began < 20


def test_a_megabyte_is_refused_at_once() -> None:
    with pytest.raises(TooLarge):
        read(f"{MODULE} " + "--x " * 250_000)


# -- options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("--tp 2", "2"),
        ("--tp=2", "2"),
        ("--tp-size 2 --tp 4", "4"),
        ("--tp_size 2", "2"),
        ("--tp", None),
        ("--tp --x", None),
        ("--other 1", None),
    ],
)
def test_the_last_value_of_an_option(line: str, value: str | None) -> None:
    assert option(line.split(), "--tp", "--tp-size") == value
