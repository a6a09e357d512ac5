"""What people paste to start SGLang -> `LaunchCommand`. Never handed to a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.check.manifest import Container, containers, looks_like_manifest
from app.check.shell import Notes, Scanner, Statement, Value, Variables, cleaned, statements
from app.errors import BadInput, TooLarge

COMMAND_LIMIT = 64 * 1024
ARGUMENTS_LIMIT = 4096
ENVIRONMENT_LIMIT = 64
VALUE_LIMIT = 4096
NESTING_LIMIT = 3

Kind = Literal["module", "serve", "docker", "compose", "kubernetes", "list", "arguments"]

# Names that SGLang reads and that may be set by the asker. Those in _OURS would change the simulated machine or
# the process it runs in, not SGLang's decision.
_READ_BY_SGLANG = re.compile(r"(?:SGLANG|SGL)_[A-Z0-9_]{1,80}|FLASHINFER_[A-Z0-9_]{1,80}|DG_[A-Z0-9_]{1,80}")
_OURS = frozenset(
    {"SGLANG_HOST_IP", "SGLANG_USE_CPU_ENGINE", "SGLANG_USE_MODELSCOPE", "SGLANG_CACHE_DIR", "SGLANG_PLUGINS"}
)

_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[0-9.]*(?:\.exe)?", re.IGNORECASE)
_PYTHON_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_MODULES = frozenset({"sglang.launch_server", "sglang"})
_RELEASE = re.compile(r"(?<![\d.])(\d+\.\d+\.\d+(?:\.post\d+)?)(?![\d.])")
_IMAGE = re.compile(r"[^\s]*sglang[^\s:@]*(?::v?(?P<tag>[\w.-]+))?", re.IGNORECASE)
_DASHES = re.compile(r"(?:[—―]|–-?|−−?|--?[–—])(?=[A-Za-z])")
_OTHERS = {
    "sglang_router.launch_server": "SGLang's router",
    "sglang_router.launch_router": "SGLang's router",
    "sglang.launch_router": "SGLang's router",
    "sglang.bench_serving": "a benchmark client",
    "sglang.bench_one_batch": "a benchmark that starts no server",
    "sglang.bench_offline_throughput": "a benchmark that starts no server",
    "sglang.check_env": "a report of the environment",
    "sglang.profiler": "a profiler client",
    "vllm.entrypoints.openai.api_server": "vLLM's server",
}
_SHELLS = re.compile(r"(?:.*/)?(?:bash|sh|dash|zsh|ash)")
_DOCKER = frozenset({"docker", "podman", "nerdctl", "docker-compose"})
_DOCKER_SWITCHES = frozenset(
    {
        *("--detach", "--interactive", "--tty", "--rm", "--privileged", "--init", "--read-only", "--publish-all"),
        *("--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--disable-content-trust", "--quiet", "--help"),
        *("--no-hosts", "--tls-verify", "--replace", "--build", "--no-deps", "--service-ports", "--remove-orphans"),
        *("--use-aliases", "--no-TTY"),
    }
)
_DOCKER_LETTERS = frozenset("ditPqT")
_WITH_VALUE = re.compile(r"-[A-Za-z]*[euvpwlmc]")
_HELP = (
    "This is not an SGLang launch command. Paste one like "
    "`python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2` or `sglang serve --model-path Qwen/Qwen3-8B`, "
    "bare or inside `docker run`, a compose file or a Kubernetes manifest."
)


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """A launch as SGLang's own argument parser gets it.

    Shape: `arguments` follow the module name; `environment` holds the allow-listed variables; `release` is one that
    an image tag or `pip install` in the text names, "" else; `visible` is how many devices the text makes visible,
    None where it does not say; `notes` are sentences about what was read otherwise than written.
    """

    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    kind: Kind = "module"
    release: str = ""
    visible: int | None = None
    notes: tuple[str, ...] = ()

    def option(self, *names: str) -> str | None:
        """Return the last value given to one of the options `names` (`--tp-size`), `_` and `-` alike."""
        return option(self.arguments, *names)

    def text(self, arguments: Sequence[str] | None = None) -> str:
        """Return the command as one line that a POSIX shell reads back, with other `arguments` if given."""
        words = [f"{name}={value}" for name, value in self.environment]
        launcher = "sglang serve" if self.kind == "serve" else "python -m sglang.launch_server"
        rest = [shlex.quote(a) for a in (self.arguments if arguments is None else arguments)]
        return " ".join([*(shlex.quote(w) if "=" not in w else _assignment(w) for w in words), launcher, *rest])


def _assignment(word: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={shlex.quote(value)}"


def may_set(name: str) -> bool:
    """Say whether an environment variable of this name is applied to a check."""
    return _READ_BY_SGLANG.fullmatch(name) is not None and name not in _OURS


def option(arguments: Sequence[str], *names: str) -> str | None:
    """Return the last value given to one of the options `names`, as argparse takes it; None if there is none."""
    found = None
    for i, argument in enumerate(arguments):
        head, equals, tail = argument.partition("=")
        if head.replace("_", "-") in names:
            if equals:
                found = tail
            elif i + 1 < len(arguments) and not arguments[i + 1].startswith("--"):
                found = arguments[i + 1]
    return found


def read(text: str) -> LaunchCommand:
    """Read a pasted launch.

    Raises: TooLarge: over COMMAND_LIMIT bytes. BadInput: not a launch, cut off, or with values that only a shell
            elsewhere knows; `extra["variables"]` names those.
    """
    if len(text) > COMMAND_LIMIT or len(text.encode("utf-8", "surrogatepass")) > COMMAND_LIMIT:
        raise TooLarge(f"The command is longer than {COMMAND_LIMIT} bytes.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput("The command is not valid Unicode.") from None
    notes = Notes()
    text = cleaned(text, notes)
    if not text.strip():
        raise BadInput("The command is empty. " + _HELP)
    launches = _launches(text, notes)
    if not launches:
        raise _not_a_launch(text)
    if len(launches) > 1:
        notes.add(f"The text holds {len(launches)} launches; the first one was read.")
    return _finished(launches[0], text, notes)


def _launches(text: str, notes: Notes) -> list[_Launch]:
    if not looks_like_manifest(text):
        return _from_script(text, notes, {}, 0)
    try:
        found, refused = _from_manifest(text, notes), None
    except BadInput as error:
        found, refused = [], error
    if not found:
        found = _from_script(text, notes, {}, 0)
    if not found and refused is not None:
        raise refused
    return found


@dataclass(frozen=True, slots=True)
class _Launch:
    arguments: tuple[Value, ...]
    environment: dict[str, Value]
    kind: Kind
    image: str = ""


def _finished(launch: _Launch, text: str, notes: Notes) -> LaunchCommand:
    values = list(launch.arguments)
    if missing := list(dict.fromkeys(m for v in values for m in v.missing)):
        names = ", ".join(f"`{name}`" for name in missing[:8])
        raise BadInput(
            f"The command needs values that are not in it: {names}. Write them out, or put `NAME=value` lines before "
            "the command; nothing is taken from this machine.",
            variables=missing[:50],
        )
    arguments = [_dashed(v.text, notes) for v in values]
    if launch.kind == "serve":
        arguments = _served(arguments)
    while arguments and arguments[-1] in ("...", "…", "[...]", "\\"):
        notes.add(f"`{arguments.pop()}` at the end was left out.")
    if len(arguments) > ARGUMENTS_LIMIT:
        raise BadInput(f"The command has more than {ARGUMENTS_LIMIT} arguments.")
    environment, visible = _allowed(launch.environment, text, notes)
    image = _IMAGE.search(launch.image or text)
    release = _RELEASE.search((image and image["tag"]) or "") or re.search(
        r"sglang(?:\[[\w,-]{0,60}\])?==" + _RELEASE.pattern[len(r"(?<![\d.])") :], text
    )
    return LaunchCommand(
        tuple(arguments), environment, launch.kind, release[1] if release else "", visible, tuple(notes.lines)
    )


def _served(arguments: list[str]) -> list[str]:
    """Read what `sglang serve` itself takes: a leading model name, and the backend."""
    rest: list[str] = []
    i = 0
    while i < len(arguments):
        name, equals, value = arguments[i].partition("=")
        if name != "--model-type":
            rest.append(arguments[i])
            i += 1
            continue
        chosen = value if equals else "".join(arguments[i + 1 : i + 2])
        if chosen not in ("auto", "llm"):
            raise BadInput(
                f"`--model-type {chosen[:40]}` starts another server than the language model server checked here."
            )
        i += 1 if equals else 2
    return ["--model-path", *rest] if rest and not rest[0].startswith("-") else rest


def _dashed(argument: str, notes: Notes) -> str:
    """Return `argument` with a word processor's dash at its start as hyphens."""
    found = _DASHES.match(argument)
    if not found or (argument.startswith("--") and found[0] == "--"):
        return argument
    name = argument[found.end() :]
    fixed = ("-" if len(name) == 1 else "--") + name
    notes.add(
        f"`{argument[:60]}` starts with a typographic dash and was read as `{fixed[:60]}`; "
        "SGLang would refuse it as written."
    )
    return fixed


