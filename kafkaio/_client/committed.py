"""The committed offsets of any group: OffsetFetch in all its versions, with retries.

`CommittedOffsets.fetch` asks the group's coordinator until it answers. Offsets that an
open transaction may still change are unstable (KIP-447): with ``requires_stable`` the
coordinator refuses to return them, and is asked again until the transaction has ended.

A fetch is anonymous unless the caller gives an identity. One with a member epoch
(KIP-848) is fenced: a coordinator that knows the member under another epoch refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import Final

from kafkaio._client.coordination import CoordinatorRpc
from kafkaio._client.destinations import GroupCoordinator
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._client.retry import Attempts
from kafkaio._dataclass import dataclass
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio.errors import KafkaError, UnsupportedVersion
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

#: The last version that has topic names; later ones have topic ids alone.
_MAX_VERSION: Final = 9
# From this version on a request has a list of groups.
_GROUPS_FROM: Final = 8
#: Groups that one request may carry.
_MANY: Final = 1_000
# From this version on it is fenced by member epochs (KIP-848).
_MEMBER_FROM: Final = 9
# From this version on it can wait for open transactions (KIP-447).
_STABLE_FROM: Final = 7
# From this version on it can return all partitions that have an offset.
_ALL_FROM: Final = 2
#: Refusals of the identity, which its owner may replace.
_STALE: Final = frozenset(
    {
        ReactionStep.RESET_GENERATION,
        ReactionStep.RESET_MEMBER,
        ReactionStep.REFRESH_MEMBER,
    }
)


@dataclass(slots=True)
class _Fetched:
    """The result of an OffsetFetch.

    Attributes:
        error: the error of the group as a whole.
        offsets: committed offsets; None where there is none.
        errors: partitions that have an error of their own.
    """

    error: int = 0
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = field(
        default_factory=dict
    )
    errors: dict[TopicPartition, int] = field(default_factory=dict)


class CommittedOffsets:
    """Fetches the committed offsets of one group.

    Args:
        rpc: sends requests to the group's coordinator.
        request_timeout: seconds that one request may take.
        requires_stable: whether to wait for open transactions. Brokers before 2.5
            cannot wait, and return what was committed before.
        identity: returns the identity to ask under; None asks anonymously. Only one
            with a member id is fenced.
        on_refused: called with an error code that refuses the identity; returns
            whether the identity will be another one, so that asking again helps.
    """

    def __init__(
        self,
        rpc: CoordinatorRpc,
        request_timeout: float,
        *,
        requires_stable: bool = True,
        identity: Callable[[], GroupMetadata] | None = None,
        on_refused: Callable[[int, GroupMetadata], bool] | None = None,
    ) -> None:
        self._rpc = rpc
        self._request_timeout = request_timeout
        self._requires_stable = requires_stable
        anonymous = GroupMetadata(group_id=rpc.key)
        self._identity = identity or (lambda: anonymous)
        self._on_refused = on_refused

    async def fetch(
        self, wanted: Collection[TopicPartition] | None, attempts: Attempts
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Fetch offsets, again and again while that may help.

        Args:
            wanted: which partitions; None for all that the group has.
            attempts: the time that the call has.

        Returns:
            The offsets in the order of the partitions' names and numbers; None where
            the group has committed nothing.

        Raises:
            RequestTimeout: the time is over; the cause is the last failure.
            BrokerError: the coordinator refused, and asking again cannot help.
            UnsupportedVersion: the coordinator cannot return all offsets.
        """
        while True:
            found, error = _Fetched(), None
            # Each time: a refusal may have given the member another identity.
            identity = self._identity()
            try:
                found = await self._fetch_once(identity, wanted, attempts)
            except KafkaError as failure:
                if not failure.retriable:
                    raise
                error = failure
            error = error or self._error_in(found, identity)
            if error is None:
                result = dict.fromkeys(wanted or ()) | found.offsets
                return {tp: result[tp] for tp in sorted(result)}
            await attempts.pause(error)

    async def fetch_each(
        self,
        wanted: Collection[TopicPartition],
        attempts: Attempts,
        *,
        requires_stable: bool = True,
    ) -> Results[TopicPartition, OffsetAndMetadata | None]:
        """Fetch offsets; a partition that is refused keeps no other from its offset.

        A failure of all partitions is retried while that may help. A failure of one,
        such as a transaction that may still change its offset, is returned at once.

        Args:
            wanted: which partitions.
            attempts: the time that the call has.
            requires_stable: False takes what was committed before a transaction that
                is open.

        Raises:
            RequestTimeout: the time is over; the cause is the last failure.
            BrokerError: the coordinator refused all, and asking again cannot help.
        """
        while True:
            identity, found, error = self._identity(), _Fetched(), None
            try:
                found = await self._fetch_once(
                    identity, wanted, attempts, requires_stable=requires_stable
                )
            except KafkaError as failure:
                if not failure.retriable:
                    raise
                error = failure
            error = error or self._error_in(_Fetched(found.error), identity)
            if error is None:
                break
            await attempts.pause(error)
        # A coordinator leaves out partitions without an offset: they count as found.
        results = Results[TopicPartition, OffsetAndMetadata | None]()
        for tp, code in found.errors.items():
            refusal, helps = self._refusal(f"{tp.topic}-{tp.partition}", code, identity)
            (results.again if helps else results.failed)[tp] = refusal
        offsets = dict.fromkeys(wanted) | found.offsets
        results.found = {tp: offsets[tp] for tp in offsets if tp not in results}
        return results

    async def _fetch_once(
        self,
        identity: GroupMetadata,
        partitions: Collection[TopicPartition] | None,
        attempts: Attempts,
        *,
        requires_stable: bool = True,
    ) -> _Fetched:
        connection = await self._rpc.connection(
            ConnectionClass.SHARED, now() + attempts.to_connect(self._request_timeout)
        )
        version = connection.versions.usable(
            OffsetFetchRequest, max_version=_MAX_VERSION
        )
        if partitions is None and version < _ALL_FROM:
            connection.versions.miss(OffsetFetchRequest.API_KEY)
            raise UnsupportedVersion(
                f"OffsetFetch {version} cannot return the offsets of all partitions"
            )
        request = _request(identity, partitions, version)
        is_stable = requires_stable and self._requires_stable
        request.require_stable = is_stable and version >= _STABLE_FROM
        reply = await self._rpc.call_on(
            connection,
            request,
            timeout=attempts.within(self._request_timeout),
            max_version=version,
            deadline=attempts.deadline,
        )
        return _read(reply)

    def _error_in(self, found: _Fetched, identity: GroupMetadata) -> KafkaError | None:
        if found.error == ErrorCode.GROUP_ID_NOT_FOUND:
            return None  # nothing has been committed yet
        errors = {"all partitions": found.error} if found.error else {}
        errors |= {f"{tp.topic}-{tp.partition}": c for tp, c in found.errors.items()}
        passing: KafkaError | None = None
        for what, code in errors.items():
            error, helps = self._refusal(what, code, identity)
            if not helps:
                raise error
            passing = error
        return passing

    def _refusal(
        self, what: str, code: int, identity: GroupMetadata
    ) -> tuple[KafkaError, bool]:
        # Returns the error, and whether asking again helps.
        asked = reaction(apis.OFFSET_FETCH, code)
        error = broker_error(
            code,
            f"{self._rpc.name} refused the committed offset of {what}",
            api=apis.OFFSET_FETCH,
            group=self._rpc.key,
        )
        if asked.refind_coordinator:
            self._rpc.forget()
        is_replaced = asked.step in _STALE and self._finds_other(code, identity)
        return error, is_replaced or asked.retry

    def _finds_other(self, code: int, identity: GroupMetadata) -> bool:
        # An anonymous fetch cannot be fenced: another identity would not help it.
        if not identity.member_id or self._on_refused is None:
            return False
        return self._on_refused(code, identity)


