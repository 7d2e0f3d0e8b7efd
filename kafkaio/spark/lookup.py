"""What planning asks the cluster: partitions, offsets, and commits for lag tools.

`Lookup` is synchronous, as Spark's calls are. One call of it is one coroutine on the
event loop of this process (`kafkaio.spark.runtime`), on the client that is kept there.
Each attempt ends after ``kafka.request.timeout.ms``, whatever the brokers do, and
``fetchOffset.numRetries`` more follow an attempt that failed in a way that may pass.

Requests that do not depend on each other are in flight together: a micro-batch is
planned in one round trip where the partitions are those that are known.

State: the options, the ids of the topics that were asked about, and the ends of the
logs as they were found last. The client stays in its process.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import anyio

from kafkaio._runtime.group import TaskGroup
from kafkaio.errors import KafkaError, UnknownTopicOrPartition
from kafkaio.spark import runtime
from kafkaio.spark.errors import explained
from kafkaio.spark.offsets import (
    Moment,
    lookups,
    name_of,
    no_record,
    remade,
    resolved,
)
from kafkaio.spark.options import IsolationLevel, ReadOptions
from kafkaio.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from kafkaio.client.client import Client
    from kafkaio.client.cluster import FoundTopic

__all__ = ["Ends", "Lookup", "ends_of"]

T = TypeVar("T")
_Offsets: TypeAlias = dict[TopicPartition, int]

_UNKNOWN_TOPIC = 3
_ANY_NAME = re.compile(".*")
#: How often offsets that went back are looked up again.
_LOOKS = 3
#: Seconds for which the ends that `Lookup.latest` found are good for a plan. Between
#: the two, Spark writes the offsets into its checkpoint.
_FRESH: Final = 5.0


class Lookup:
    """Asks the cluster about the topics of one read.

    Args:
        options: of the read.

    Attributes:
        topic_ids: the ids of topics, as the last call that asked about them found them;
            without those of brokers that have none.
    """

    __slots__ = ("_found", "_found_at", "_options", "topic_ids")

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self.topic_ids: dict[str, UUID] = {}
        # What `latest` has found, and when, by a monotonic clock.
        self._found = Ends({}, {}, {})
        self._found_at = -_FRESH

    def start_and_end(self) -> tuple[_Offsets, _Offsets]:
        """Return the offsets between which a batch reads.

        Raises:
            DataSourceError: the cluster cannot be asked, or has no such topic.
            ConfigurationError: a bound does not fit the partitions.
        """

        async def ask(client: Client) -> tuple[_Offsets, _Offsets]:
            partitions = await self._partitions(client)
            start = await self._bound(client, partitions, is_start=True)
            end = await self._bound(client, partitions, is_start=False)
            return start, end

        return self._ask("looking up the offsets to read", ask)

    def start(self) -> _Offsets:
        """Return the offsets at which a new stream starts.

        Raises:
            DataSourceError: as in `start_and_end`.
            ConfigurationError: likewise.
        """

        async def ask(client: Client) -> _Offsets:
            partitions = await self._partitions(client)
            return await self._bound(client, partitions, is_start=True)

        return self._ask("looking up the offsets to start at", ask)

    def latest(
        self, known: Mapping[TopicPartition, int], topic_ids: Mapping[str, UUID]
    ) -> _Offsets:
        """Return the latest offset of every partition that there is now.

        A leader that has just been elected may not know its latest offset yet, and a
        broker may learn of a topic that was made again later than another one. So
        offsets that are less than the known ones, and ids that are others, are looked
        up again a few times.

        Args:
            known: offsets that were there before.
            topic_ids: the ids that the topics had then.

        Raises:
            DataSourceError: the cluster cannot be asked, or has no such topic.
        """

        async def ask(client: Client) -> _Offsets:
            found = await self._latest(client, known)
            for _ in range(_LOOKS):
                latest = found.latest
                went_back = any(end < known.get(tp, 0) for tp, end in latest.items())
                if not went_back and not remade(topic_ids, found.topic_ids):
                    break
                await anyio.sleep(self._pause())
                found = await self._latest(client, known)
            self._found, self._found_at = found, time.monotonic()
            return found.latest

        return self._ask("looking up the latest offsets", ask)

    async def _latest(self, client: Client, known: Collection[TopicPartition]) -> Ends:
        """Return the ends of all partitions that there are now."""
        ends = await _found_ends(
            client, known, lambda: self._partitions(client), self._options
        )
        return Ends(*ends, dict(self.topic_ids))

    def ends(
        self, partitions: Collection[TopicPartition], topic_ids: Mapping[str, UUID]
    ) -> tuple[_Offsets, _Offsets]:
        """Return the earliest and the latest offsets of partitions.

        Those that do not exist are left out. Nobody is asked for what `latest` found a
        moment ago: what has been deleted since then is noticed by the task that reads.

        Args:
            partitions: the partitions.
            topic_ids: the ids that their topics should have.

        Raises:
            DataSourceError: the cluster cannot be asked.
        """
        if time.monotonic() - self._found_at < _FRESH:
            earliest, latest, found_ids = self._found
            if latest.keys() >= set(partitions) and not remade(topic_ids, found_ids):
                return (
                    {tp: earliest[tp] for tp in partitions},
                    {tp: latest[tp] for tp in partitions},
                )

        async def ask(client: Client) -> tuple[_Offsets, _Offsets]:
            found = await ends_of(client, partitions, topic_ids, self._options)
            self.topic_ids |= found.topic_ids
            return found.earliest, found.latest

        return self._ask("looking up the ends of the logs", ask)

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets to a group without members, for tools that show its lag.

        Raises:
            DataSourceError: the group coordinator refused them.
        """

        async def ask(client: Client) -> None:
            await _commit(client, group, offsets)

        self._ask(f"committing offsets to group {group!r}", ask)

    def _ask(self, what: str, ask: Callable[[Client], Awaitable[T]]) -> T:
        with explained(what):
            return runtime.run(self._attempts(ask))

    async def _attempts(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        config = self._options.client_config(in_task=False)
        left = self._options.offset_retries or 0
        while True:
            try:
                return await ask(await runtime.client(config))
            except KafkaError as error:
                if not left or not error.retriable:
                    raise
            left -= 1
            await anyio.sleep(self._pause())

    def _pause(self) -> float:
        return _pause_of(self._options)

    async def _partitions(self, client: Client) -> list[TopicPartition]:
        """Return the partitions to read."""
        topics = self._options.topics
        if topics.partitions:
            there, topic_ids = await _existing(client, topics.partitions)
            if missing := set(topics.partitions) - there:
                names = ", ".join(map(name_of, sorted(missing)))
                raise UnknownTopicOrPartition(
                    f"no such partition: {names}",
                    code=_UNKNOWN_TOPIC,
                    name="UNKNOWN_TOPIC_OR_PARTITION",
                )
            self.topic_ids |= topic_ids
            return list(topics.partitions)
        if topics.pattern:
            # The connector looks for the pattern anywhere in the name; the client would
            # match whole names.
            is_wanted = re.compile(topics.pattern).search
            found = await _topics(client, _ANY_NAME)
            found = {topic: each for topic, each in found.items() if is_wanted(topic)}
        else:
            found = await _topics(client, topics.names)
        self.topic_ids |= _ids_of(found)
        return [
            TopicPartition(topic, number)
            for topic, each in found.items()
            for number in each.partitions
        ]

    async def _bound(
        self, client: Client, partitions: Collection[TopicPartition], *, is_start: bool
    ) -> _Offsets:
        """Return the offset of each partition at the start or end of the read."""
        bound = self._options.starting if is_start else self._options.ending
        level = self._options.isolation_level
        wanted = lookups(bound, partitions, "start" if is_start else "end")
        offsets, missing = resolved(bound, await _offsets(client, wanted, level))
        if missing:
            if is_start and not self._options.latest_if_no_timestamp:
                raise no_record(bound, missing)
            offsets |= await _ends(client, missing, "latest", level)
        return offsets


class Ends(NamedTuple):
    """Where logs begin and end.

    Attributes:
        earliest: the first offset of each partition that exists.
        latest: the end of each of them.
        topic_ids: the ids of their topics, as far as brokers have them.
    """

    earliest: _Offsets
    latest: _Offsets
    topic_ids: dict[str, UUID]


async def ends_of(
    client: Client,
    partitions: Collection[TopicPartition],
    topic_ids: Mapping[str, UUID],
    options: ReadOptions,
) -> Ends:
    """Return the earliest and the latest offsets of partitions.

    Those that do not exist are left out. Topics that have another id than they should
    have are looked up again a few times: a broker may learn of them later than others.

    Args:
        client: asks.
        partitions: the partitions.
        topic_ids: the ids that their topics should have.
        options: of the read.
    """
    now: dict[str, UUID] = {}

    async def find() -> set[TopicPartition]:
        nonlocal now
        there, now = await _existing(client, partitions)
        return there

    ends = await _found_ends(client, partitions, find, options)
    for _ in range(_LOOKS):
        if not remade(topic_ids, now):
            break
        await anyio.sleep(_pause_of(options))
        ends = await _found_ends(client, partitions, find, options)
    return Ends(*ends, now)


async def _found_ends(
    client: Client,
    expected: Collection[TopicPartition],
    find: Callable[[], Awaitable[Collection[TopicPartition]]],
    options: ReadOptions,
) -> tuple[_Offsets, _Offsets]:
    """Return the ends of partitions that have to be found.

    The ends of those that are expected are looked up at the same time. They count if
    these are the partitions; if not, or if that look-up fails, because a partition is
    gone perhaps, the ends are looked up afterwards.

    Raises:
        KafkaError: the partitions or their ends cannot be looked up.
    """
    level = options.isolation_level
    early: list[tuple[_Offsets, _Offsets]] = []
    failures: list[KafkaError] = []
    partitions: Collection[TopicPartition] = ()

    async def look_early() -> None:
        with suppress(KafkaError):
            early.append(await _both_ends(client, expected, level))

    async with TaskGroup() as tasks:
        if expected:
            tasks.start_soon(look_early)
        # What leaves the block in another way would be in an exception group.
        try:
            partitions = await find()
        except KafkaError as error:
            failures.append(error)
        if set(partitions) != set(expected):
            # A look-up of what is gone would be repeated until its time is over.
            tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]
    if early and set(partitions) == set(expected):
        return early[0]
    return await _both_ends(client, partitions, level)