def _allowed(
    environment: Mapping[str, Value], text: str, notes: Notes
) -> tuple[tuple[tuple[str, str], ...], int | None]:
    """Return the variables that are applied, and how many devices are made visible."""
    kept: dict[str, str] = {}
    visible = None
    ignored: list[str] = []
    for name, value in environment.items():
        if name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
            devices = [d for d in value.text.split(",") if d.strip() and d.strip() not in ("all", "none", "void")]
            visible = len(devices) if devices and not value.missing else visible
        elif not may_set(name):
            if not any(f"{start}{name}" in text for start in ("$", "${", "$(")):  # else it was there to be expanded
                ignored.append(name)
        elif value.missing:
            notes.add(f"`{name}` was left out: its value {value.missing[0]} is not in the text.")
        elif len(value.text) > VALUE_LIMIT or len(kept) >= ENVIRONMENT_LIMIT or "\n" in value.text:
            raise BadInput(f"More than {ENVIRONMENT_LIMIT} variables, or one longer than {VALUE_LIMIT} characters.")
        else:
            kept[name] = value.text
    if ignored:
        shown = ", ".join(f"`{name[:60]}`" for name in ignored[:6]) + (" and others" if len(ignored) > 6 else "")
        notes.add(f"Not applied, because the checked start-up does not depend on it: {shown}.")
    return tuple(kept.items()), visible


