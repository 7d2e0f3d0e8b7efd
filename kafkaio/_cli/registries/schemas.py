"""``kafkaio schemas``: the schemas of a registry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack

import click

from kafkaio._cli.shell.command import REGISTRY, YES, Group, asynchronous
from kafkaio._cli.shell.completion import complete_subjects
from kafkaio._cli.text.document import (
    BOOLEAN,
    INTEGER,
    TEXT,
    Document,
    Shape,
    fields,
    many,
    one_of,
    rows,
)
from kafkaio._cli.text.exits import Exit
from kafkaio._cli.text.output import Table
from kafkaio._cli.text.schema_files import LANGUAGES, Reference, schema_of_file
from kafkaio._cli.text.values import chosen, has_pattern
from kafkaio._runtime.group import TaskGroup
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio.registry import RegisteredSchema, Registry, SchemaReference
    from kafkaio.registry._schema import CompatibilityLevel

K = TypeVar("K")
V = TypeVar("V")

#: Requests to a registry at the same time.
_AT_ONCE: Final = 10
_LATEST: Final = "latest"
_LEVELS: Final = (
    *("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE"),
    *("FULL", "FULL_TRANSITIVE", "NONE"),
)

_SUBJECT: Final = {"subject": TEXT, "version": INTEGER}
_TYPE: Final = one_of(*LANGUAGES.values())
_LISTED: Final = Document(schemas=rows(**_SUBJECT, id=INTEGER, type=_TYPE))
_GOT: Final = Document(
    subject=TEXT.doc("Empty for a schema that was asked for by its id."),
    version=INTEGER.doc("0 likewise."),
    id=INTEGER,
    guid=TEXT.or_null,
    type=_TYPE,
    schema=TEXT.doc("Its text, as the registry has it."),
    references=many(fields(name=TEXT, **_SUBJECT)),
)
_VERSION: Final = Shape({"anyOf": [INTEGER.schema, {"const": _LATEST}]})
_CHECKED: Final = Document(
    subject=TEXT,
    version=_VERSION,
    is_compatible=BOOLEAN.column("COMPATIBLE"),
    reasons=many(TEXT).hidden,
)
_DELETED: Final = Document(
    versions=rows(**_SUBJECT), permanent=BOOLEAN.doc("Whether they are gone for good.")
)
_LEVEL: Final = Document(subject=TEXT.or_null, level=TEXT)

schemas: Group = Group(
    "schemas", help="List, get, register, check and delete schemas of a registry."
)


class Version(click.ParamType[int | str]):
    """A version of a subject: a number, or ``latest``."""

    name = "version"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse a version."""
        if value == _LATEST or isinstance(value, int):
            return value
        if not value.isdecimal() or not int(value):
            return self.fail(f"{value!r} is neither a number nor latest", param, ctx)
        return int(value)


def _subject(**more: Any) -> Callable[..., Any]:
    return click.argument("subject", shell_complete=complete_subjects, **more)


_FILE: Final = click.argument("file", metavar="FILE")
_OF_FILES: Final = (
    click.option(
        "--type",
        "language",
        type=click.Choice(list(LANGUAGES)),
        help="By default the suffix decides: .json, .proto; all others are Avro.",
    ),
    click.option(
        "--reference",
        "references",
        type=Reference(),
        multiple=True,
        metavar="NAME=SUBJECT:VERSION",
        help="A schema that it uses; repeatable.",
    ),
)


