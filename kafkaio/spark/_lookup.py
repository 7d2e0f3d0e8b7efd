"""The requests of planning: partitions, offsets, and commits for lag tools.

`PlanLookup` is synchronous, as Spark's calls are. One call of it is one coroutine on
the event loop of this process (`kafkaio.spark._runtime`), on the client that is kept
there. Each attempt ends after ``kafka.default.api.timeout.ms``, or if that is not set
after ``kafka.request.timeout.ms``, whatever the brokers do: connecting and all requests
together. ``fetchOffset.numRetries`` more follow an attempt that failed in a way that
may pass.

Requests that do not depend on each other are in flight together: a micro-batch is
planned in one round trip where the partitions are those that are known.

State: the options, the ids of the topics, and the last ends of the logs that were
found. The client stays in its process.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar
from uuid import UUID

from kafkaio._named_tuple import NamedTuple
from kafkaio._runtime.group import TaskGroup
from kafkaio.errors import KafkaError, UnknownTopicOrPartition
from kafkaio.spark import _runtime as runtime
from kafkaio.spark._errors import explained, listed, one_of_many
from kafkaio.spark._offsets import (
    Moment,
    lookups,
    name_of,
    no_record,
    remade,
    resolved,
)
from kafkaio.spark._options import IsolationLevel, ReadOptions
from kafkaio.types import FoundTopic, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client import Client

T = TypeVar("T")
_Offsets: TypeAlias = dict[TopicPartition, int]

_UNKNOWN_TOPIC = 3
_ANY_NAME = re.compile(".*")
#: How often offsets that went back are looked up again.
_LOOKS = 3
#: Seconds for which the ends that `PlanLookup.latest` found are good for a plan.
#: Between the two, Spark writes the offsets into its checkpoint.
_FRESH: Final = 5.0


class PlanLookup:
    """Asks the cluster about the topics of one read.

    Args:
        options: of the read.

    Attributes:
        topic_ids: the last ids of topics that a call has found; without topics of
            brokers that have no ids.
    """

    __slots__ = ("_found", "_found_at", "_options", "topic_ids")

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self.topic_ids: dict[str, UUID] = {}
        # The result of `latest`, and its time by a monotonic clock.
        self._found = PartitionEnds({}, {}, {})
        self._found_at = -_FRESH

    def start_and_end(self) -> tuple[_Offsets, _Offsets]:
        """Return the offsets between which a batch reads.

        Raises:
            DataSourceError: the cluster cannot be asked, or has no such topic.
            ConfigurationError: a bound does not fit the partitions.
        """

        async def ask(asker: _Asker) -> tuple[_Offsets, _Offsets]:
            partitions = await self._partitions(asker)
            start = await self._bound(asker, partitions, is_start=True)
            end = await self._bound(asker, partitions, is_start=False)
            return start, end

        return self._ask("looking up the offsets to read", ask)

    def start(self) -> _Offsets:
        """Return the offsets at which a new stream starts.

        Raises:
            DataSourceError: as in `start_and_end`.
            ConfigurationError: likewise.
        """

        async def ask(asker: _Asker) -> _Offsets:
            partitions = await self._partitions(asker)
            return await self._bound(asker, partitions, is_start=True)

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

        async def ask(asker: _Asker) -> _Offsets:
            found = await self._latest(asker, known)
            # After that many repetitions the cluster is believed: the topic is another
            # one, or records are lost, and `failOnDataLoss` decides.
            for _ in range(_LOOKS):
                latest = found.latest
                went_back = any(end < known.get(tp, 0) for tp, end in latest.items())
                if not went_back and not remade(topic_ids, found.topic_ids):
                    break
                await asyncio.sleep(self._pause())
                found = await self._latest(asker, known)
            self._found, self._found_at = found, time.monotonic()
            return found.latest

        return self._ask("looking up the latest offsets", ask)

    async def _latest(
        self, asker: _Asker, known: Collection[TopicPartition]
    ) -> PartitionEnds:
        """Return the ends of all partitions that there are now."""
        ends = await asker.found_ends(known, lambda: self._partitions(asker))
        return PartitionEnds(*ends, dict(self.topic_ids))

    def ends(
        self, partitions: Collection[TopicPartition], topic_ids: Mapping[str, UUID]
    ) -> tuple[_Offsets, _Offsets]:
        """Return the earliest and the latest offsets of partitions.

        Those that do not exist are left out. Ends that `latest` found a moment ago are
        used again: the task that reads notices what was deleted since then.

        Args:
            partitions: the partitions.
            topic_ids: the ids that their topics should have.

        Raises:
            DataSourceError: the cluster cannot be asked.
        """
        if time.monotonic() - self._found_at < _FRESH:
            # All of them, or none: two answers of different moments could contradict
            # each other.
            earliest, latest, found_ids = self._found
            if latest.keys() >= set(partitions) and not remade(topic_ids, found_ids):
                return (
                    {tp: earliest[tp] for tp in partitions},
                    {tp: latest[tp] for tp in partitions},
                )

        async def ask(asker: _Asker) -> tuple[_Offsets, _Offsets]:
            found = await asker.both_ends(partitions, topic_ids, self._pause())
            self.topic_ids |= found.topic_ids
            return found.earliest, found.latest

        return self._ask("looking up the ends of the logs", ask)

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets to a group without members, for tools that show its lag.

        Partitions that do not exist any more are left out.

        Raises:
            DataSourceError: the group coordinator refused them.
        """

        async def ask(asker: _Asker) -> None:
            await asker.commit(group, offsets)

        self._ask(f"committing offsets to group {group!r}", ask)

    def _ask(self, what: str, ask: Callable[[_Asker], Awaitable[T]]) -> T:
        with explained(what):
            return runtime.run(self._attempts(ask))

    async def _attempts(self, ask: Callable[[_Asker], Awaitable[T]]) -> T:
        # Resolves references to secrets here, in the process that connects.
        config = self._options.client_config(in_task=False)
        level = self._options.isolation_level
        left = self._options.offset_retries
        while True:
            # Before the client starts: connecting counts, too.
            began = time.monotonic()
            try:
                client = await runtime.client(config)
                return await ask(_Asker(client, level, began))
            except KafkaError as error:
                if not left or not error.retriable:
                    raise
            left -= 1
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        return _pause_of(self._options)

    async def _partitions(self, asker: _Asker) -> list[TopicPartition]:
        """Return the partitions to read."""
        topics = self._options.topics
        if topics.partitions:
            there, topic_ids = await asker.existing(topics.partitions)
            # Not left out silently: the user has named these partitions.
            if missing := set(topics.partitions) - there:
                names = listed(map(name_of, sorted(missing)))
                raise UnknownTopicOrPartition(
                    f"no such partition: {names}",
                    code=_UNKNOWN_TOPIC,
                    name="UNKNOWN_TOPIC_OR_PARTITION",
                )
            self.topic_ids |= topic_ids
            return list(topics.partitions)
        if topics.pattern:
            # The connector finds the pattern anywhere in the name, and the client would
            # match whole names. So all names are fetched, and compared here.
            is_wanted = re.compile(topics.pattern).search
            found = await asker.topics(_ANY_NAME)
            found = {topic: each for topic, each in found.items() if is_wanted(topic)}
        else:
            found = await asker.topics(topics.names)
        self.topic_ids |= _ids_of(found)
        return [
            TopicPartition(topic, number)
            for topic, each in found.items()
            for number in each.partitions
        ]

    async def _bound(
        self, asker: _Asker, partitions: Collection[TopicPartition], *, is_start: bool
    ) -> _Offsets:
        """Return the offset of each partition at the start or end of the read."""
        bound = self._options.starting if is_start else self._options.ending
        wanted = lookups(bound, partitions, "start" if is_start else "end")
        offsets, missing = resolved(bound, await asker.offsets(wanted))
        if missing:
            if is_start and not self._options.latest_if_no_timestamp:
                raise no_record(bound, missing)
            offsets |= await asker.ends(missing, "latest")
        return offsets


