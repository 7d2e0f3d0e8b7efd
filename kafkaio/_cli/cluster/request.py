"""``kafkaio request``: sends any request of the protocol, from JSON to JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from kafkaio._cli.shell.command import asynchronous, command
from kafkaio._cli.text.document import (
    ANY_LIST,
    ANY_OBJECT,
    INTEGER,
    TEXT,
    Document,
    many,
    reference,
    rows,
)
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.output import Table, TableColumn

if TYPE_CHECKING:
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio._client import Destination
    from kafkaio.protocol._message import Request, Response, Struct

_LISTED: Final = Document(
    requests=rows(
        name=TEXT,
        api_key=INTEGER,
        min_version=INTEGER.hidden,
        max_version=INTEGER.hidden,
    )
)
_FIELDS: Final = reference("fields")
_SCHEMA: Final = Document(request=_FIELDS, response=_FIELDS)
_PRINTS: Final = {
    # The answer of an API has the fields that --schema shows.
    "request": ANY_OBJECT,
    "list": _LISTED,
    "schema": _SCHEMA,
    "fields": rows(
        name=TEXT,
        type=TEXT,
        versions=many(INTEGER),
        nullable=ANY_LIST.or_null,
        tag=INTEGER.or_null,
        fields=_FIELDS,
    ),
}


class _RequestOptions(TypedDict):
    """The options of the command."""

    body: str | None
    to: str
    version: int | None
    is_list: bool
    schema: bool


@command("request", help="Send any request of the protocol.", prints=_PRINTS)
@click.argument("api", required=False)
@click.argument("body", required=False, metavar="JSON")
@click.option(
    "--to",
    default="any",
    metavar="BROKER",
    help="any, controller, broker:3, leader:TOPIC:0, group:NAME or txn:ID.",
)
@click.option("--version", type=click.IntRange(min=0), help="Exactly this version.")
@click.option("--list", "is_list", is_flag=True, help="List the requests.")
@click.option("--schema", is_flag=True, help="Show the fields of request and response.")
@asynchronous
async def request(
    session: CommandSession, api: str | None, **options: Unpack[_RequestOptions]
) -> None:
    """Send a request; JSON is the text, @FILE, or nothing for one without fields.

    The answer is printed as JSON. An error in it does not fail the command.
    """
    from kafkaio._cli.cluster.messages import (
        MessageError,
        find_request,
        from_json,
        to_json,
    )

    if options["is_list"]:
        _show_list(session)
        return
    if api is None:
        raise click.UsageError("name an API, or ask for --list")
    try:
        kind = find_request(api)
        if options["schema"]:
            _show_schema(session, kind)
            return
        made = from_json(_only(kind, options["version"]), _document(options["body"]))
    except MessageError as error:
        raise CommandFailed(str(error), Exit.USAGE) from None
    destination = _destination(options["to"])
    async with session.client() as client:
        answer = await client.request(_checked(made), destination)
    # Fields that the version lacks are left out: their values would be defaults.
    response = to_json(answer, options["version"])
    session.out.line(json.dumps(response, indent=2, ensure_ascii=False))


def _checked(made: Struct) -> Request[Response]:
    from kafkaio.protocol._message import Request

    # from_json returns an object of the class it was given, a request here.
    assert isinstance(made, Request)
    return made


def _document(body: str | None) -> object:
    from kafkaio._cli.text.source import text_of

    if body is None:
        return {}
    name = "JSON"
    if body.startswith("@"):
        name = body[1:]
        body = text_of(name)
    try:
        return json.loads(body)
    except ValueError as error:
        raise CommandFailed(f"{name}: {error}", Exit.USAGE) from None


def _only(
    kind: type[Request[Response]], version: int | None
) -> type[Request[Response]]:
    """Return a subclass of a request that has one version."""
    if version is None:
        return kind
    if not kind.MIN_VERSION <= version <= kind.LAST_VERSION:
        has = f"{kind.MIN_VERSION} to {kind.LAST_VERSION}"
        raise click.UsageError(f"{kind.NAME} has versions {has}, not {version}")
    # The client chooses a version between these two and that of the broker, and raises
    # if there is none. The codec needs no more of the class.
    narrowed = {"MIN_VERSION": version, "MAX_VERSION": version, "__slots__": ()}
    return type(kind.__name__, (kind,), narrowed)


def _destination(text: str) -> Destination:
    from kafkaio._client import (
        ANY,
        Broker,
        Controller,
        GroupCoordinator,
        Leader,
        TransactionCoordinator,
    )
    from kafkaio.types import TopicPartition

    what, _, name = text.partition(":")
    # Names of groups and transactional ids may contain colons.
    topic, _, number = name.rpartition(":")
    match what:
        case "any" if not name:
            return ANY
        case "controller" if not name:
            return Controller
        case "broker" if name.isdecimal():
            return Broker(int(name))
        case "leader" if topic and number.isdecimal():
            return Leader(TopicPartition(topic, int(number)))
        case "group" if name:
            return GroupCoordinator(name)
        case "txn" if name:
            return TransactionCoordinator(name)
    raise click.UsageError(
        f"--to {text}: not any, controller, broker:3, leader:TOPIC:0, group:NAME or "
        "txn:ID"
    )


def _show_list(session: CommandSession) -> None:
    from kafkaio._cli.cluster.messages import requests

    listed = [
        {
            "name": name,
            "api_key": kind.API_KEY,
            "min_version": kind.MIN_VERSION,
            "max_version": kind.MAX_VERSION,
        }
        for name, kind in requests().items()
    ]
    shown = [
        {**row, "versions": f"{row['min_version']}-{row['max_version']}"}
        for row in listed
    ]
    table = Table(shown, [*_LISTED.row.columns(), TableColumn("versions")])
    session.show(_LISTED, table, requests=listed)


def _show_schema(session: CommandSession, kind: type[Request[Response]]) -> None:
    from kafkaio._cli.cluster.messages import describe

    messages = {"request": kind, "response": kind.response_type()}
    document = {name: describe(each) for name, each in messages.items()}
    tables = []
    for each in messages.values():
        title = f"{each.NAME}, versions {each.MIN_VERSION} to {each.MAX_VERSION}"
        described = list(_rows(describe(each)))
        tables.append(Table(described, ("field", "type", "versions"), title))
    session.out.show(_SCHEMA.made([], document), *tables)


def _rows(
    fields: list[dict[str, object]], indent: str = ""
) -> Iterator[dict[str, object]]:
    for each in fields:
        versions = each["versions"]
        assert isinstance(versions, list)
        yield {
            "field": f"{indent}{each['name']}",
            "type": each["type"],
            "versions": "-".join(map(str, versions)),
        }
        inner = each["fields"]
        assert isinstance(inner, list)
        yield from _rows(inner, indent + "  ")
