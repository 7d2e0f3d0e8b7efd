"""Reads what a registry answers. Its bytes are foreign: nothing in them is believed.

Functions without state. A text of the registry comes into an error bounded, without
control characters and without the secrets that were sent. An answer about another
subject, version or id than the one that was asked for is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Final, get_args
from uuid import UUID

from kafkaio._config.shown import shown_server
from kafkaio._dataclass import dataclass
from kafkaio.errors import RegistryError, SchemaError
from kafkaio.registry._schema import (
    Compatibility,
    RegisteredSchema,
    Schema,
    SchemaReference,
    SchemaType,
)

#: The largest id and version: a Java int.
MAX_INT: Final = 2**31 - 1
#: The longest text of a registry that an error repeats.
_MAX_REASON: Final = 2_000
#: The longest path that an error repeats.
_MAX_SHOWN_PATH: Final = 300
#: The most references of one schema, and reasons of one refusal, that are read.
_MOST: Final = 10_000
_TYPES: Final[tuple[SchemaType, ...]] = get_args(SchemaType)
#: Statuses after which the same request may succeed.
_MAY_PASS: Final = frozenset((408, 429, 500, 502, 503, 504))
#: The registry's own codes for "there is no such subject, version or schema" begin
#: with this. A 404 without one comes from something else, such as a proxy.
_NOT_FOUND: Final = 404
_ABOUT_SCHEMAS: Final = frozenset((409, 422))
_CODES: Final = range(1, 100_000)
#: The beginning of a subject that names the context without a name.
_DEFAULT_CONTEXT: Final = ":.:"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from one request.

    Attributes:
        status: the status of HTTP; 0 if there was no answer.
        body: the body.
        problem: why there is no answer that could be read; empty if there is one.
        is_too_large: whether the problem is the size of the answer.
        is_final: whether the same problem is certain to come again from this address.
        may_be_done: whether the registry may have done what was asked.
        retry_after: the header of this name.
        location: likewise.
    """

    status: int = 0
    body: bytes = field(default=b"", repr=False)
    problem: str = ""
    is_too_large: bool = False
    is_final: bool = False
    may_be_done: bool = True
    retry_after: str = ""
    location: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the registry did what was asked."""
        return not self.problem and 200 <= self.status < 300

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed a little later, or elsewhere."""
        if self.problem:
            return not (self.is_final and self.status)
        return self.status in _MAY_PASS


@dataclass(frozen=True, slots=True)
class Where:
    """What was asked, for errors.

    Attributes:
        url: the URL, without user and query.
        subject: the subject; empty for none.
        secrets: texts that no error may show.
    """

    url: str
    subject: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        url = self.url
        return url if len(url) <= _MAX_SHOWN_PATH else f"{url[:_MAX_SHOWN_PATH]}..."

    def wrong(self, what: str, *, status: int | None = 200) -> RegistryError:
        """Return the error for an answer that is not what it should be."""
        return RegistryError(f"{self}: {what}", status=status)

    def clean(self, text: str) -> str:
        """Return a foreign text as an error may have it."""
        # Before it is cut: a part of a secret would not be found.
        for secret in self.secrets:
            text = text.replace(secret, "[hidden]")
        text = text[: 2 * _MAX_REASON]
        printable = "".join(c if c.isprintable() else " " for c in text)
        return printable[:_MAX_REASON].strip()


# ---- failures ------------------------------------------------------------------------


def error_of(reply: Reply, where: Where, tried: str = "") -> RegistryError:
    """Return the error for a reply that is no success.

    Args:
        reply: the reply.
        where: what was asked.
        tried: how often, in words; empty for once.
    """
    if reply.problem:
        what = where.clean(reply.problem)
        if reply.is_too_large:
            return SchemaError(where.subject, f"{where}: {what}", status=reply.status)
        status = reply.status or None
        # A registry whose certificate is mended answers again.
        return RegistryError(
            _joined(f"{where}: {what}", tried), status=status, retriable=status is None
        )
    code, said = _said(reply.body)
    reason = where.clean(said)
    status = reply.status
    if status in _ABOUT_SCHEMAS or (status == _NOT_FOUND and _names_schema(code)):
        default = f"the registry answered {status} without a reason"
        return SchemaError(where.subject, reason or default, status=status, code=code)
    text = ": ".join(part for part in (f"{where}: status {status}", reason) if part)
    return RegistryError(
        _joined(text, _hint(reply), tried),
        status=status,
        code=code,
        retriable=reply.may_pass,
    )


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _names_schema(code: int | None) -> bool:
    return code is not None and code // 100 == _NOT_FOUND