def fetch_operation(
    groups: Mapping[str, Collection[TopicPartition] | None], *, requires_stable: bool
) -> Operation[
    str, dict[TopicPartition, OffsetAndMetadata | None], OffsetFetchResponse
]:
    """Return the operation that fetches the offsets of many groups.

    Groups of one coordinator go into one request (KIP-709), one by one to brokers
    before 3.0.

    Args:
        groups: the partitions by group; None for all that a group has.
        requires_stable: whether to wait for open transactions.
    """

    def build(items: Sequence[str], terms: Terms) -> OffsetFetchRequest:
        request = OffsetFetchRequest()
        for group in items:
            one = _request(GroupMetadata(group), groups[group], terms.version)
            if terms.version < _GROUPS_FROM:
                request = one
            request.groups += one.groups
        request.require_stable = requires_stable and terms.version >= _STABLE_FROM
        return request

    def read(
        reply: OffsetFetchResponse, items: Sequence[str]
    ) -> Iterator[Answer[str, dict[TopicPartition, OffsetAndMetadata | None]]]:
        parts = {
            group.group_id: OffsetFetchResponse(groups=[group])
            for group in reply.groups
        }
        for item in items:
            # Older versions answer without a list of groups, about the one asked for.
            if parts and item not in parts:
                continue
            found = _read(parts.get(item, reply))
            code = found.error or next(iter(found.errors.values()), 0)
            if found.error == ErrorCode.GROUP_ID_NOT_FOUND:
                code = 0  # nothing has been committed yet
            offsets = dict.fromkeys(groups[item] or ()) | found.offsets
            yield Answer(item, {tp: offsets[tp] for tp in sorted(offsets)}, code)

    return Operation(
        what="fetch the offsets of group",
        request=OffsetFetchRequest,
        destination=GroupCoordinator,
        build=build,
        read=read,
        max_version=_MAX_VERSION,
        batch=lambda version: 1 if version < _GROUPS_FROM else _MANY,
        is_exact=True,
    )


