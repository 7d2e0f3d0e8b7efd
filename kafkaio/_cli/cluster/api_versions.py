"""``kafkaio api-versions``: the versions of APIs that brokers and this client speak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import click

from kafkaio._cli.shell.command import asynchronous, command
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import INTEGER, TEXT, Document, rows
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.named import by_name, known_brokers
from kafkaio.errors import KafkaError, ProtocolError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._requests import request_type
from kafkaio.types import Broker

if TYPE_CHECKING:
    from kafkaio._client import Client
    from kafkaio.protocol.messages.api_versions import ApiVersionsResponse

_VERSIONS: Final = Document(
    api_versions=rows(
        broker=INTEGER,
        api_key=INTEGER,
        api=TEXT,
        broker_min=INTEGER.or_null,
        broker_max=INTEGER.or_null,
        client_min=INTEGER.or_null,
        client_max=INTEGER.or_null,
        highest=INTEGER.or_null.doc("The highest version that both speak."),
    )
)

#: The lowest and the highest version of an API.
Range = tuple[int, int]


@command("api-versions", prints=_VERSIONS)
@click.option("--broker", type=int, multiple=True, metavar="ID", help="Only these.")
@click.option("--api", multiple=True, metavar="NAME", help="Only these, such as Fetch.")
@asynchronous
async def api_versions(
    session: CommandSession, broker: tuple[int, ...], api: tuple[str, ...]
) -> None:
    """Show the versions of APIs that both sides speak.

    HIGHEST is the highest that both speak.
    """
    wanted = _folded_names(api)
    async with session.client() as client:
        nodes = known_brokers(broker, await _brokers(client))
        answers = {node: await _ask(client, node) for node in nodes}
    found = session.good(by_name(answers, lambda node: f"broker {node}"))
    versions = [
        {"broker": node, **row}
        for node, it in sorted(found.items())
        for row in spoken(
            {e.api_key: (e.min_version, e.max_version) for e in it.api_keys}
        )
        if not wanted or _folded(str(row["api"])) in wanted
    ]
    session.show(_VERSIONS, api_versions=versions)


def _folded_names(names: Iterable[str]) -> set[str]:
    """Return the names of APIs in the form in which they are compared.

    Raises:
        CommandFailed: Kafka has no API of a name; the message has the nearest name.
    """
    known = {_folded(_name(key)): _name(key) for key in ApiKey}
    wanted = {_folded(name): name for name in names}
    for folded, name in wanted.items():
        if folded not in known:
            near = get_close_matches(folded, known, 1)
            hint = f": did you mean {known[near[0]]}?" if near else ""
            raise CommandFailed(f"unknown API {name!r}{hint}", Exit.USAGE)
    return set(wanted)


async def _brokers(client: Client) -> list[int]:
    from kafkaio.protocol.messages.metadata import MetadataRequest

    # No topics: None would ask for all of them.
    found = await client.request(MetadataRequest(topics=[]))
    return sorted(each.node_id for each in found.brokers)


async def _ask(client: Client, node: int) -> ApiVersionsResponse | KafkaError:
    from kafkaio.protocol.messages.api_versions import ApiVersionsRequest

    # From version 3 on brokers refuse a request without a valid name and version of the
    # client (KIP-511).
    request = ApiVersionsRequest(
        client_software_name="kafkaio", client_software_version="cli"
    )
    try:
        return await client.request(request, to=Broker(node))
    except KafkaError as error:
        return error


def spoken(theirs: Mapping[int, Range]) -> list[dict[str, object]]:
    """Compare the versions of a broker with those of this client.

    Returns:
        A row for each API of either side, by key. The range of a side that does not
        know the API is None, as is the highest version without a common one.
    """
    ours = _ours()
    found: list[dict[str, object]] = []
    for key in sorted({*theirs, *ours}):
        their, our = theirs.get(key), ours.get(key)
        found.append(
            {
                "api_key": key,
                "api": _name(key),
                "broker_min": their[0] if their else None,
                "broker_max": their[1] if their else None,
                "client_min": our[0] if our else None,
                "client_max": our[1] if our else None,
                "highest": _highest(their, our),
            }
        )
    return found


def _highest(their: Range | None, our: Range | None) -> int | None:
    if their is None or our is None:
        return None
    highest = min(their[1], our[1])
    return highest if highest >= max(their[0], our[0]) else None


def _ours() -> dict[int, Range]:
    found: dict[int, Range] = {}
    for key in ApiKey:
        try:
            request = request_type(key)
        except ProtocolError:
            continue  # Kafka removed this API, and its key is not used again
        found[int(key)] = request.MIN_VERSION, request.MAX_VERSION
    return found


def _name(key: int) -> str:
    """Kafka's name of an API; its number if this client does not know the API."""
    try:
        return request_type(key).NAME.removesuffix("Request")
    except ProtocolError:
        known = {int(each): each.name for each in ApiKey}
        return known.get(key, str(key)).title().replace("_", "")


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()