def _not_a_launch(text: str) -> BadInput:
    for module, what in _OTHERS.items():
        if module in text:
            return BadInput(f"`{module}` is {what}, not SGLang's server. {_HELP}")
    if re.search(r"\b(?:ServerArgs|sgl\.Engine|sglang\.Engine|Engine)\(", text):
        return BadInput(f"This is Python code. Write its arguments as a launch command. {_HELP}")
    if re.search(r"^Traceback \(most recent call last\)|^\w*(?:Error|Exception): ", text, re.MULTILINE):
        return BadInput(
            "This is a traceback or a log, not a launch command. Paste it at /identify.", identify="/identify"
        )
    return BadInput(_HELP)


# -- statements ---------------------------------------------------------------------------------------------


def _from_script(text: str, notes: Notes, given: Mapping[str, str], depth: int) -> list[_Launch]:
    """Return the launches in shell text, in order."""
    launches: list[_Launch] = []
    open_launch = False
    for statement in statements(text, notes, given):
        first = statement.words[0].text if statement.words else ""
        if open_launch and statement.after_newline and not statement.assigned and re.match(r"--?[A-Za-z]", first):
            notes.add(
                "Lines that start with an option were read as part of the command; a shell needs a `\\` before them."
            )
            last = launches[-1]
            if len(last.arguments) > ARGUMENTS_LIMIT:
                break
            launches[-1] = _Launch((*last.arguments, *statement.words), last.environment, last.kind, last.image)
            continue
        found = _launch(statement, notes, depth)
        open_launch = found is not None
        if found is not None:
            launches.append(found)
    return launches


