"""Configurations that somebody gives us: what is read, what is refused, and the fetch from a hub."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.check.catalogue import catalogue
from app.check.model_config import MAX_BYTES, Hub, pasted
from app.errors import BadInput, ErrataError, NotFound, OutOfTime, TooLarge, Unavailable

GOOD = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2}


def test_what_passes_is_written_as_a_model_folder() -> None:
    given = pasted(json.dumps(GOOD))

    assert json.loads(given.files["config.json"]) == GOOD
    assert given.model_type == "llama"


def test_every_configuration_of_the_catalogue_passes() -> None:
    for model in catalogue():
        text = model.files()["config.json"]
        if len(text) < MAX_BYTES:
            pasted(text)


def test_infinity_is_read_as_published_configurations_have_it() -> None:
    given = pasted(json.dumps({**GOOD, "time_step_limit": [0.0, float("inf")]}))

    assert "Infinity" in given.files["config.json"]


def test_fields_that_name_code_are_dropped_at_every_level() -> None:
    value = {
        **GOOD,
        "auto_map": {"AutoConfig": "x.Y"},
        "text_config": {"auto_map": {"AutoModel": "z.Z"}, "hidden_size": 8},
    }

    given = pasted(json.dumps(value))

    assert given.dropped == ("auto_map",)
    assert "auto_map" not in given.files["config.json"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("[]", "is a JSON object"),
        ("{}", "no model_type"),
        ('{"model_type": "llama"}', "no architectures"),
        ('{"model_type": "llama", "architectures": [3]}', "no architectures"),
        ("[" * 5000, "nested deeper|not JSON"),
        (json.dumps({**GOOD, "a": json.loads("[" * 20 + "]" * 20)}), "nested deeper than 16"),
        (json.dumps({**GOOD, "num_hidden_layers": 10**8}), "num_hidden_layers: 100000000 is not between"),
        (json.dumps({**GOOD, "text_config": {"num_experts": -1}}), "num_experts: -1 is not between"),
        ('{"a": ' + "9" * 1_000_00 + "}", "100,000 digits"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1, "a": 2}', "given twice"),
        ('{"": 1}', "no name of a field"),
        (json.dumps({**GOOD, "a": "x" * 30_000}), "a text of 30,000"),
        (json.dumps({**GOOD, "a": list(range(200_000))}), "more than 100,000 values|at most"),
        (json.dumps({**GOOD, "a": 2**60}), "too large a number"),
    ],
)
def test_what_is_refused_says_why(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        pasted(text)


def test_a_long_text_is_not_even_parsed() -> None:
    with pytest.raises(TooLarge):
        pasted(" " * (MAX_BYTES + 1))


@contextlib.contextmanager
def hub(
    status: int = 200, body: bytes = b"{}", *, location: str = "", slow_s: float = 0.0
) -> Iterator[tuple[str, list[str]]]:
    """Serve one answer for every path; yield the address and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            time.sleep(slow_s)
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


def test_only_config_json_is_fetched() -> None:
    with hub(body=json.dumps(GOOD).encode()) as (url, asked):
        assert Hub(url).config("acme/Model-1B").model_type == "llama"

    assert asked == ["/acme/Model-1B/resolve/main/config.json"]


@pytest.mark.parametrize("name", ["../../etc", "acme", "acme/a b", "acme/x/y", "http://a/b", "acme/..%2f"])
def test_what_is_no_hub_id_is_not_asked_for(name: str) -> None:
    with hub() as (url, asked), pytest.raises(NotFound):
        Hub(url).config(name)

    assert asked == []


@pytest.mark.parametrize(
    ("status", "body", "location", "error"),
    [
        (404, b"", "", NotFound),
        (401, b"", "", NotFound),
        (500, b"", "", Unavailable),
        (302, b"", "http://169.254.169.254/latest", Unavailable),
        (302, b"", "file:///etc/passwd", Unavailable),
        (200, b"x" * (MAX_BYTES + 2), "", TooLarge),
        (200, b"\xff\xfe", "", BadInput),
    ],
)
def test_other_answers_are_told_apart(status: int, body: bytes, location: str, error: type[ErrataError]) -> None:
    with hub(status, body, location=location) as (url, _), pytest.raises(error):
        Hub(url).config("acme/Model-1B")


def test_a_slow_hub_is_not_waited_for() -> None:
    with hub(slow_s=0.4) as (url, _), pytest.raises(OutOfTime):
        Hub(url, timeout_s=0.1).config("acme/Model-1B")


def test_a_hub_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        Hub("http://127.0.0.1:9", timeout_s=0.5).config("acme/Model-1B")


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput):
        Hub("file:///etc")
