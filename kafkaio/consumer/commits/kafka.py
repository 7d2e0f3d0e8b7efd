"""Commits to the group's coordinator: merged, fenced, and tried again.

Nobody but the callers is at work here. The one that has waited longest sends for all
of them; if it goes, because it has ended or was cancelled, the next one takes over.
What was on its way then is sent again, but for what only the cancelled call wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import anyio

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.commits import Answer, CommitQueue, Fate, Merge
from kafkaio._machines.reactions import Step, reaction
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.observer import Observer
from kafkaio.config import ConsumerConfig
from kafkaio.consumer.commits.messages import MAX_VERSION, commit_codes, commit_request
from kafkaio.consumer.group.attempts import Attempts
from kafkaio.consumer.group.rpc import GroupRpc
from kafkaio.errors import CommitFailed, KafkaError, PartitionLost, RebalanceInProgress
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.offset_commit import OffsetCommitResponse
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = ["CommitMember", "KafkaCommits"]

_Offsets = Mapping[TopicPartition, OffsetAndMetadata]
_Numbers = Mapping[TopicPartition, int]
#: What a caller is told of what the coordinator said: that itself, or the kind and
#: words of something that it is the cause of.
_Words: TypeAlias = tuple[type[KafkaError], str] | None
_RESETS = frozenset({Step.RESET_GENERATION, Step.RESET_MEMBER})
#: What other metadata, or less of it, would not be refused for.
_UNFIT = frozenset(
    {ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
)
_REBALANCING = RebalanceInProgress, "is rebalancing; the commit was not taken"
_LEFT_BEHIND = (
    CommitFailed,
    "went on without this member; its partitions may belong to others by now",
)
_UNWANTED = (
    CommitFailed,
    "has members of its own, so offsets of partitions assigned by hand cannot be "
    "committed to it",
)
#: Bytes of calls in one request: a quarter of what brokers take at once by default.
_LIMIT = 256 * 1024


class CommitMember(Protocol):
    """The membership that commits are made under."""

    @property
    def is_subscribed(self) -> bool:
        """Whether a group decides what may be committed."""
        ...

    @property
    def committable(self) -> Mapping[TopicPartition, int]:
        """What may be committed now, with numbers that no later claim has."""
        ...

    @property
    def uses_member_epoch(self) -> bool:
        """Whether look-ups are fenced, too (KIP-848)."""
        ...

    @property
    def is_joining(self) -> bool:
        """Whether the answer to a JoinGroup will tell the generation."""
        ...

    def commit_refused(self, code: int, identity: GroupMetadata) -> None:
        """The coordinator does not accept us as that member."""
        ...


class _Call:
    """A caller that waits: for its end, or for its turn to send."""

    __slots__ = ("attempts", "error", "has_ended", "numbers", "woken")

    def __init__(self, numbers: _Numbers | None, attempts: Attempts) -> None:
        self.numbers = numbers
        self.attempts = attempts
        self.woken = asyncio.Event()
        self.has_ended = False
        self.error: KafkaError | None = None

    def end(self) -> None:
        self.has_ended = True
        self.woken.set()


class KafkaCommits:
    """Commits the offsets of one group, one request at a time.

    Args:
        rpc: the way to the coordinator.
        config: the consumer's options.
        identity: who we are to the group, now.
        observer: hears what is tried again and, unless there is an ``offset_store``
            that tells it, what was committed.
    """

    def __init__(
        self,
        rpc: GroupRpc,
        config: ConsumerConfig,
        identity: Callable[[], GroupMetadata],
        observer: Observer,
    ) -> None:
        self._rpc = rpc
        self._identity = identity
        self._observer = observer
        self._tells = config.offset_store is None
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._request_timeout = config.request_timeout_ms / 1000
        #: The membership; None without one.
        self.member: CommitMember | None = None
        self._queue = CommitQueue(_LIMIT)
        # Invariant: those of the queue, and those that have ended and not left yet.
        self._calls: dict[int, _Call] = {}
        # Invariant: None only where no call waits.
        self._sender: _Call | None = None
        # Requests that failed one after the other, and when the next may be sent.
        self._failures = 0
        self._not_before = 0.0
        self._last: KafkaError | None = None

    async def commit(
        self, offsets: _Offsets, numbers: _Numbers | None, attempts: Attempts
    ) -> None:
        """Commit, in the order of the calls; see `OffsetCommitter.commit`.

        Args:
            offsets: what to commit: something.
            numbers: the assignments that it is for; None checks none.
            attempts: the time it has.
        """
        call = _Call(numbers, attempts)
        number = self._queue.join(offsets)
        self._calls[number] = call
        try:
            await self._turn(call)
            while not call.has_ended:
                await self._pace(attempts)
                await self._send(call)
        finally:
            self._queue.withdraw(number)
            del self._calls[number]
            self._pass_on(call)
        if call.error is not None:
            raise call.error

    async def _turn(self, call: _Call) -> None:
        if self._sender is None:
            self._sender = call
            return
        with anyio.CancelScope(deadline=call.attempts.deadline):
            await call.woken.wait()
        if not call.has_ended and now() >= call.attempts.deadline:
            raise call.attempts.expired()

    def _pass_on(self, call: _Call) -> None:
        if self._sender is not call:
            return
        self._sender = next((self._calls[n] for n in self._queue.calls), None)
        if self._sender is None:
            self._failures, self._not_before = 0, 0.0
        else:
            self._sender.woken.set()

    # ---- a request -------------------------------------------------------------------

    async def _pace(self, attempts: Attempts) -> None:
        delay = self._not_before - now()
        if delay <= 0 or self._last is None:
            return
        if self._not_before >= attempts.deadline:
            raise attempts.expired()
        what = f"a commit to group {self._rpc.group_id!r}"
        self._observer.retrying(what, self._failures, delay, self._last)
        await anyio.sleep(delay)

    async def _send(self, sender: _Call) -> None:
        """Send what may go into one request.

        Raises:
            KafkaError: it is final, and nobody's partitions are to blame: the others
                hear it when they send.
        """
        if self._ends_lost(sender):
            return
        timeout = sender.attempts.within(self._request_timeout)
        try:
            connection = await self._rpc.connection(
                ConnectionClass.SHARED, now() + timeout
            )
            # That may have taken long: what is ours and who we are is as of now.
            if self._ends_lost(sender):
                return
            identity, merge = self._identity(), self._queue.merge()
            reply = await self._rpc.call_on(
                connection,
                commit_request(identity, merge.offsets),
                timeout=timeout,
                max_version=MAX_VERSION,
            )
        except KafkaError as error:
            if not error.retriable:
                raise
            for number in self._queue.calls:
                self._calls[number].attempts.failed(error)
            self._failed(error)
        else:
            self._settle(merge, reply, identity)

    def _failed(self, error: KafkaError) -> None:
        self._last = error
        self._not_before = now() + self._backoff.delay(self._failures, roll())
        self._failures += 1

    def _ends_lost(self, sender: _Call) -> bool:
        """End the calls whose assignments have ended; whether the sender is one."""
        if self.member is None:
            return False
        ours = self.member.committable
        for number in list(self._queue.calls):
            call = self._calls[number]
            if (lost := _lost(call.numbers, ours)) is not None:
                self._queue.withdraw(number)
                call.error = lost
                call.end()
        return sender.has_ended

    def check(self, numbers: _Numbers | None) -> None:
        """Check that assignments are still in force.

        Raises:
            PartitionLost: one is not.
        """
        if self.member is None:
            return
        if (lost := _lost(numbers, self.member.committable)) is not None:
            raise lost

    # ---- its answer ------------------------------------------------------------------

    def _settle(
        self, merge: Merge, reply: OffsetCommitResponse, identity: GroupMetadata
    ) -> None:
        told = commit_codes(reply)
        codes = {
            tp: told.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR)
            for tp in sorted(merge.offsets)
        }
        taken = {tp: merge.offsets[tp] for tp in codes if codes[tp] == ErrorCode.NONE}
        if taken and self._tells:
            self._observer.offsets_committed(taken)
        verdicts = {
            code: self._verdict(code, identity)
            for code in dict.fromkeys(codes.values())
            if code != ErrorCode.NONE
        }
        answers = {
            tp: verdicts[code][0] if code in verdicts else Answer.TAKEN
            for tp, code in codes.items()
        }
        waits: KafkaError | None = None
        for fate in self._queue.answered(merge, answers):
            call, error = self._calls[fate.call], self._error(fate, codes, verdicts)
            if fate.answer is Answer.REFUSED:
                call.error = call.error or error
            elif error is not None:
                call.attempts.failed(error)
                waits = error
            if fate.has_ended:
                call.end()
        if waits is None:
            self._failures, self._not_before = 0, 0.0
        else:
            self._failed(waits)

    def _error(
        self,
        fate: Fate,
        codes: Mapping[TopicPartition, int],
        verdicts: Mapping[int, tuple[Answer, _Words]],
    ) -> KafkaError | None:
        # One of its own for each caller: each is raised in another task.
        if (tp := fate.partition) is None:
            return None
        what = f"the commit of {tp.topic}-{tp.partition}"
        said = broker_error(codes[tp], f"group {self._rpc.group_id!r} refused {what}")
        if (words := verdicts[codes[tp]][1]) is None:
            return said
        kind, what = words
        error = kind(f"group {self._rpc.group_id!r} {what}")
        error.__cause__ = said
        return error

    def _verdict(self, code: int, identity: GroupMetadata) -> tuple[Answer, _Words]:
        asked = reaction(ApiKey.OFFSET_COMMIT, code)
        if asked.refind_coordinator:
            self._rpc.forget()
        if asked.step in _RESETS or code == ErrorCode.FENCED_INSTANCE_ID:
            return self._expelled(code, identity)
        if asked.step is Step.REJOIN:
            # Our own SyncGroup is on its way, and with it the end of this.
            passes = self.member is not None and self.member.is_subscribed
            return Answer.AGAIN if passes else Answer.REFUSED, _REBALANCING
        if asked.step is Step.REFRESH_MEMBER and self.member is not None:
            # The next heartbeat, which this brings about, tells the epoch.
            self.member.commit_refused(code, identity)
            return Answer.AGAIN, None
        if asked.retry:
            return Answer.AGAIN, None
        return Answer.UNFIT if code in _UNFIT else Answer.REFUSED, None

    def _expelled(self, code: int, identity: GroupMetadata) -> tuple[Answer, _Words]:
        current = self._identity()
        if (current.member_id, current.generation) != (
            identity.member_id,
            identity.generation,
        ):
            # We joined a new generation while this was on its way. What we still own
            # can be committed under the new name. A static member that has joined
            # under a new id is the one that fenced its former self.
            return Answer.AGAIN, None
        joins = self.member is not None and self.member.is_joining
        if joins and code == ErrorCode.ILLEGAL_GENERATION:
            # The new generation may have begun, and its number be on its way to us, on
            # another connection than this answer came by.
            return Answer.AGAIN, None
        if code == ErrorCode.FENCED_INSTANCE_ID:
            if self.member is not None:
                self.member.commit_refused(code, identity)
            return Answer.REFUSED, None
        if self.member is not None and self.member.is_subscribed:
            self.member.commit_refused(code, identity)
            return Answer.REFUSED, _LEFT_BEHIND
        return Answer.REFUSED, _UNWANTED


def _lost(numbers: _Numbers | None, ours: _Numbers) -> PartitionLost | None:
    gone = sorted(tp for tp, n in (numbers or {}).items() if n != ours.get(tp))
    if not gone:
        return None
    names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in gone)
    return PartitionLost(f"not assigned to this consumer (any more): {names}")
