"""A classic group as its coordinator keeps it, for the scripted cluster.

Small but faithful: joins park until everybody is there, generations count, followers
park until the leader has divided, sessions end, and a member that is asked for its
rebalance and does not come is out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from kafkaio._client.client import Client
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.commits.committer import OffsetCommitter
from kafkaio._consumer.group.member import ConsumerMember
from kafkaio.errors import KafkaError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.heartbeat import HeartbeatResponse
from kafkaio.protocol.messages.join_group import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kafkaio.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.fakes.broker import FakeCluster
from tests.virtual_loop import VirtualClockLoop

E = ErrorCode


def virtual(
    test: Callable[..., Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """Run a test on a loop whose clock jumps."""

    @wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(100_000):
                await test(*args, **kwargs)

        with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
            runner.run(bounded())

    return run


@dataclass
class FakeMember:
    member_id: str
    instance: str | None
    session: float
    rebalance: float
    protocols: dict[str, bytes]
    join: asyncio.Future[Any] | None = None
    sync: asyncio.Future[Any] | None = None
    timer: asyncio.TimerHandle | None = None


@dataclass
class FakeGroup:
    """The group ``name`` on a fake cluster."""

    cluster: FakeCluster
    name: str = "g"
    state: str = "Empty"
    generation: int = 0
    leader: str = ""
    protocol: str = ""
    members: dict[str, FakeMember] = field(default_factory=dict)
    shares: dict[str, bytes] = field(default_factory=dict)
    offsets: dict[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    history: list[Mapping[str, bytes]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    _ids: int = 0
    _given: set[str] = field(default_factory=set)
    _timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        for api, handler in {
            ApiKey.JOIN_GROUP: self._join,
            ApiKey.SYNC_GROUP: self._sync,
            ApiKey.HEARTBEAT: self._heartbeat,
            ApiKey.LEAVE_GROUP: self._leave,
            ApiKey.OFFSET_COMMIT: self._commit,
            ApiKey.OFFSET_FETCH: self._fetch,
        }.items():
            self.cluster.on(api, handler)

    # -- for tests

    def close(self) -> None:
        for member in self.members.values():
            if member.timer is not None:
                member.timer.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def rebalance(self) -> None:
        """As if somebody new had come."""
        self._prepare()

    def forget(self, member_id: str) -> None:
        """Throw a member out."""
        self._remove(member_id)

    # -- handlers

    def _elsewhere(self, node: Any) -> bool:
        return bool(self.cluster.coordinator(self.name) != node.node_id)

    def _join(self, node: Any, header: Any, request: Any) -> Any:
        if self._elsewhere(node):
            return JoinGroupResponse(error_code=E.NOT_COORDINATOR)
        member_id = request.member_id
        if not member_id:
            for known in list(self.members.values()):
                if request.group_instance_id and (
                    known.instance == request.group_instance_id
                ):
                    self._remove(known.member_id)
            self._ids += 1
            member_id = f"member-{self._ids}"
            if header.request_api_version >= 4 and request.group_instance_id is None:
                self._given.add(member_id)
                return JoinGroupResponse(
                    error_code=E.MEMBER_ID_REQUIRED, member_id=member_id
                )
        elif member_id in self._given:
            self._given.discard(member_id)
        elif member_id not in self.members:
            return JoinGroupResponse(error_code=E.UNKNOWN_MEMBER_ID)
        member = self.members.setdefault(
            member_id,
            FakeMember(
                member_id,
                request.group_instance_id,
                request.session_timeout_ms / 1000,
                request.rebalance_timeout_ms / 1000,
                {},
            ),
        )
        member.protocols = {p.name: p.metadata for p in request.protocols}
        member.join = asyncio.get_running_loop().create_future()
        self._keep(member)
        if self.state != "PreparingRebalance":
            self._prepare()
        answer = member.join
        self._complete_join()
        return answer

    def _sync(self, node: Any, header: Any, request: Any) -> Any:
        del header
        if self._elsewhere(node):
            return SyncGroupResponse(error_code=E.NOT_COORDINATOR)
        if code := self._check(request.member_id, request.generation_id):
            return SyncGroupResponse(error_code=code)
        member = self.members[request.member_id]
        self._keep(member)
        if self.state == "PreparingRebalance":
            return SyncGroupResponse(error_code=E.REBALANCE_IN_PROGRESS)
        if self.state == "Stable":
            return self._share(member.member_id)
        member.sync = asyncio.get_running_loop().create_future()
        answer = member.sync
        if member.member_id == self.leader:
            self.shares = {a.member_id: a.assignment for a in request.assignments}
            self.history.append(self.shares)
            self.state = "Stable"
            for each in self.members.values():
                if each.sync is not None:
                    each.sync.set_result(self._share(each.member_id))
                    each.sync = None
                    self._keep(each)
        return answer

    def _share(self, member_id: str) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type="consumer",
            protocol_name=self.protocol,
            assignment=self.shares.get(member_id, b""),
        )

    def _heartbeat(self, node: Any, header: Any, request: Any) -> Any:
        del header
        if self._elsewhere(node):
            return HeartbeatResponse(error_code=E.NOT_COORDINATOR)
        if code := self._check(request.member_id, request.generation_id):
            return HeartbeatResponse(error_code=code)
        self._keep(self.members[request.member_id])
        if self.state == "PreparingRebalance":
            return HeartbeatResponse(error_code=E.REBALANCE_IN_PROGRESS)
        return HeartbeatResponse()

    def _leave(self, node: Any, header: Any, request: Any) -> Any:
        if self._elsewhere(node):
            return LeaveGroupResponse(error_code=E.NOT_COORDINATOR)
        if header.request_api_version >= 3:
            ids = [member.member_id for member in request.members]
        else:
            ids = [request.member_id]
        for member_id in ids:
            self.left.append(member_id)
            self._remove(member_id)
        return LeaveGroupResponse(
            members=[MemberResponse(member_id=member_id) for member_id in ids]
            if header.request_api_version >= 3
            else []
        )

    def _commit(self, node: Any, header: Any, request: Any) -> Any:
        del header
        code = int(E.NONE)
        generation = request.generation_id_or_member_epoch
        if self._elsewhere(node):
            code = E.NOT_COORDINATOR
        elif generation >= 0 or self.members:
            code = self._check(request.member_id, generation)
        if not code and self.state == "CompletingRebalance":
            code = E.REBALANCE_IN_PROGRESS
        if not code:
            self.offsets |= {
                TopicPartition(t.name, p.partition_index): OffsetAndMetadata(
                    p.committed_offset, p.committed_metadata, p.committed_leader_epoch
                )
                for t in request.topics
                for p in t.partitions
            }
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=t.name,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=p.partition_index, error_code=code
                        )
                        for p in t.partitions
                    ],
                )
                for t in request.topics
            ]
        )

    def _fetch(self, node: Any, header: Any, request: Any) -> Any:
        code = E.NOT_COORDINATOR if self._elsewhere(node) else E.NONE
        version = header.request_api_version
        asked = request.groups[0].topics if version >= 8 else request.topics
        if asked is None:
            wanted = sorted(self.offsets)
        else:
            wanted = [
                TopicPartition(t.name, n) for t in asked for n in t.partition_indexes
            ]
        if version >= 8:
            return OffsetFetchResponse(
                groups=[
                    OffsetFetchResponseGroup(
                        group_id=self.name,
                        error_code=code,
                        topics=[
                            OffsetFetchResponseTopics(
                                name=tp.topic,
                                partitions=[
                                    OffsetFetchResponsePartitions(**self._entry(tp))
                                ],
                            )
                            for tp in wanted
                        ],
                    )
                ]
            )
        reply = OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name=tp.topic,
                    partitions=[
                        OffsetFetchResponsePartition(
                            **self._entry(tp, epochs=version >= 5)
                        )
                    ],
                )
                for tp in wanted
            ]
        )
        if version >= 2:
            reply.error_code = code
        return reply

    def _entry(self, tp: TopicPartition, *, epochs: bool = True) -> dict[str, Any]:
        found = self.offsets.get(tp, OffsetAndMetadata(-1))
        entry = {
            "partition_index": tp.partition,
            "committed_offset": found.offset,
            "metadata": found.metadata,
        }
        if epochs:
            entry["committed_leader_epoch"] = found.leader_epoch
        return entry

    # -- the group

    def _check(self, member_id: str, generation: int) -> int:
        if member_id not in self.members:
            return E.UNKNOWN_MEMBER_ID
        return 0 if generation == self.generation else E.ILLEGAL_GENERATION

    def _prepare(self) -> None:
        self.state = "PreparingRebalance"
        for member in self.members.values():
            if member.sync is not None:
                code = E.REBALANCE_IN_PROGRESS
                member.sync.set_result(SyncGroupResponse(error_code=code))
                member.sync = None
        wait = max((m.rebalance for m in self.members.values()), default=0.0)
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(wait, self._give_up)

    def _give_up(self) -> None:
        if self.state != "PreparingRebalance":
            return
        for member in list(self.members.values()):
            if member.join is None:
                self.expired.append(member.member_id)
                del self.members[member.member_id]
        self._complete_join()

    def _complete_join(self) -> None:
        if self.state != "PreparingRebalance":
            return
        if not self.members:
            self.state = "Empty"
            return
        if any(member.join is None for member in self.members.values()):
            return
        self.generation += 1
        self.state = "CompletingRebalance"
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        common = [
            name
            for name in self.members[self.leader].protocols
            if all(name in member.protocols for member in self.members.values())
        ]
        self.protocol = common[0]
        for member in self.members.values():
            assert member.join is not None
            is_leader = member.member_id == self.leader
            member.join.set_result(
                JoinGroupResponse(
                    generation_id=self.generation,
                    protocol_type="consumer",
                    protocol_name=self.protocol,
                    leader=self.leader,
                    member_id=member.member_id,
                    members=[
                        JoinGroupResponseMember(
                            member_id=each.member_id,
                            metadata=each.protocols[self.protocol],
                        )
                        for each in self.members.values()
                    ]
                    if is_leader
                    else [],
                )
            )
            member.join = None
            self._keep(member)

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        if member.timer is not None:
            member.timer.cancel()
        for future, reply in (
            (member.join, JoinGroupResponse(error_code=E.UNKNOWN_MEMBER_ID)),
            (member.sync, SyncGroupResponse(error_code=E.UNKNOWN_MEMBER_ID)),
        ):
            if future is not None and not future.done():
                future.set_result(reply)
        if self.state != "PreparingRebalance":
            self._prepare()
        self._complete_join()

    def _keep(self, member: FakeMember) -> None:
        if member.timer is not None:
            member.timer.cancel()
        loop = asyncio.get_running_loop()
        member.timer = loop.call_later(member.session, self._expire, member)

    def _expire(self, member: FakeMember) -> None:
        if member.join is not None or member.sync is not None:
            self._keep(member)
        elif self.members.get(member.member_id) is member:
            self.expired.append(member.member_id)
            self._remove(member.member_id)


class FakeHost:
    """A consumer that notes what it is told, with knobs."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, frozenset[TopicPartition]]] = []
        self.busy: set[TopicPartition] = set()
        self.deadlines: list[float] = []
        self.failures: list[KafkaError] = []
        self.owned: set[TopicPartition] = set()
        self.on_revoking: Callable[..., Coroutine[Any, Any, None]] | None = None
        self.on_assigned: Callable[..., Coroutine[Any, Any, None]] | None = None

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def of(self, name: str) -> list[frozenset[TopicPartition]]:
        return [partitions for each, partitions in self.calls if each == name]

    def revoke_requested(
        self, partitions: frozenset[TopicPartition], deadline: float
    ) -> None:
        self.calls.append(("requested", partitions))
        self.deadlines.append(deadline)

    def stop_handing_out(self, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(("withheld", partitions))

    def idle(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        return partitions - self.busy

    def failed(self, error: KafkaError) -> None:
        self.failures.append(error)

    async def revoking(self, partitions: frozenset[TopicPartition]) -> None:
        if self.on_revoking is not None:
            await self.on_revoking(partitions)
        self.calls.append(("revoking", partitions))
        self.owned -= partitions

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(("lost", partitions))
        self.owned -= partitions

    async def assigned(
        self, added: frozenset[TopicPartition], owned: frozenset[TopicPartition]
    ) -> None:
        if self.on_assigned is not None:
            await self.on_assigned(added)
        self.calls.append(("assigned", added))
        self.owned |= added
        assert added <= owned


class Member:
    """A client, its host and its membership, run by the client's supervisor."""

    def __init__(
        self,
        cluster: FakeCluster,
        topics: Any = frozenset({"t"}),
        observer: object = None,
        **options: Any,
    ) -> None:
        settings: dict[str, Any] = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "group_id": "g",
            "group_protocol": "classic",
            "session_timeout_ms": 10_000,
            "heartbeat_interval_ms": 1_000,
            "max_poll_interval_ms": 60_000,
        }
        self.config = ConsumerConfig(**(settings | options))
        self.client = Client.from_config(
            self.config, observer=observer, dial=cluster.dial
        )
        self.host = FakeHost()
        self.committer = OffsetCommitter(
            self.client._cluster, self.config, lambda: self.group.identity()
        )
        self.group = ConsumerMember(self.client._cluster, self.config, self.host)
        self.committer.attach(self.group)
        self.topics = topics
        self.error: BaseException | None = None
        self.ended = asyncio.Event()

    @property
    def tps(self) -> set[tuple[str, int]]:
        return set(self.group.assignment)

    async def start(self) -> Member:
        await self.client.start()
        self.group.subscribe(self.topics)
        self.client._cluster.start_soon(self._run, "group")
        return self

    async def _run(self) -> None:
        try:
            await self.group.run()
        except Exception as error:  # noqa: BLE001
            self.error = error
        finally:
            self.ended.set()

    async def __aenter__(self) -> Member:
        await self.start()
        await self.group.wait_joined()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        async with asyncio.timeout(120):
            await self.group.leave()
        await self.client.close()


async def until(condition: Callable[[], bool], limit: float = 1000.0) -> None:
    """Let time pass until something holds."""
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