def _request(
    identity: GroupMetadata, partitions: Collection[TopicPartition] | None, version: int
) -> OffsetFetchRequest:
    request = OffsetFetchRequest()
    topics = None if partitions is None else _by_topic(partitions)
    if version >= _GROUPS_FROM:
        group = OffsetFetchRequestGroup(group_id=identity.group_id, topics=None)
        if version >= _MEMBER_FROM and identity.member_id:
            group.member_id = identity.member_id
            group.member_epoch = identity.generation
        if topics is not None:
            group.topics = [
                OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in topics
            ]
        request.groups = [group]
        return request
    request.group_id = identity.group_id
    request.topics = None
    if topics is not None:
        request.topics = [
            OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in topics
        ]
    return request


def _by_topic(
    partitions: Collection[TopicPartition],
) -> list[tuple[str, list[int]]]:
    return [
        (topic, [tp.partition for tp in group])
        for topic, group in groupby(sorted(partitions), key=lambda tp: tp.topic)
    ]


def _read(reply: OffsetFetchResponse) -> _Fetched:
    found = _Fetched(error=reply.error_code)
    for topic in reply.topics:
        for partition in topic.partitions:
            _note(found, topic.name, partition)
    for group in reply.groups:
        found.error = found.error or group.error_code
        for named in group.topics:
            for entry in named.partitions:
                _note(found, named.name, entry)
    return found


def _note(
    found: _Fetched,
    topic: str,
    entry: OffsetFetchResponsePartition | OffsetFetchResponsePartitions,
) -> None:
    tp = TopicPartition(topic, entry.partition_index)
    if entry.error_code != ErrorCode.NONE:
        found.errors[tp] = entry.error_code
    elif entry.committed_offset < 0:
        found.offsets[tp] = None
    else:
        found.offsets[tp] = OffsetAndMetadata(
            offset=entry.committed_offset,
            metadata=entry.metadata or "",
            leader_epoch=entry.committed_leader_epoch,
        )