class PartitionEnds(NamedTuple):
    """The ends of the logs of partitions.

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
) -> PartitionEnds:
    """Return the earliest and the latest offsets of partitions.

    Those that do not exist are left out. Topics that have another id than they should
    have are looked up again a few times: a broker may learn of them later than others.
    It takes no longer than one call of the client may.

    Args:
        client: asks.
        partitions: the partitions.
        topic_ids: the ids that their topics should have.
        options: of the read.
    """
    asker = _Asker(client, options.isolation_level, time.monotonic())
    return await asker.both_ends(partitions, topic_ids, _pause_of(options))


def _pause_of(options: ReadOptions) -> float:
    """Return the seconds between two attempts to look something up."""
    return options.offset_retry_interval_ms / 1_000


def _ids_of(topics: Mapping[str, FoundTopic]) -> dict[str, UUID]:
    return {
        topic: each.topic_id
        for topic, each in topics.items()
        if each.topic_id is not None
    }


class _Asker:
    """Several calls of a client, which together have the time limit of one.

    Args:
        client: a started client.
        level: the isolation level, which decides the latest offset.
        began: the start of the time limit, by the monotonic clock.
    """

    def __init__(self, client: Client, level: IsolationLevel, began: float) -> None:
        self._client = client
        self._level = level
        self._deadline = began + client.config.default_api_timeout_ms / 1000

    @property
    def _left(self) -> float:
        """Seconds for the next call; it ends at once when there are none left."""
        return max(0.001, self._deadline - time.monotonic())

    async def topics(
        self,
        topics: Collection[str] | re.Pattern[str],
        *,
        skips_unknown: bool = False,
    ) -> dict[str, FoundTopic]:
        """Return ids and partitions of topics, with one request."""
        return await self._client.find_topics(
            topics, skip_unknown=skips_unknown, timeout=self._left
        )

    async def existing(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[set[TopicPartition], dict[str, UUID]]:
        """Return those of some partitions that exist, and the ids of their topics."""
        wanted = set(partitions)
        names = sorted({tp.topic for tp in wanted})
        found = await self.topics(names, skips_unknown=True)
        there = {
            TopicPartition(topic, number)
            for topic, each in found.items()
            for number in each.partitions
        }
        return there & wanted, _ids_of(found)

    async def both_ends(
        self,
        partitions: Collection[TopicPartition],
        topic_ids: Mapping[str, UUID],
        pause: float,
    ) -> PartitionEnds:
        """Return the earliest and the latest offsets of those that exist."""
        now: dict[str, UUID] = {}

        async def find() -> set[TopicPartition]:
            nonlocal now
            there, now = await self.existing(partitions)
            return there

        ends = await self.found_ends(partitions, find)
        for _ in range(_LOOKS):
            if not remade(topic_ids, now):
                break
            await asyncio.sleep(pause)
            ends = await self.found_ends(partitions, find)
        return PartitionEnds(*ends, now)

    async def found_ends(
        self,
        expected: Collection[TopicPartition],
        find: Callable[[], Awaitable[Collection[TopicPartition]]],
    ) -> tuple[_Offsets, _Offsets]:
        """Return the ends of partitions that have to be found.

        The ends of those that are expected are looked up at the same time. They count
        if these are the partitions; if not, or if that look-up fails, because a
        partition is gone perhaps, the ends are looked up afterwards.

        Raises:
            KafkaError: the partitions or their ends cannot be looked up.
        """
        early: list[tuple[_Offsets, _Offsets]] = []
        failures: list[KafkaError] = []
        partitions: Collection[TopicPartition] = ()

        async def look_early() -> None:
            with suppress(KafkaError):
                early.append(await self.ends_of_both_sides(expected))

        async with TaskGroup() as tasks:
            if expected:
                tasks.start_soon(look_early)
            # What leaves the block in another way would be in an exception group.
            try:
                partitions = await find()
            except KafkaError as error:
                failures.append(error)
            if set(partitions) != set(expected):
                # A look-up of deleted partitions would go on until its time limit.
                tasks.cancel_scope.cancel()
        if failures:
            raise failures[0]
        if early and set(partitions) == set(expected):
            return early[0]
        return await self.ends_of_both_sides(partitions)

    async def ends_of_both_sides(
        self, partitions: Collection[TopicPartition]
    ) -> tuple[_Offsets, _Offsets]:
        """Return the earliest and the latest offsets, which are looked up together."""
        found: dict[str, _Offsets] = {}
        failures: list[KafkaError] = []

        async def look(end: Literal["earliest", "latest"]) -> None:
            try:
                found[end] = await self.ends(partitions, end)
            except KafkaError as error:
                failures.append(error)
                tasks.cancel_scope.cancel()

        async with TaskGroup() as tasks:
            tasks.start_soon(look, "earliest")
            tasks.start_soon(look, "latest")
        if failures:
            raise failures[0]
        return found["earliest"], found["latest"]

    async def ends(
        self, partitions: Iterable[TopicPartition], end: Literal["earliest", "latest"]
    ) -> _Offsets:
        found = await self.offsets(dict.fromkeys(partitions, end))
        return {tp: answer.offset for tp, answer in found.items() if answer is not None}

    async def offsets(
        self, moments: Mapping[TopicPartition, Moment]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        if not moments:
            return {}
        return await self._client.offsets(
            moments, isolation_level=self._level, timeout=self._left
        )

    async def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit the offsets of those partitions that exist.

        Of a topic that was just deleted they would be tried for the whole time.
        """
        # Loaded only where `commitGroupId` is set.
        from kafkaio.admin import Admin

        there, _ = await self.existing(offsets)
        if not there:
            return
        offsets = {tp: offset for tp, offset in offsets.items() if tp in there}
        with one_of_many():
            async with Admin(self._client) as admin:
                await admin.alter_consumer_group_offsets(
                    group, offsets, timeout=self._left
                )
