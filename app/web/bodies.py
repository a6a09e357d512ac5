"""Request bodies, read with a bound: what is over it is refused without being read."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from app.errors import BadInput, TooLarge

FORM = "application/x-www-form-urlencoded"


async def bounded(request: Request, limit: int) -> bytes:
    """Return the body of a request.

    Raises: TooLarge: it is over `limit` bytes; the rest is not read.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise TooLarge(f"The body is over {limit:,} bytes.", limit=limit)
    return bytes(body)


async def form(request: Request, limit: int) -> dict[str, str]:
    """Return the fields of a plain HTML form.

    Raises: TooLarge: its values together are over `limit` bytes. BadInput: it is no such form.
    """
    kind = request.headers.get("content-type", FORM).partition(";")[0].strip().lower()
    if kind != FORM:
        raise BadInput(f"Send a form as {FORM}.")
    # A byte of text takes up to three in a form.
    body = (await bounded(request, 3 * limit)).decode("ascii", "replace")
    try:
        return dict(parse_qsl(body, keep_blank_values=True, errors="replace", max_num_fields=10))
    except ValueError:
        raise BadInput("The form has too many fields.") from None
