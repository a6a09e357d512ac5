"""The OpenAPI document describes what the API answers: schemathesis looks for a counter-example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from app.store.engine import Store
from app.web.app import create_app
from app.web.parts import Parts
from tests.web.conftest import Client

DOCUMENT = create_app(Parts(Store("sqlite:///:memory:"))).openapi()
# What needs an engine is looked at where there is one (tests/check).
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT).exclude(path_regex="^/api/(check|engines|hardware|models)|^/readyz")


@pytest.fixture(scope="module")
def api(store: Store) -> Iterator[Client]:
    """A client of the whole API over the small database."""
    app = create_app(Parts(store))
    app.state.matcher.start()
    made = Client(app)
    yield made
    made.close()


@SCHEMA.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described(case: schemathesis.Case[Any], api: Client) -> None:
    sent = case.as_transport_kwargs(base_url="http://testserver")
    answer = api.request(
        sent["method"],
        sent["url"],
        params=sent.get("params"),
        headers=sent.get("headers"),
        content=sent.get("data") if not isinstance(sent.get("data"), dict) else None,
        json=sent.get("json"),
    )

    assert answer.status_code != 500
    # A cursor is opaque: that it has the right letters does not make it one.
    opaque: list[Any] = [positive_data_acceptance] if "cursor" in (case.query or {}) else []
    case.validate_response(answer, excluded_checks=opaque)


def test_errors_are_described_as_problem_documents() -> None:
    for path, item in DOCUMENT["paths"].items():
        for operation in item.values():
            for status, response in operation["responses"].items():
                if status != "200":
                    assert list(response["content"]) == ["application/problem+json"], path
    assert "HTTPValidationError" not in DOCUMENT["components"]["schemas"]
