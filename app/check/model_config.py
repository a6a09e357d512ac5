"""A configuration that somebody gives us: pasted, or fetched from a model hub. Checked before SGLang sees it.

SGLang takes sizes from it to build a model on paper, so what costs time or memory there is bounded here: length,
depth, number of values, and the fields that count layers, experts and widths. Fields that name code are dropped.
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import cast

from app.check.catalogue import Json
from app.errors import BadInput, NotFound, OutOfTime, TooLarge, Unavailable

MAX_BYTES = 1 << 20
MAX_DEPTH = 16
MAX_VALUES = 100_000
MAX_KEY = 300
MAX_TEXT = 20_000
MAX_NUMBER = 1 << 53
NAMES_CODE = ("auto_map", "custom_pipelines", "_name_or_path", "_commit_hash")
# The largest published models have 128 layers, 896 experts, width 18,432 and 262,400 tokens; these leave room.
BOUNDS = {
    "num_hidden_layers": 512, "num_layers": 512, "n_layer": 512, "depth": 512, "num_nextn_predict_layers": 64,
    "num_experts": 4096, "n_routed_experts": 4096, "num_local_experts": 4096, "moe_num_experts": 4096,
    "num_attention_heads": 4096, "num_key_value_heads": 4096, "n_head": 4096, "head_dim": 8192,
    "hidden_size": 1 << 17, "n_embd": 1 << 17, "intermediate_size": 1 << 20, "moe_intermediate_size": 1 << 20,
    "vocab_size": 1 << 22, "max_position_embeddings": 1 << 26,
}  # fmt: skip
_DIGITS = 19
_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


@dataclass(frozen=True, slots=True)
class Given:
    """A configuration that passed: `files` as a model folder holds them, and what was dropped from it."""

    files: dict[str, str]
    model_type: str
    dropped: tuple[str, ...] = ()


def pasted(text: str | bytes) -> Given:
    """Check the text of a `config.json`. Raises: BadInput, TooLarge: says what is wrong and where."""
    if len(text) > MAX_BYTES:
        raise TooLarge(f"the configuration has {len(text):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        value = json.loads(
            text, parse_int=_whole, parse_float=_real, parse_constant=_constant, object_pairs_hook=_pairs
        )
    except RecursionError:
        raise BadInput(f"the configuration is nested deeper than {MAX_DEPTH} levels") from None
    except UnicodeDecodeError:
        raise BadInput("the configuration is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadInput(
            f"the configuration is not JSON: {error.msg}, line {error.lineno} column {error.colno}"
        ) from None
    return checked(value)


def checked(value: object) -> Given:
    """Check a configuration that JSON has already read. Raises: BadInput."""
    if not isinstance(value, dict):
        raise BadInput("a configuration is a JSON object")
    _bound(value)
    dropped = tuple(sorted(_without_code(value)))
    if not isinstance(value.get("model_type"), str):
        raise BadInput("the configuration has no model_type, which says what class it is for")
    architectures = value.get("architectures")
    if not isinstance(architectures, list) or not architectures or not isinstance(architectures[0], str):
        raise BadInput("the configuration has no architectures, which name the model class")
    return Given({"config.json": json.dumps(value, indent=1)}, cast("str", value["model_type"]), dropped)


def _bound(root: dict[str, Json]) -> None:
    """Refuse what is too deep, too many, too long or too big. Without recursion."""
    count = 0
    waiting: list[tuple[str, Json, int]] = [("", cast("Json", root), 1)]
    while waiting:
        place, value, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            raise BadInput(f"the configuration is nested deeper than {MAX_DEPTH} levels")
        if count > MAX_VALUES:
            raise BadInput(f"the configuration holds more than {MAX_VALUES:,} values")
        if isinstance(value, dict):
            waiting += [(_key(key), item, depth + 1) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(place, item, depth + 1) for item in value]
        elif isinstance(value, str):
            if len(value) > MAX_TEXT:
                raise BadInput(f"{place}: a text of {len(value):,} characters; at most {MAX_TEXT:,} are read")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _in_bounds(place, value)


def _in_bounds(place: str, value: float) -> None:
    if place in BOUNDS and not 0 <= value <= BOUNDS[place]:
        raise BadInput(f"{place}: {value} is not between 0 and {BOUNDS[place]:,}")
    if value not in (float("inf"), float("-inf")) and abs(value) > MAX_NUMBER and isinstance(value, int):
        raise BadInput(f"{place}: {value} is too large a number")


def _key(key: str) -> str:
    if not key or len(key) > MAX_KEY or not key.isprintable():
        raise BadInput(f"{key[:40]!r} is no name of a field")
    return key


def _without_code(root: dict[str, Json]) -> set[str]:
    """Remove, at every level, the fields that name code or another place; return their names."""
    found: set[str] = set()
    waiting: list[Json] = [cast("Json", root)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for name in NAMES_CODE:
                if value.pop(name, None) is not None:
                    found.add(name)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise BadInput(f"a number of {len(digits):,} digits is too large")
    return int(digits)


def _real(digits: str) -> float:
    if len(digits) > 64:
        raise BadInput(f"a number of {len(digits):,} digits is too long")
    return float(digits)


def _constant(name: str) -> float:
    if name == "NaN":
        raise BadInput("NaN is no value for a field")
    return float(name.replace("Infinity", "inf"))  # published Mamba configurations have time_step_limit [0, Infinity]


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = next(key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1)
        raise BadInput(f"{twice[:40]!r} is given twice")
    return value


# -- from a model hub ---------------------------------------------------------------------------------------


class Hub:
    """Fetches `config.json`, and nothing else, of a public repository of a model hub. Off unless an operator asks.

    Blocks: call it in a thread. Redirects are followed within `hosts` only; the answer passes the same checks
    as a pasted configuration.
    """

    def __init__(self, base_url: str, *, timeout_s: float = 5.0, hosts: tuple[str, ...] = ()) -> None:
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise BadInput(f"{base_url!r} is no address of a model hub")
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_Redirects({parts.netloc, *hosts}, parts.scheme))

    def config(self, hub_id: str) -> Given:
        """Return the checked configuration of a repository.

        Raises: NotFound: there is none, or it is not public. OutOfTime, Unavailable, BadInput, TooLarge.
        """
        if not _HUB_ID.fullmatch(hub_id):
            raise NotFound(f"{hub_id[:60]!r} is no name of a repository on the hub")
        request = urllib.request.Request(
            f"{self._base_url}/{hub_id}/resolve/main/config.json", headers={"User-Agent": "errata"}
        )
        deadline = time.monotonic() + self._timeout_s
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                return pasted(_read(answer, deadline))
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (401, 403, 404):
                raise NotFound(f"the hub has no public config.json of {hub_id}") from None
            raise Unavailable(f"the hub answered {error.code}") from None
        except TimeoutError:
            raise OutOfTime(f"the hub gave no answer within {self._timeout_s:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            if isinstance(getattr(error, "reason", None), TimeoutError):
                raise OutOfTime(f"the hub gave no answer within {self._timeout_s:g} s") from None
            raise Unavailable("the hub cannot be reached") from None


def _read(answer: http.client.HTTPResponse, deadline: float) -> bytes:
    """Read a bounded body, and stop a server that sends drop by drop."""
    body = b""
    while chunk := answer.read1(1 << 16):
        body += chunk
        if len(body) > MAX_BYTES:
            raise TooLarge(f"the hub's config.json has more than {MAX_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    return body


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 4

    def __init__(self, hosts: set[str], scheme: str) -> None:
        self._hosts, self._scheme = hosts, scheme

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]  # noqa: PLR0917
        parts = urllib.parse.urlsplit(newurl)
        if parts.netloc not in self._hosts or parts.scheme != self._scheme:
            raise Unavailable(f"the hub sent us to another host, {(parts.hostname or '')[:60]}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