def _hint(reply: Reply) -> str:
    status = reply.status
    if status == 401:
        return (
            "the registry wants another login: see basic_auth= and bearer_token= of "
            "Registry"
        )
    if status == 403:
        return "the login that Registry was given may not do that"
    if status == 407:
        return "the proxy wants a login: proxy='http://user:password@host:port'"
    if status == _NOT_FOUND:
        return (
            "no schema registry says so: is the path of the url right, and does this "
            "registry have the call?"
        )
    if 300 <= status < 400:
        to = f" to {shown_server(reply.location)}" if reply.location else ""
        return f"redirects{to} are not followed: pass the final url"
    return ""


def _said(body: bytes) -> tuple[int | None, str]:
    """Return code and text of an error; neither has to be there."""
    try:
        given: object = json.loads(body)
    except (ValueError, RecursionError):
        return None, ""
    if not isinstance(given, dict):
        return None, ""
    code, text = given.get("error_code"), given.get("message")
    is_code = isinstance(code, int) and code in _CODES
    return code if is_code else None, text if isinstance(text, str) else ""


# ---- answers -------------------------------------------------------------------------


def parsed(body: bytes, where: Where) -> object:
    """Return the JSON of an answer.

    Raises:
        RegistryError: it is no JSON, or nested too deeply.
    """
    problem = ""
    try:
        value: object = json.loads(body)
    except RecursionError:
        problem = "the answer is nested too deeply"
    except ValueError:
        problem = "the answer is not JSON: is this the url of a schema registry?"
    else:
        return value
    # Outside of the handlers: the error of the parser has the whole body.
    raise where.wrong(problem)


def read_schema(body: bytes, where: Where, *, asked: int | UUID) -> Schema:
    """Read a schema that was asked for by its id or GUID."""
    given = _fields(body, where)
    if isinstance(asked, UUID):
        if (guid := _guid(given, where)) is not None and guid != asked:
            raise where.wrong(f"the answer has the GUID {guid}")
    elif (found := given.get("id")) is not None and found != asked:
        raise where.wrong(f"the answer has another id{_shown_int(found)}")
    return _schema(given, where)


def read_version(
    body: bytes, where: Where, *, version: int | None = None
) -> RegisteredSchema:
    """Read a version of a subject.

    Args:
        body: the answer.
        where: what was asked.
        version: the version that was asked for; None for the latest.
    """
    given = _fields(body, where)
    _check_subject(given.get("subject"), where)
    found = _number(given.get("version"), "version", where, least=1)
    if version is not None and found != version:
        raise where.wrong(f"the answer is about version {found}")
    return RegisteredSchema(
        subject=where.subject,
        version=found,
        id=_number(given.get("id"), "id", where),
        schema=_schema(given, where),
        guid=_guid(given, where),
    )


def read_registered(
    body: bytes, where: Where, *, schema: Schema, number: int | None = None
) -> RegisteredSchema:
    """Read where a schema is registered that was sent.

    It is returned as it was sent. Registries repeat it in part: those of Confluent
    before 8 with the id alone, Apicurio without its type and its references.

    Args:
        body: the answer.
        where: what was asked.
        schema: the schema.
        number: the id that the same registry gave before; None for any.
    """
    given = _fields(body, where)
    if (subject := given.get("subject")) is not None:
        _check_subject(subject, where)
    kind = given.get("schemaType")
    if kind is not None and kind != schema.type:
        raise where.wrong(f"the answer is about a schema that is not {schema.type}")
    found = _number(given.get("id"), "id", where)
    if number is not None and found != number:
        raise where.wrong(
            f"the schema has the id {found}, and had {number} just before"
        )
    version = given.get("version")
    return RegisteredSchema(
        subject=where.subject,
        version=0 if version is None else _number(version, "version", where, least=1),
        id=found,
        schema=schema,
        guid=_guid(given, where),
    )