def _pause_of(options: ReadOptions) -> float:
    """Seconds between two attempts to look something up."""
    pause = options.offset_retry_interval_ms
    return (1_000 if pause is None else pause) / 1_000


async def _existing(
    client: Client, partitions: Collection[TopicPartition]
) -> tuple[set[TopicPartition], dict[str, UUID]]:
    """Return those of some partitions that exist, and the ids of their topics."""
    names = sorted({tp.topic for tp in partitions})
    found = await _topics(client, names, skips_unknown=True)
    there = {
        TopicPartition(topic, number)
        for topic, each in found.items()
        for number in each.partitions
    }
    return there & set(partitions), _ids_of(found)


async def _topics(
    client: Client,
    topics: Collection[str] | re.Pattern[str],
    *,
    skips_unknown: bool = False,
) -> dict[str, FoundTopic]:
    """Return ids and partitions of topics, with one request."""
    from kafkaio.client.client import cluster_of

    return await cluster_of(client).topics_for(topics, skips_unknown=skips_unknown)


def _ids_of(topics: Mapping[str, FoundTopic]) -> dict[str, UUID]:
    return {
        topic: each.topic_id
        for topic, each in topics.items()
        if each.topic_id is not None
    }


async def _both_ends(
    client: Client,
    partitions: Collection[TopicPartition],
    isolation_level: IsolationLevel,
) -> tuple[_Offsets, _Offsets]:
    """Return the earliest and the latest offsets, which are looked up together."""
    found: dict[str, _Offsets] = {}
    failures: list[KafkaError] = []

    async def look(end: Literal["earliest", "latest"]) -> None:
        try:
            found[end] = await _ends(client, partitions, end, isolation_level)
        except KafkaError as error:
            failures.append(error)
            tasks.cancel_scope.cancel()

    async with TaskGroup() as tasks:
        tasks.start_soon(look, "earliest")
        tasks.start_soon(look, "latest")
    if failures:
        raise failures[0]
    return found["earliest"], found["latest"]


