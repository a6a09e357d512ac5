"""Which texts reach a user as an error without being raised.

They are recognised by how they are handed over: an abort (`req.set_finish_with_abort(text)`), an error response
(`create_error_response(text)`, a JSON response with an error status), a result object (`error_message=text`), a
refusal (`return False, text`) or the return of a validation function.
"""

from __future__ import annotations

import ast
import re

from app.mine.source import dotted
from app.mine.text import Parts, Text

TEXT_KEYWORDS = ("message", "detail", "msg", "error_message", "error_msg", "err_msg", "reason", "error", "description")
_HANDS_OVER = re.compile(
    r"(?:set_finish_with_abort|prepare_abort|FINISH_ABORT|abort|abort_with_\w+|\w*error_response|\w*ErrorResponse"
    r"|set_details)\Z"
)
_ERROR_KEYWORDS = ("error_message", "error_msg", "err_msg")
_HOLDS_ERROR = re.compile(r"(?:error_message|error_msg|err_msg|failure_reason|fail_reason|error)\Z")
_VALIDATES = re.compile(
    r"(?:^|_)(?:validate|validation|verify|check|error|reject|unsupported|incompatible|refus)\w*", re.I
)
_VALIDATED_NAMES = re.compile(r"(?:.*_)?(?:err|error|msg|message|error_msg|reason)\Z")
_LOGS = re.compile(r"(?:.*\.)?(?:log|logger|logging|warnings)\.\w+\Z|print\Z")
_WORDS = re.compile(r"[^\W\d_]{2,}")


def reads_as_sentence(text: Text) -> bool:
    """Tell whether some alternative has the words of a message: at least two, and eight letters."""
    return any(_sentence(parts) for parts in text.alternatives)


def _sentence(parts: Parts) -> bool:
    words = [word for part in parts if isinstance(part, str) for word in _WORDS.findall(part)]
    return len(words) >= 2 and sum(map(len, words)) >= 8


def holds_error(attribute: str) -> bool:
    """Tell whether an attribute of this name carries an error text to whoever reads the object."""
    return bool(_HOLDS_ERROR.match(attribute))


def handed_over(node: ast.Call) -> ast.expr | None:
    """Return the expression of the text that a call hands to a user as an error, if it does."""
    function = node.func
    if isinstance(function, ast.Attribute):
        name = function.attr
    elif isinstance(function, ast.Name):
        name = function.id
    else:
        return None
    for keyword in node.keywords:
        if keyword.arg in _ERROR_KEYWORDS:
            return None if _LOGS.match(dotted(function)) else keyword.value
    if name in ("exit", "error"):
        return node.args[0] if node.args and dotted(function) in ("sys.exit", "parser.error") else None
    if _HANDS_OVER.match(name):
        return _first_text(node)
    return _response_text(node) if name.endswith("Response") else None


def _first_text(node: ast.Call) -> ast.expr | None:
    for keyword in node.keywords:
        if keyword.arg in TEXT_KEYWORDS:
            return keyword.value
    candidates = [a for a in node.args[:3] if not isinstance(a, ast.Starred)]
    for argument in candidates:
        if isinstance(argument, (ast.JoinedStr, ast.BinOp)) or (
            isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        ):
            return argument
    for argument in candidates:
        if isinstance(argument, ast.Name) and _VALIDATED_NAMES.match(argument.id):
            return argument
    return candidates[0] if candidates and not isinstance(candidates[0], ast.Constant) else None


def _response_text(node: ast.Call) -> ast.expr | None:
    """Return the text in a response whose status says that something failed."""
    status = next((k.value for k in node.keywords if k.arg in ("status_code", "status")), None)
    if status is None or (isinstance(status, ast.Constant) and str(status.value)[:1] in "123"):
        return None
    if dotted(status).rpartition(".")[2] in ("OK", "ACCEPTED", "CREATED", "HTTP_200_OK"):
        return None
    content = next((k.value for k in node.keywords if k.arg in ("content", "body")), None)
    if content is None and node.args:
        content = node.args[0]
    return _in_body(content)


def _in_body(content: ast.expr | None) -> ast.expr | None:
    if isinstance(content, ast.Dict):
        for key, value in zip(content.keys, content.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in (*TEXT_KEYWORDS, "status"):
                found = _in_body(value)
                if found is not None:
                    return found
        return None
    if isinstance(content, (ast.JoinedStr, ast.BinOp, ast.IfExp, ast.Name)):
        return content
    return content if isinstance(content, ast.Constant) and isinstance(content.value, str) else None


def is_refusal(node: ast.Tuple) -> bool:
    """Tell whether a returned tuple says no: `None, text` or `False, text`."""
    first = node.elts[0] if node.elts else None
    return isinstance(first, ast.Constant) and (first.value is None or first.value is False)


def validates(function: str, value: ast.expr) -> bool:
    """Tell whether a function of this name returns its text as an error."""
    if isinstance(value, ast.Name) and not _VALIDATED_NAMES.match(value.id):
        return False
    return bool(_VALIDATES.search(function))