def read_numbers(body: bytes, where: Where) -> list[int]:
    """Read a list of versions, or one version."""
    given = parsed(body, where)
    numbers = given if isinstance(given, list) else [given]
    return [_number(each, "version", where, least=1) for each in numbers]


def read_names(body: bytes, where: Where) -> list[str]:
    """Read a list of subjects."""
    given = parsed(body, where)
    if not isinstance(given, list):
        raise where.wrong("the answer is not a list of subjects")
    names = [each for each in given if isinstance(each, str)]
    if len(names) < len(given):
        raise where.wrong("the answer has a subject that is not a text")
    return names


def read_compatibility(body: bytes, where: Where) -> Compatibility:
    """Read whether a schema is compatible."""
    given = _fields(body, where)
    verdict = given.get("is_compatible")
    if not isinstance(verdict, bool):
        raise where.wrong("the answer has no is_compatible that is true or false")
    said = given.get("messages")
    reasons: Sequence[object] = said if isinstance(said, list) else ()
    texts = [where.clean(each) for each in reasons[:_MOST] if isinstance(each, str)]
    return Compatibility(verdict, tuple(filter(None, texts)))


def read_level(body: bytes, where: Where) -> str:
    """Read a level of compatibility."""
    given = _fields(body, where)
    # The second name is that of the request, which some registries repeat.
    level = given.get("compatibilityLevel", given.get("compatibility"))
    if not isinstance(level, str) or not level:
        raise where.wrong("the answer has no compatibilityLevel")
    return where.clean(level)


# ---- parts ---------------------------------------------------------------------------


def _fields(body: bytes, where: Where) -> Mapping[str, object]:
    given = parsed(body, where)
    if not isinstance(given, dict):
        raise where.wrong("the answer is not a JSON object")
    return given


def _schema(given: Mapping[str, object], where: Where) -> Schema:
    text = given.get("schema")
    if not isinstance(text, str):
        raise where.wrong("the answer has no schema")
    kind = given.get("schemaType")
    if kind is None:
        return Schema(text, "AVRO", _references(given, where))
    for known in _TYPES:
        if kind == known:
            return Schema(text, known, _references(given, where))
    name = where.clean(kind) if isinstance(kind, str) else type(kind).__name__
    raise SchemaError(
        where.subject,
        f"the schema has the type {name!r}: kafkaio has {', '.join(_TYPES)}",
        status=200,
    )


def _references(
    given: Mapping[str, object], where: Where
) -> tuple[SchemaReference, ...]:
    listed = given.get("references")
    if listed is None:
        return ()
    if not isinstance(listed, list) or len(listed) > _MOST:
        raise where.wrong(f"the references are not a list of {_MOST} at most")
    return tuple(_reference(each, where) for each in listed)


def _reference(given: object, where: Where) -> SchemaReference:
    if not isinstance(given, dict):
        raise where.wrong("a reference is not a JSON object")
    name, subject = given.get("name"), given.get("subject")
    if not isinstance(name, str) or not isinstance(subject, str) or not subject:
        raise where.wrong("a reference has no name and subject")
    version = _number(given.get("version"), "version of a reference", where, least=1)
    return SchemaReference(name, subject, version)


def _check_subject(given: object, where: Where) -> None:
    if not isinstance(given, str):
        raise where.wrong("the answer has no subject")
    if _plain(given) != _plain(where.subject):
        raise where.wrong(f"the answer is about the subject {where.clean(given)!r}")


def _plain(subject: str) -> str:
    return subject.removeprefix(_DEFAULT_CONTEXT)


def _guid(given: Mapping[str, object], where: Where) -> UUID | None:
    text = given.get("guid")
    if text is None or text == "":
        return None
    with suppress(ValueError):
        if isinstance(text, str):
            return UUID(text)
    raise where.wrong("the guid of the answer is not a UUID")


def _number(given: object, name: str, where: Where, least: int = 0) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise where.wrong(f"the answer has no {name} that is an integer")
    if not least <= given <= MAX_INT:
        raise where.wrong(f"the {name} of the answer is not from {least} to {MAX_INT}")
    return given


def _shown_int(given: object) -> str:
    is_shown = isinstance(given, int) and -MAX_INT <= given <= MAX_INT
    return f": {given}" if is_shown else ""