async def _ends(
    client: Client,
    partitions: Iterable[TopicPartition],
    end: Literal["earliest", "latest"],
    isolation_level: IsolationLevel,
) -> _Offsets:
    found = await _offsets(client, dict.fromkeys(partitions, end), isolation_level)
    return {tp: answer.offset for tp, answer in found.items() if answer is not None}


async def _offsets(
    client: Client,
    moments: Mapping[TopicPartition, Moment],
    isolation_level: IsolationLevel,
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    if not moments:
        return {}
    return await client.offsets(moments, isolation_level=isolation_level)


async def _commit(
    client: Client, group: str, offsets: Mapping[TopicPartition, int]
) -> None:
    # Loaded where `commitGroupId` is set.
    from kafkaio.client.destinations import GroupCoordinator
    from kafkaio.consumer.commits.messages import commit_request
    from kafkaio.protocol.broker_errors import broker_error
    from kafkaio.types import GroupMetadata

    request = commit_request(
        GroupMetadata(group), {tp: OffsetAndMetadata(n) for tp, n in offsets.items()}
    )
    topics = {tp.topic for tp in offsets}
    if any(client.cluster.topic_id(topic) is None for topic in topics):
        # After it the client knows the topics.
        await client.offsets(dict.fromkeys(offsets, "earliest"))
    for topic in request.topics:
        # From version 10 on it has the place of the name.
        if (topic_id := client.cluster.topic_id(topic.name)) is not None:
            topic.topic_id = topic_id
    reply = await client.request(request, GroupCoordinator(group))
    for answer in reply.topics:
        for partition in answer.partitions:
            if partition.error_code:
                name = f"{answer.name}-{partition.partition_index}"
                raise broker_error(partition.error_code, f"commit {name} to {group!r}")