def _with_file(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is in FILE."""
    for option in reversed(_OF_FILES):
        function = option(function)
    return function


class _FileOptions(TypedDict):
    """The options of `_with_file`."""

    language: str | None
    references: tuple[SchemaReference, ...]


@schemas.command("list", prints=_LISTED)
@click.argument("subjects", nargs=-1, shell_complete=complete_subjects)
@click.option("--regex", is_flag=True, help="SUBJECTS are regular expressions.")
@click.option(
    "-a", "--all", "every", is_flag=True, help="All versions, not the latest alone."
)
@REGISTRY
@asynchronous
async def _list(
    session: CommandSession,
    subjects: tuple[str, ...],
    *,
    regex: bool,
    every: bool,
    registry: str | None,
) -> None:
    """List subjects with the versions, ids and types of their schemas."""
    async with session.registry(registry) as client:
        names = await _chosen(client, subjects, regex=regex)
        keys: list[tuple[str, int | str]] = [(name, _LATEST) for name in names]
        if every:
            found = session.good(await _each(names, client.versions), is_lookup=True)
            keys = [(name, number) for name in found for number in found[name]]
        done = session.good(
            await _each(keys, lambda key: _version_of(client, key[0], key[1]))
        )
    session.show(_LISTED, schemas=[_row(each) for each in done.values()])


async def _chosen(
    client: Registry, patterns: tuple[str, ...], *, regex: bool
) -> list[str]:
    if patterns and not has_pattern(patterns, regex=regex):
        return list(dict.fromkeys(patterns))
    known = sorted(await client.subjects())
    return chosen("subject", patterns, known, regex=regex)


async def _each(
    keys: Iterable[K], ask: Callable[[K], Awaitable[V]]
) -> dict[K, V | KafkaError]:
    """Ask for each key, some at a time; return what was found, in the keys' order."""
    wanted = list(keys)
    found: dict[K, V | KafkaError] = {}
    limiter = asyncio.Semaphore(_AT_ONCE)

    async def one(key: K) -> None:
        async with limiter:
            try:
                found[key] = await ask(key)
            except KafkaError as error:
                error.item = _name(key)
                found[key] = error

    async with TaskGroup() as group:
        for key in wanted:
            group.start_soon(one, key)
    return {key: found[key] for key in wanted}


def _name(key: object) -> object:
    if not isinstance(key, tuple):
        return key
    subject, version = key
    return subject if version == _LATEST else f"{subject} {version}"


async def _version_of(
    client: Registry, subject: str, version: int | str
) -> RegisteredSchema:
    if isinstance(version, int):
        return await client.version(subject, version)
    return await client.latest(subject)


def _row(found: RegisteredSchema) -> dict[str, object]:
    return {
        "subject": found.subject,
        "version": found.version,
        "id": found.id,
        "type": found.schema.type,
    }


@schemas.command("get", prints=_GOT)
@_subject(required=False)
@click.option(
    "--version", type=Version(), help="A number, or latest, which is the default."
)
@click.option(
    "--id", "schema_id", type=click.IntRange(min=1), help="The schema of an id."
)
@REGISTRY
@asynchronous
async def _get(
    session: CommandSession,
    subject: str | None,
    *,
    version: int | str | None,
    schema_id: int | None,
    registry: str | None,
) -> None:
    """Print a schema: of SUBJECT, or of an id.

    In a pipe its text is as the registry has it; a terminal shows JSON indented.
    """
    if (subject is None) == (schema_id is None):
        raise click.UsageError("name a SUBJECT, or an id by --id")
    if version is not None and subject is None:
        raise click.UsageError("--id and --version exclude each other")
    async with session.registry(registry) as client:
        if subject is not None:
            found = await _version_of(client, subject, version or _LATEST)
        else:
            from kafkaio.registry import RegisteredSchema

            assert schema_id is not None
            schema = await client.schema(schema_id)
            found = RegisteredSchema("", 0, schema_id, schema)
    if session.out.is_table:
        text = found.schema.text
        session.out.line(_indented(text) if session.out.is_terminal else text)
        return
    session.show(
        _GOT,
        **_row(found),
        guid=found.guid,
        schema=found.schema.text,
        references=found.schema.references,
    )


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text  # Protobuf


@schemas.command("register", prints=_LISTED)
@_subject()
@_FILE
@_with_file
@click.option("--normalize", is_flag=True, help="Compare and keep its normal form.")
@REGISTRY
@asynchronous
async def _register(
    session: CommandSession,
    subject: str,
    file: str,
    *,
    normalize: bool,
    registry: str | None,
    **options: Unpack[_FileOptions],
) -> None:
    """Register the schema of FILE (- for stdin) under SUBJECT.

    One that is registered already is found. One that is not compatible with those
    before it is refused.
    """
    schema = schema_of_file(file, options["language"], options["references"])
    async with session.registry(registry) as client:
        found = await client.register(subject, schema, normalize=normalize)
    session.show(_LISTED, schemas=[_row(found)])


@schemas.command("check", prints=_CHECKED)
@_subject()
@_FILE
@_with_file
@click.option(
    "--version",
    type=Version(),
    default=_LATEST,
    show_default=True,
    help="The version to compare it with.",
)
@REGISTRY
@asynchronous
async def _check(
    session: CommandSession,
    subject: str,
    file: str,
    *,
    version: Any,
    registry: str | None,
    **options: Unpack[_FileOptions],
) -> None:
    """Tell whether the schema of FILE (- for stdin) is compatible with SUBJECT.

    The rules are those of `kafkaio schemas compatibility`. If it is not, the exit code
    is 1. Nothing is registered.
    """
    schema = schema_of_file(file, options["language"], options["references"])
    async with session.registry(registry) as client:
        found = await client.check(subject, schema, version)
    values: dict[str, object] = {
        "subject": subject,
        "version": version,
        "is_compatible": found.is_compatible,
        "reasons": found.reasons,
    }
    tables = [_CHECKED.table(values)]
    if found.reasons:
        tables.append(Table([{"reason": each} for each in found.reasons], ["reason"]))
    session.show(_CHECKED, *tables, **values)
    if not found.is_compatible:
        session.exit_with(Exit.FAILED)


class _DeleteOptions(TypedDict):
    """Which subjects and versions are deleted, and how."""

    regex: bool
    version: int | None
    permanent: bool


@schemas.command("delete", prints=_DELETED)
@click.argument("subjects", nargs=-1, required=True, shell_complete=complete_subjects)
@click.option("--regex", is_flag=True, help="SUBJECTS are regular expressions.")
@click.option("--version", type=click.IntRange(min=1), help="This version alone.")
@click.option("--permanent", is_flag=True, help="For good: records become unreadable.")
@YES
@REGISTRY
@asynchronous
async def _delete(
    session: CommandSession,
    subjects: tuple[str, ...],
    *,
    yes: bool,
    registry: str | None,
    **options: Unpack[_DeleteOptions],
) -> None:
    """Delete subjects, or a version of them.

    Without --permanent schemas can still be read by their ids, and registered again.
    """
    version, permanent = options["version"], options["permanent"]
    async with session.registry(registry) as client:
        names = await _chosen(client, subjects, regex=options["regex"])
        what = "all versions" if version is None else f"version {version}"
        end = " for good: records written with it become unreadable"
        effects = [
            f"delete {what} of subject {name}{end if permanent else ''}"
            for name in names
        ]
        session.confirm(effects, yes=yes)
        deleted = session.good(
            await _each(
                names, lambda name: client.delete(name, version, permanent=permanent)
            )
        )
    gone = [
        {"subject": name, "version": number}
        for name, numbers in deleted.items()
        for number in numbers
    ]
    session.show(_DELETED, versions=gone, permanent=permanent)


@schemas.command("compatibility", prints=_LEVEL)
@_subject(required=False)
@click.option(
    "--set",
    "level",
    type=click.Choice(_LEVELS, case_sensitive=False),
    help="Set it, for SUBJECT or for all that have none of their own.",
)
@REGISTRY
@asynchronous
async def _compatibility(
    session: CommandSession,
    subject: str | None,
    *,
    level: CompatibilityLevel | None,
    registry: str | None,
) -> None:
    """Show or set which changes of schemas are allowed: of SUBJECT, or by default."""
    async with session.registry(registry) as client:
        if level is not None:
            await client.set_compatibility(level, subject)
        found = level or await client.compatibility(subject)
    session.show(_LEVEL, subject=subject, level=found)
