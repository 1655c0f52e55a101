"""The OpenAPI document: what each route answers, with which status, headers and keys. It sends nothing.

A route says what is its own (`answered`); what holds of every route is added once (`complete`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

from antiphon.http.access import AccessRules, is_open
from antiphon.http.answers import Error

Document = dict[str, Any]  # OpenAPI's own type

REF = "#/components/schemas/{model}"

NOT_FOUND, UNSUPPORTED_TYPE, RUN_TIMEOUT = 404, 415, 504

INFERENCE_ERRORS = (NOT_FOUND, RUN_TIMEOUT)
"""What a route that runs a model may answer besides the errors of every route."""

MANAGEMENT_ERRORS = (NOT_FOUND, UNSUPPORTED_TYPE)

_ERRORS: Mapping[int, str] = {
    400: "The request is wrong: a field, its audio, or its form.",
    401: "A key of this server is wanted, and none came.",
    403: "What is asked for is not allowed, to this caller or to anybody.",
    404: "No model or package has this id.",
    408: "The request did not arrive in time.",
    413: "The head, the body, a text or an audio is over its limit.",
    415: "The body is of a type that this route does not read.",
    500: "The engine failed, a model could not be loaded, or the server has a fault.",
    503: "Too much to do, too little memory, a worker that died, or a server that starts or stops.",
    504: "The engine made no progress for too long.",
}
_ANYWHERE = (400, 403, 408, 413, 500, 503)
"""What may come before a route is looked at, or at any time after."""

_ERROR_HEADERS: Mapping[int, tuple[str, str, str]] = {
    401: ("WWW-Authenticate", "string", "How to bring a key."),
    503: ("Retry-After", "integer", "Seconds after which to come back."),
}
_API_KEY, _ADMIN_KEY = "ApiKey", "AdminKey"
_MANAGEMENT = "management"
"""The tag of what needs `ui_management`, and an admin key where there are any."""


@cache
def schema_of(shape: Any) -> Document:  # whatever pydantic can describe
    """The JSON schema of a type; what it refers to stands under `$defs` until the document is complete."""
    return TypeAdapter(shape).json_schema(ref_template=REF)


def answered(
    content: Mapping[str, Any] | Any,  # a media type's shape each, or the one of a JSON answer
    *,
    status: int = 200,
    errors: Sequence[int] = (),
    timed: bool = False,
    description: str = "Done.",
) -> Document:
    """What a route answers, for `openapi_extra`: its own success, and the errors that not every route has.

    A shape of None is bytes or a text that has none. `timed` says that `Server-Timing` is set.
    """
    shapes = content if isinstance(content, Mapping) else {"application/json": content}
    success: Document = {
        "description": description,
        "content": {kind: {} if shape is None else {"schema": schema_of(shape)} for kind, shape in shapes.items()},
    }
    if timed:
        success["headers"] = {
            "Server-Timing": _header("string", "Milliseconds of the queue, the load and, where it is over, the run.")
        }
    return {"responses": {str(status): success, **{str(error): _error_ref(error) for error in errors}}}


def managed(shape: Any, *, errors: Sequence[int] = MANAGEMENT_ERRORS, description: str = "Done.") -> Document:
    """The same for a route of management, which answers JSON."""
    return {**answered(shape, errors=errors, description=description), "tags": [_MANAGEMENT]}


def refused(status: int, shape: Any) -> Document:  # whatever pydantic can describe
    """What a route answers with this status where it says more than an error does."""
    found = _error(status)
    found["content"]["application/json"]["schema"] = schema_of(shape)
    return found


def complete(app: FastAPI, rules: AccessRules) -> None:
    """Have this app's document say what holds of every route under these rules; call it once, after the routes."""
    draft: Callable[[], Document] = app.openapi

    def document() -> Document:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(draft(), rules)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way


def _completed(document: Document, rules: AccessRules) -> Document:
    """The draft, changed: FastAPI encoded it anew, so nothing in it is shared with a route or another application."""
    schemas: Document = document.setdefault("components", {}).setdefault("schemas", {})
    for path, method, operation in _operations(document):
        _name(operation, method, path)
        keys = _keys_for(path, operation, rules)
        operation["security"] = [{key: []} for key in keys]
        operation["responses"].pop("422", None)  # FastAPI's own refusal, which is a 400 here
        for status in (*_ANYWHERE, 401) if keys else _ANYWHERE:
            operation["responses"].setdefault(str(status), _error_ref(status))
    _hoist(document["paths"], schemas)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Error"] = _hoist(dict(schema_of(Error)), schemas)
    document["components"]["responses"] = {_error_name(status): _error(status) for status in _ERRORS}
    wanted = {_API_KEY: rules.accepted_keys, _ADMIN_KEY: rules.admin_keys}
    document["components"]["securitySchemes"] = {
        name: {"type": "http", "scheme": "bearer"} for name, keys in wanted.items() if keys
    }
    return document


def _operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _name(operation: Document, method: str, path: str) -> None:
    """Name it by what is called, and say in one line what it does: the first one of what its endpoint says."""
    words = path.removeprefix("/v1").replace("{", "").replace("}", "").strip("/").replace("/", "_")
    operation["operationId"] = f"{method}_{words}"
    summary, _, rest = operation.pop("description", operation["summary"]).partition("\n")
    operation["summary"] = summary.rstrip(".")
    if rest.strip():
        operation["description"] = rest.strip()


def _keys_for(path: str, operation: Document, rules: AccessRules) -> Sequence[str]:
    if is_open(path):
        return ()
    if rules.admin_keys and _MANAGEMENT in operation.get("tags", ()):
        return (_ADMIN_KEY,)
    return (_API_KEY,) if rules.accepted_keys else ()


def _hoist(part: Any, schemas: Document) -> Any:  # any part of a document
    """Move every `$defs` to where `REF` says that it is."""
    if isinstance(part, dict):
        for name, schema in part.pop("$defs", {}).items():
            schemas[name] = _hoist(schema, schemas)
        for inner in part.values():
            _hoist(inner, schemas)
    elif isinstance(part, list):
        for inner in part:
            _hoist(inner, schemas)
    return part


def _error_name(status: int) -> str:
    return f"Error{status}"


def _error_ref(status: int) -> Document:
    return {"$ref": f"#/components/responses/{_error_name(status)}"}


def _error(status: int) -> Document:
    found: Document = {
        "description": _ERRORS[status],
        "content": {"application/json": {"schema": {"$ref": REF.format(model="Error")}}},
    }
    if header := _ERROR_HEADERS.get(status):
        name, kind, description = header
        found["headers"] = {name: _header(kind, description)}
    return found


def _header(kind: str, description: str) -> Document:
    return {"required": True, "description": description, "schema": {"type": kind}}