def _launch(statement: Statement, notes: Notes, depth: int) -> _Launch | None:
    environment = dict(statement.exported) | dict(statement.assigned)
    words = statement.words
    return _read_words(words, environment, notes, depth)


def _read_words(words: Sequence[Value], environment: dict[str, Value], notes: Notes, depth: int) -> _Launch | None:
    """Find the launcher in one command line. What stands before it is a wrapper: `nohup`, `env`, `docker run`, ..."""
    texts = [_DASHES.sub("-", w.text) if len(w.text) < 4 else w.text for w in words]  # `python –m`
    if not texts:
        return None
    if texts[0] in ("--model-path", "--model") or texts[0].startswith(("--model-path=", "--model=")):
        notes.add("The text starts with an option; it was read as the arguments of `python -m sglang.launch_server`.")
        return _Launch(tuple(words), environment, "arguments")
    docker = next((i for i, t in enumerate(texts) if t.rsplit("/", 1)[-1] in _DOCKER), None)
    if docker is not None and not any(_launcher(texts, i) for i in range(docker)):
        return _in_docker(words[docker:], environment, notes, depth + 1) if depth < NESTING_LIMIT else None
    for i, text in enumerate(texts):
        if (launcher := _launcher(texts, i)) is not None:
            return _Launch(tuple(words[launcher[0] :]), environment | _wrapped(words[:i]), launcher[1])
        if _SHELLS.fullmatch(text) and (script := _shell_script(texts, i)) is not None and depth < NESTING_LIMIT:
            inner = environment | _wrapped(words[:i])
            known = {n: v.text for n, v in inner.items() if not v.missing}
            launches = _from_script(script, notes, known, depth + 1)
            return launches[0] if launches else None
    return None


def _launcher(texts: Sequence[str], i: int) -> tuple[int, Kind] | None:
    """Return where the arguments start if the launcher stands at `i`."""
    name = texts[i].rsplit("/", 1)[-1]
    if name == "sglang" and i + 1 < len(texts) and texts[i + 1] == "serve":
        return i + 2, "serve"
    if name == "launch_server.py" and "router" not in texts[i]:
        return i + 1, "module"
    if texts[i] == "-m" and i + 1 < len(texts):
        module, start = texts[i + 1], i + 2
    elif texts[i].startswith("-m") and texts[i][2:] in _MODULES:
        module, start = texts[i][2:], i + 1
    else:
        return None
    if module == "sglang.launch_server":
        return start, "module"
    if module in ("sglang", "sglang.cli.main") and texts[start : start + 1] == ["serve"]:
        return start + 1, "serve"
    return None


def _shell_script(texts: Sequence[str], i: int) -> str | None:
    """Return what `bash -c` runs."""
    for j in range(i + 1, len(texts)):
        if not texts[j].startswith("-"):
            return None
        if not texts[j].startswith("--") and "c" in texts[j]:
            return texts[j + 1] if j + 1 < len(texts) else None
    return None


def _wrapped(words: Sequence[Value]) -> dict[str, Value]:
    """Return the `NAME=value` words of a wrapper (`env A=1 nohup`)."""
    found = {}
    for word in words:
        name, equals, value = word.text.partition("=")
        if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
            found[name] = Value(value, word.missing)
    return found


