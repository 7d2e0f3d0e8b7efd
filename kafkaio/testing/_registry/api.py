"""Confluent's API over HTTP: addresses, parameters and bodies.

The source is the API reference of Confluent's registry 8. `answer` is a function of the
request and the store; it performs no I/O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, unquote

from kafkaio.testing._registry import languages
from kafkaio.testing._registry.errors import (
    Refusal,
    bad_request,
    invalid_version,
    method_not_allowed,
    not_found,
    unprocessable,
)
from kafkaio.testing._registry.store import (
    GivenSchema,
    Reference,
    SchemaStore,
    StoredSchema,
    Version,
)

_LARGEST: Final = 2**31 - 1
_LATEST: Final = frozenset(("latest", "-1"))
_TRUE: Final = "true"

#: What can be written as JSON.
Body: TypeAlias = object


@dataclass(frozen=True, slots=True)
class Request:
    """A request, taken apart.

    Attributes:
        method: the method of HTTP.
        path: the path, as it was sent.
        query: the parameters behind it.
        body: the body.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def is_set(self, name: str) -> bool:
        """Whether a parameter is true."""
        return self.query.get(name, "").lower() == _TRUE

    def document(self) -> Mapping[str, object]:
        """Return the body, an object of JSON.

        Raises:
            Refusal: it is something else.
        """
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise bad_request(f"the body is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise bad_request("the body is not an object of JSON")
        return found


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer.

    Attributes:
        status: the status of HTTP.
        body: the body, as JSON.
        headers: further headers.
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def split_target(target: str) -> tuple[str, dict[str, str]]:
    """Return path and parameters of what a client asks for."""
    path, _, query = target.partition("?")
    return path, dict(parse_qsl(query, keep_blank_values=True))


def answer(store: SchemaStore, request: Request) -> Answer:
    """Serve one request."""
    try:
        return _json(200, _route(store, request))
    except Refusal as refusal:
        return refused(refusal)


def refused(refusal: Refusal) -> Answer:
    """Return the answer that is an error."""
    body = {"error_code": refusal.code, "message": refusal.message}
    return _json(refusal.status, body)


def _json(status: int, body: Body) -> Answer:
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return Answer(status, text.encode())


def _route(store: SchemaStore, request: Request) -> Body:
    is_known = False
    path = request.path.rstrip("/") or "/"
    for method, pattern, serve in _ROUTES:
        match = pattern.fullmatch(path)
        if match is None:
            continue
        is_known = True
        if method == request.method:
            # A name can hold a slash, which is why the path is split first.
            parts = [unquote(part) for part in match.groups()]
            return serve(store, request, *parts)
    raise method_not_allowed() if is_known else not_found()


# ---- what parameters say -------------------------------------------------------------


def _version_number(text: str) -> int | None:
    """Return a version; None for the latest."""
    if text in _LATEST:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= _LARGEST:
        raise invalid_version(text)
    return int(text)


def _schema_id(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > _LARGEST:
        raise not_found()
    return int(text)


def _text(document: Mapping[str, object], name: str) -> str:
    found = document.get(name)
    if not isinstance(found, str):
        raise unprocessable(f"{name} must be a string")
    return found


def _given(document: Mapping[str, object]) -> GivenSchema:
    if not document.get("schema"):
        raise Refusal(422, 42201, "Empty schema")
    kind = document.get("schemaType") or languages.AVRO
    references = document.get("references") or []
    if not isinstance(kind, str) or not isinstance(references, list):
        raise unprocessable("schemaType must be a string, and references an array")
    return GivenSchema(
        _text(document, "schema"), kind, tuple(_reference(each) for each in references)
    )


def _reference(found: object) -> Reference:
    if not isinstance(found, dict):
        raise unprocessable("a reference must be an object")
    version = found.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise unprocessable("the version of a reference must be a number")
    return Reference(_text(found, "name"), _text(found, "subject"), version)


def _content(schema: StoredSchema, request: Request) -> dict[str, Body]:
    given = schema.given
    is_serialized = request.query.get("format") == "serialized"
    text = schema.parsed.serialized() if is_serialized else given.text
    found: dict[str, Body] = {"schema": text}
    if given.kind != languages.AVRO:
        found["schemaType"] = given.kind
    if given.references:
        found["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in given.references
        ]
    return found


def _whole(version: Version, request: Request) -> dict[str, Body]:
    return {
        "subject": version.subject,
        "version": version.number,
        "id": version.schema.id,
        "guid": str(version.schema.guid),
        **_content(version.schema, request),
        **({"deleted": True} if version.is_deleted else {}),
    }


# ---- schemas -------------------------------------------------------------------------


def _root(store: SchemaStore, request: Request) -> Body:
    del store, request
    return {}


def _types(store: SchemaStore, request: Request) -> Body:
    del store, request
    return [languages.JSON, languages.PROTOBUF, languages.AVRO]


def _schemas(store: SchemaStore, request: Request) -> Body:
    deleted = request.is_set("deleted")
    found = []
    names = store.subjects(request.query.get("subjectPrefix", ""), deleted=deleted)
    for name in names:
        versions = store.versions(name, deleted=deleted)
        chosen = versions[-1:] if request.is_set("latestOnly") else versions
        found += [_whole(version, request) for version in chosen]
    return found


def _schema_by_id(store: SchemaStore, request: Request, number: str) -> Body:
    schema = store.schema(_schema_id(number))
    return {**_content(schema, request), "guid": str(schema.guid)}


def _schema_by_guid(store: SchemaStore, request: Request, guid: str) -> Body:
    schema = store.schema_by_guid(guid)
    return {**_content(schema, request), "guid": str(schema.guid)}


def _text_by_id(store: SchemaStore, request: Request, number: str) -> Body:
    return _as_json(_content(store.schema(_schema_id(number)), request)["schema"])


def _as_json(text: Body) -> Body:
    """Return a schema as it stands: JSON as such, and anything else as a string."""
    try:
        return json.loads(str(text))
    except ValueError:
        return text


def _uses(store: SchemaStore, request: Request, number: str) -> list[Version]:
    uses = store.uses_of(_schema_id(number), deleted=request.is_set("deleted"))
    wanted = request.query.get("subject")
    return [each for each in uses if wanted in {None, each.subject}]


def _subjects_by_id(store: SchemaStore, request: Request, number: str) -> Body:
    return sorted({each.subject for each in _uses(store, request, number)})


def _versions_by_id(store: SchemaStore, request: Request, number: str) -> Body:
    return [
        {"subject": each.subject, "version": each.number}
        for each in _uses(store, request, number)
    ]


# ---- subjects ------------------------------------------------------------------------


def _subjects(store: SchemaStore, request: Request) -> Body:
    prefix = request.query.get("subjectPrefix", "")
    is_only = request.is_set("deletedOnly")
    found = store.subjects(prefix, deleted=is_only or request.is_set("deleted"))
    visible = set(store.subjects(prefix)) if is_only else set()
    return [name for name in found if name not in visible]


def _versions(store: SchemaStore, request: Request, subject: str) -> Body:
    deleted = request.is_set("deleted")
    return [each.number for each in store.versions(subject, deleted=deleted)]


def _version(store: SchemaStore, request: Request, subject: str, which: str) -> Body:
    number, deleted = _version_number(which), request.is_set("deleted")
    return _whole(store.version(subject, number, deleted=deleted), request)


def _version_text(
    store: SchemaStore, request: Request, subject: str, which: str
) -> Body:
    found = store.version(subject, _version_number(which))
    return _as_json(_content(found.schema, request)["schema"])


def _users(store: SchemaStore, request: Request, subject: str, which: str) -> Body:
    del request
    return store.users_of(subject, _version_number(which))


def _register(store: SchemaStore, request: Request, subject: str) -> Body:
    document = request.document()
    schema_id = document.get("id")
    version = store.register(
        subject,
        _given(document),
        normalize=request.is_set("normalize"),
        schema_id=schema_id if isinstance(schema_id, int) and schema_id > 0 else None,
    )
    # Without the schema: a client knows what it has sent, and not in which language of
    # descriptors the registry would repeat it.
    schema = version.schema
    return {"id": schema.id, "version": version.number, "guid": str(schema.guid)}


def _lookup(store: SchemaStore, request: Request, subject: str) -> Body:
    version = store.lookup(
        subject,
        _given(request.document()),
        normalize=request.is_set("normalize"),
        deleted=request.is_set("deleted"),
    )
    return _whole(version, request)


def _delete(store: SchemaStore, request: Request, subject: str) -> Body:
    return store.delete_subject(subject, permanent=request.is_set("permanent"))


def _delete_version(
    store: SchemaStore, request: Request, subject: str, which: str
) -> Body:
    permanent = request.is_set("permanent")
    return store.delete_version(subject, _version_number(which), permanent=permanent)


# ---- compatibility -------------------------------------------------------------------


def _check(store: SchemaStore, request: Request, subject: str, which: str) -> Body:
    messages = store.check(
        subject,
        _given(request.document()),
        _version_number(which),
        normalize=request.is_set("normalize"),
    )
    return _judgement(messages, request)


def _check_all(store: SchemaStore, request: Request, subject: str) -> Body:
    messages = store.check(
        subject,
        _given(request.document()),
        every=True,
        normalize=request.is_set("normalize"),
    )
    return _judgement(messages, request)


def _judgement(messages: list[str], request: Request) -> Body:
    found: dict[str, Body] = {"is_compatible": not messages}
    if request.is_set("verbose"):
        found["messages"] = messages
    return found


# ---- levels and modes ----------------------------------------------------------------


def _level(store: SchemaStore, request: Request, subject: str = "") -> Body:
    is_own = subject and not request.is_set("defaultToGlobal")
    level = store.own_level(subject) if is_own else store.level(subject)
    return {"compatibilityLevel": level}


def _set_level(store: SchemaStore, request: Request, subject: str = "") -> Body:
    level = _text(request.document(), "compatibility")
    store.set_level(level, subject)
    return {"compatibility": level.upper()}


def _forget_level(store: SchemaStore, request: Request, subject: str = "") -> Body:
    del request
    return {"compatibilityLevel": store.forget_level(subject)}


def _mode(store: SchemaStore, request: Request, subject: str = "") -> Body:
    is_own = subject and not request.is_set("defaultToGlobal")
    return {"mode": store.own_mode(subject) if is_own else store.mode(subject)}


def _set_mode(store: SchemaStore, request: Request, subject: str = "") -> Body:
    mode = _text(request.document(), "mode")
    store.set_mode(mode, subject)
    return {"mode": mode.upper()}


def _forget_mode(store: SchemaStore, request: Request, subject: str) -> Body:
    del request
    return {"mode": store.forget_mode(subject)}


_Serve: TypeAlias = Callable[..., Body]


def _routes(table: Mapping[str, _Serve]) -> list[tuple[str, re.Pattern[str], _Serve]]:
    """Return method, pattern and function of each line of a table."""
    found = []
    for line, serve in table.items():
        method, _, path = line.partition(" ")
        found.append((method, re.compile(path.replace("{}", "([^/]+)")), serve))
    return found


_VERSION: Final = "/subjects/{}/versions/{}"
#: Each address that is served. What is not here is answered with 404.
_ROUTES: Final = _routes(
    {
        "GET /": _root,
        "GET /schemas": _schemas,
        "GET /schemas/types": _types,
        "GET /schemas/ids/{}": _schema_by_id,
        "GET /schemas/ids/{}/schema": _text_by_id,
        "GET /schemas/ids/{}/subjects": _subjects_by_id,
        "GET /schemas/ids/{}/versions": _versions_by_id,
        "GET /schemas/guids/{}": _schema_by_guid,
        "GET /subjects": _subjects,
        "POST /subjects/{}": _lookup,
        "DELETE /subjects/{}": _delete,
        "GET /subjects/{}/versions": _versions,
        "POST /subjects/{}/versions": _register,
        f"GET {_VERSION}": _version,
        f"DELETE {_VERSION}": _delete_version,
        f"GET {_VERSION}/schema": _version_text,
        f"GET {_VERSION}/referencedby": _users,
        "POST /compatibility/subjects/{}/versions": _check_all,
        "POST /compatibility/subjects/{}/versions/{}": _check,
        "GET /config": _level,
        "PUT /config": _set_level,
        "DELETE /config": _forget_level,
        "GET /config/{}": _level,
        "PUT /config/{}": _set_level,
        "DELETE /config/{}": _forget_level,
        "GET /mode": _mode,
        "PUT /mode": _set_mode,
        "GET /mode/{}": _mode,
        "PUT /mode/{}": _set_mode,
        "DELETE /mode/{}": _forget_mode,
    }
)