def _in_docker(words: Sequence[Value], environment: dict[str, Value], notes: Notes, depth: int) -> _Launch | None:
    """Read `docker run [options] image command...` (also exec, compose run/exec)."""
    texts = [w.text for w in words]
    verb = next((i for i, t in enumerate(texts) if t in ("run", "exec", "create")), None)
    if verb is None:
        return None
    inside: dict[str, Value] = {}
    entrypoint: tuple[Value, ...] = ()
    i = verb + 1
    while i < len(texts) and texts[i].startswith(("-", "–", "—")) and len(texts[i]) > 1:
        name, equals, value = texts[i].partition("=")
        if name in _DOCKER_SWITCHES or (not name.startswith("--") and set(name[1:]) <= _DOCKER_LETTERS):
            i += 1
            continue
        if not name.startswith("--") and len(name) > 2 and name[1] in "evpwul":  # -eNAME=value
            name, value, width = name[:2], texts[i][2:], 1
        elif equals:
            width = 1
        else:
            value, width = "".join(texts[i + 1 : i + 2]), 2
        missing = words[i].missing + (words[i + 1].missing if width == 2 and i + 1 < len(words) else ())
        if name in ("-e", "--env"):
            variable, given, content = value.partition("=")
            inside[variable] = (
                Value(content, missing) if given else environment.get(variable, Value("", (f"${variable}",)))
            )
        elif name == "--entrypoint":
            entrypoint = (Value(value, missing),)
        i += width
    image, rest = "".join(texts[i : i + 1]), words[i + 1 :]
    found = _read_words((*entrypoint, *rest), inside, notes, depth)
    if found is None and rest and rest[0].text.startswith("--"):
        notes.add(
            "The container's command starts with an option; it was read as the arguments of `sglang.launch_server`."
        )
        found = _Launch(tuple(rest), inside, "docker")
    return None if found is None else _Launch(found.arguments, found.environment, _docker_kind(found.kind), image)


def _docker_kind(kind: Kind) -> Kind:
    return "serve" if kind == "serve" else "docker"


# -- manifests ----------------------------------------------------------------------------------------------


def _from_manifest(text: str, notes: Notes) -> list[_Launch]:
    launches = []
    for container in containers(text):
        found = _in_container(container, notes)
        if found is not None:
            kind: Kind = "serve" if found.kind == "serve" else _manifest_kind(container.kind)
            launches.append(_Launch(found.arguments, found.environment, kind, container.image))
    return launches


def _manifest_kind(kind: str) -> Kind:
    return "compose" if kind == "compose" else "list" if kind == "list" else "kubernetes"


def _in_container(container: Container, notes: Notes) -> _Launch | None:
    variables = Variables(container.environment)
    environment = {name: _interpolated(value, variables) for name, value in container.environment.items()}
    if container.script:
        words: tuple[Value, ...] = ()
        launches = _from_script(container.script.replace("$$", "$"), notes, container.environment, 0)
        if launches:
            return launches[0]
        words = tuple(v for s in statements(container.script, notes, container.environment) for v in s.words)
    else:
        shell = bool(container.words) and _SHELLS.fullmatch(container.words[0]) is not None
        words = tuple(Value(w) if shell else _interpolated(w, variables) for w in container.words)
    found = _read_words(words, environment, notes, 0)
    if found is None and words and words[0].text.startswith("--") and "sglang" in container.image:
        notes.add(
            "The container's command starts with an option; it was read as the arguments of `sglang.launch_server`."
        )
        found = _Launch(words, environment, "arguments")
    return found


def _interpolated(text: str, variables: Variables) -> Value:
    """Return a manifest's string with `$(NAME)` and `${NAME}` looked up in its own environment."""
    text = re.sub(r"\$\(([A-Za-z_]\w*)\)", r"${\1}", text) if "$(" in text else text
    values = variables.expand(Scanner(text, Notes()).interpolated())
    return Value(_joined(v.text for v in values), tuple(m for v in values for m in v.missing))


def _joined(texts: Iterable[str]) -> str:
    return "".join(texts)
