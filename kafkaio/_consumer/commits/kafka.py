"""Offsets at the group coordinator: commits are merged, fenced and retried.

Parts. Each partition has an answer of its own. One that is refused keeps no other from
being committed, whether it was given in the same call or in another. A partition that
the coordinator does not know, because its topic was deleted, is not tried for long
(`kafkaio._machines.patience`).

Order. One commit is in flight at a time. No task sends it: the calls that wait send it
themselves. The call that has waited longest is the *sender*. It sends one
request for all that wait, until its own commit has ended. Then, or when it is
cancelled, the next call becomes the sender. The offsets that a cancelled sender had in
flight are sent again by the next one, except for those of the cancelled call alone.

Fencing. Each call has the `Fence` of the assignments that its offsets belong to. It is
compared immediately before each request that carries them: a call whose assignment has
ended fails with PartitionLost, and nothing of it is sent.

Identity. A refusal of the member id or the generation does not always end a commit. It
is retried, as long as the assignments are in force,

- if the member has another identity by now;
- if the answer to a JoinGroup or SyncGroup, which is under way, decides on the
  generation;
- if the generation was never completed, because the coordinator moved between JoinGroup
  and SyncGroup: the member then returns to the generation before.

A transaction commits by requests of its own, which are fenced in the same way: by a
`Fence` before each of them, and by `refused` after a refusal.

Fetches are independent of commits, and of each other. They wait until no open
transaction can change their result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from kafkaio._client.committed import CommittedOffsets
from kafkaio._client.coordination import Answer, CoordinatorRpc
from kafkaio._client.fanout import Results
from kafkaio._client.retry import Attempts, RetryPolicy
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.commits.messages import (
    MAX_VERSION,
    CommitRequests,
    commit_codes,
)
from kafkaio._machines.commits import CommitAnswer, CommitQueue, Merge
from kafkaio._machines.membership.fence import Fence
from kafkaio._machines.patience import ASKED_FOR, UNKNOWN_TOPIC, Doubt
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.scopes import CancelScope
from kafkaio.errors import (
    CommitFailed,
    KafkaError,
    RebalanceInProgress,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.offset_commit import OffsetCommitResponse
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ViewPort

_Offsets = Mapping[TopicPartition, OffsetAndMetadata]
#: The error that a caller gets for a refusal: its type and text, with the coordinator's
#: error as its cause; None for the coordinator's error itself.
_ErrorText: TypeAlias = tuple[type[KafkaError], str] | None
_Refused: TypeAlias = Mapping[TopicPartition, tuple[int, _ErrorText]]
_NONE_REFUSED: _Refused = MappingProxyType({})
_RESETS = frozenset({ReactionStep.RESET_GENERATION, ReactionStep.RESET_MEMBER})
#: Refusals of the identity, rather than of the offsets.
_IDENTITY = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
#: Refusals of the metadata of a commit: other calls in the request are not to blame.
_INVALID = frozenset(
    {ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
)
_REBALANCING = RebalanceInProgress, "is rebalancing; the commit was not accepted"
_REMOVED = (
    CommitFailed,
    "went on without this member; its partitions may belong to others by now",
)
_NO_MEMBER = (
    CommitFailed,
    "has members, and this consumer is not one of them: only members can commit to it",
)
#: Looked up once: each commit needs it.
_SHARED: Final = ConnectionClass.SHARED
#: Bytes of calls in one request: a quarter of what brokers accept by default.
_LIMIT = 256 * 1024
#: Most partitions that an error names.
_NAMED = 5


class CommitMemberPort(Protocol):
    """The group member that commits are made for."""

    @property
    def is_subscribed(self) -> bool:
        """Whether it is subscribed; if so, it commits only what it owns."""
        ...

    def fence(self, partitions: Collection[TopicPartition]) -> Fence | None:
        """Return the fence of a commit of these partitions; None checks none.

        Raises:
            PartitionLost: a partition is not assigned to this member (any more).
        """
        ...

    @property
    def uses_member_epoch(self) -> bool:
        """Whether fetches of offsets are fenced, too (KIP-848)."""
        ...

    @property
    def is_joining(self) -> bool:
        """Whether the answer to a JoinGroup or SyncGroup decides on the generation."""
        ...

    def restore_generation(self) -> bool:
        """Return to the generation before, if the present one was never completed."""
        ...

    def commit_refused(self, code: int, identity: GroupMetadata) -> None:
        """The coordinator refused a commit under that identity."""
        ...


class CommitCall:
    """One call that commits: `KafkaOffsets.begin` begins it.

    Args:
        offsets: the offsets; not empty, and never changed.
        fence: the assignments that the offsets belong to; None checks none.
        attempts: the time that the call has.
        doubt: seconds for partitions whose topic the coordinator does not know.

    Attributes:
        answer: of the request that it has sent and whose answer is not taken yet; None
            for none.
        taken: the partitions that are committed.
    """

    __slots__ = (
        "_doubt", "answer", "attempts", "error", "fence", "has_ended", "identity",
        "merge", "number", "offsets", "refused", "sent_at", "taken", "woken",
    )  # fmt: skip

    # The request that it has sent: what it carries, for whom, and when.
    merge: Merge
    identity: GroupMetadata
    sent_at: float

    def __init__(
        self,
        offsets: _Offsets,
        fence: Fence | None,
        attempts: Attempts,
        doubt: float = ASKED_FOR,
    ) -> None:
        self.offsets = offsets
        self.fence = fence
        self.attempts = attempts
        self._doubt: Doubt | float = doubt
        self.answer: Answer[OffsetCommitResponse] | None = None
        #: Whether nothing of it is left to be sent.
        self.has_ended = False
        #: Why all of it failed.
        self.error: KafkaError | None = None
        #: Its number in the queue; -1 before it is there.
        self.number = -1
        self.taken: Collection[TopicPartition] = ()
        #: Why each of its other partitions was refused; replaced, and not changed.
        self.refused: _Refused = _NONE_REFUSED
        # None while nobody waits: a call that sends at once never does.
        self.woken: asyncio.Event | None = None

    def end(self) -> None:
        """Note that nothing of it is left to be sent."""
        self.has_ended = True
        if self.woken is not None:
            self.woken.set()

    def gives_up(self, at: float) -> bool:
        """Whether it gives up topics that the coordinator does not know."""
        if not isinstance(self._doubt, Doubt):
            self._doubt = Doubt(self._doubt)
        return self._doubt.is_over(at)


class KafkaOffsets:
    """Commits and fetches the offsets of one group; one commit is in flight at a time.

    Args:
        rpc: sends requests to the coordinator.
        config: the consumer's options.
        identity: returns the identity under which to commit now.
        topics: knows whether a topic was deleted.
        observer: observes retries, and commits unless there is an ``offset_store``,
            for which the committer reports them.
    """

    def __init__(
        self,
        rpc: CoordinatorRpc,
        config: ConsumerConfig,
        identity: Callable[[], GroupMetadata],
        topics: ViewPort,
        observer: Observer,
    ) -> None:
        self._rpc = rpc
        self._topics = topics
        self._identity = identity
        self._observer = observer
        self._reports = config.offset_store is None
        self._request_timeout = config.request_timeout_ms / 1000
        #: The group member; None if the consumer is in no group.
        self.member: CommitMemberPort | None = None
        self._stored = CommittedOffsets(
            rpc,
            self._request_timeout,
            identity=self._fetching_as,
            on_refused=self._fetch_refused,
        )
        self._queue = CommitQueue(_LIMIT)
        self._messages = CommitRequests()
        # Invariant: the calls in the queue, in its order, and those that have ended and
        # whose tasks have not noticed yet.
        self._calls: dict[int, CommitCall] = {}
        # Invariant: None only if no call waits.
        self._sender: CommitCall | None = None
        # The requests that failed one after the other, and when the next may be sent;
        # it has no deadline, each call has one of its own. Invariant: no failure if no
        # call waits.
        self._requests = Attempts(
            f"a commit to {rpc.name}",
            RetryPolicy.from_config(config, observer),
        )

    async def commit(self, call: CommitCall) -> None:
        """Commit, in the order of the calls; see `OffsetCommitter.commit`."""
        self.begin(call, now())
        try:
            await self.finish(call)
        finally:
            self.leave(call)

    def begin(self, call: CommitCall, at: float) -> None:
        """Take a call in, behind all others; it may send its request at once.

        `finish` waits for its end, and `leave` has to follow, whatever happens. A call
        that has an ``answer`` may wait for that, and pass it to `settle`: this is all
        that most calls need.

        Args:
            call: the call.
            at: the time.
        """
        call.number = self._queue.add(call.offsets)
        self._calls[call.number] = call
        if self._sender is not None:
            return
        self._sender = call
        connection = self._rpc.at_hand(_SHARED)
        if connection is not None and (call.fence is None or call.fence.lost() is None):
            try:
                self._submit(call, connection, at)
            except BaseException:
                self.leave(call)  # the caller does not: this has not returned
                raise

    def settle(
        self, call: CommitCall, reply: OffsetCommitResponse | None, at: float
    ) -> bool:
        """Take an answer that committed all; any other one is left to `finish`.

        Args:
            call: it has sent its first request.
            reply: the answer that it has waited for.
            at: the time.

        Returns:
            Whether the call has ended, as committed.
        """
        if reply is None or not self._messages.has_committed(reply):
            return False
        self._committed(call, at)
        return True

    async def finish(self, call: CommitCall) -> None:
        """Wait until a call has ended, and raise what it failed with."""
        if call.answer is not None:
            await self._receive(call)
            may_send = self._may_send(call)
        else:
            may_send = self._sender is call or await self._wait_turn(call)
        while may_send and (
            self._requests.due == 0.0 or await self._is_due(call.attempts)
        ):
            await self._send(call)
            may_send = self._may_send(call)
        if not call.has_ended:
            call.error = self._expired(call)
        if call.error is not None or call.refused:
            self._raise(call)

    def leave(self, call: CommitCall) -> None:
        """Forget a call: it has ended, or is given up."""
        if not call.has_ended:
            self._queue.withdraw(call.number)
        del self._calls[call.number]
        if self._sender is call:
            self._sender = None
            if self._calls or self._requests.failures:
                self._pass_on()

    def _may_send(self, call: CommitCall) -> bool:
        # Whether it is the sender and goes on; else it has ended, or its time is over.
        return (
            self._sender is call
            and not call.has_ended
            and now() < call.attempts.deadline
        )

    async def _wait_turn(self, call: CommitCall) -> bool:
        woken = call.woken = asyncio.Event()
        with CancelScope(deadline=call.attempts.deadline):
            await woken.wait()
        return self._may_send(call)

    async def _is_due(self, attempts: Attempts) -> bool:
        # Wait for the back-off after a failure. False if that ends after the deadline.
        due = self._requests.due
        if due >= attempts.deadline and due > now():
            return False
        await self._requests.wait()
        return True

    def _expired(self, call: CommitCall) -> KafkaError:
        done = {*call.taken, *call.refused}
        left = _names(tp for tp in sorted(call.offsets) if tp not in done)
        call.attempts.what = f"a commit of {left} to {self._rpc.name}"
        return self._rpc.expired(call.attempts)

    def _raise(self, call: CommitCall) -> None:
        errors = [] if call.error is None else [call.error]
        kinds = dict.fromkeys(call.refused.values())
        errors += [self._refusal(call.refused, kind) for kind in kinds]
        for other in errors[1:]:
            errors[0].add_note(f"and another: {other}")
        raise errors[0]

    def _pass_on(self) -> None:
        for other in self._calls.values():
            if not other.has_ended:
                self._sender = other
                if other.woken is not None:
                    other.woken.set()
                return
        # The next call begins without the back-off of this one.
        self._requests.succeeded()

    # ---- a request -------------------------------------------------------------------

    async def _send(self, sender: CommitCall) -> None:
        """Send one request for the calls that wait, and take its answer.

        Raises:
            KafkaError: a failure for good that concerns no partition in particular:
                the other calls get it when they send.
        """
        if self._ends_lost(sender):
            return
        connection = self._rpc.at_hand(_SHARED)
        if connection is None:
            by = now() + sender.attempts.to_connect(self._request_timeout)
            try:
                connection = await self._rpc.connection(_SHARED, by)
            except KafkaError as error:
                self._failed(error)
                return
            # This may have taken long: assignments count as they are now.
            if self._ends_lost(sender):
                return
        self._submit(sender, connection, now())
        await self._receive(sender)

    def _submit(self, sender: CommitCall, connection: Connection, at: float) -> None:
        # Nothing is awaited between the last look at the fences and the request.
        identity = self._identity
        sender.identity, sender.merge = identity(), self._queue.merge()
        request = self._messages.make(sender.identity, sender.merge.offsets)
        sender.sent_at = at
        # A call that gives up leaves its request in flight, so that a later commit
        # takes effect after it. On another connection it could be overtaken, and would
        # then move the committed offsets back.
        sender.answer = self._rpc.send(
            connection,
            request,
            timeout=self._request_timeout,
            max_version=MAX_VERSION,
            deadline=sender.attempts.deadline,
            last=self._messages.last,
        )

    async def _receive(self, sender: CommitCall) -> None:
        """Take the answer to the request that the sender has sent.

        Raises:
            KafkaError: as `_send` does.
        """
        answer = sender.answer
        assert answer is not None
        reply = await answer
        if reply is None:
            sender.answer = None
            self._failed(self._rpc.failure_of(answer))
        # The request is still this one: the next is made by the sender after this.
        elif self._messages.has_committed(reply):
            self._committed(sender, now())
        else:
            self._settle(sender, reply)

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, KafkaError) or not error.retriable:
            raise error
        for number in self._queue.calls:
            self._calls[number].attempts.note(error)
        self._requests.failed(error)

    def _ends_lost(self, sender: CommitCall) -> bool:
        """End the calls whose assignments have ended.

        Returns:
            Whether the sender is one of them.
        """
        for number, call in self._calls.items():
            if call.fence is None or call.has_ended:
                continue
            if (lost := call.fence.lost()) is not None:
                self._queue.withdraw(number)
                call.error = lost
                call.end()
        return sender.has_ended

    def refused(self, code: int, identity: GroupMetadata) -> bool:
        """Whether a transaction commits again after a refusal; see the module's text.

        Args:
            code: the coordinator's error code.
            identity: the identity in the request.
        """
        member = self.member
        has_epoch = member is not None and member.uses_member_epoch
        if code == ErrorCode.ILLEGAL_GENERATION and has_epoch:
            # TxnOffsetCommit has this one code for every epoch but the current one.
            code = ErrorCode.STALE_MEMBER_EPOCH
        if code not in _IDENTITY:
            return False
        return self._verdict(code, identity)[0] is CommitAnswer.RETRY

    # ---- its answer ------------------------------------------------------------------

    def _committed(self, sender: CommitCall, at: float) -> None:
        # The same as `_settle` for an answer without any refusal, as nearly all are.
        merge = sender.merge
        self._taken(sender, merge.offsets, at)
        for number in merge.calls:
            partitions = self._queue.committed(number)
            if partitions is None:
                continue
            call = self._calls[number]
            call.taken = [*call.taken, *partitions] if call.taken else partitions
            call.end()
        if self._requests.failures:
            self._requests.succeeded()

    def _taken(self, sender: CommitCall, offsets: _Offsets, at: float) -> None:
        # The answer has come, and says that these offsets are committed.
        sender.answer = None
        if self._reports and offsets:
            self._observer.offsets_committed(offsets, at - sender.sent_at)

    def _settle(self, sender: CommitCall, reply: OffsetCommitResponse) -> None:
        merge, identity = sender.merge, sender.identity
        answered = commit_codes(reply)
        codes = {
            tp: answered.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR)
            for tp in sorted(merge.offsets)
        }
        taken = {tp: merge.offsets[tp] for tp in codes if codes[tp] == ErrorCode.NONE}
        self._taken(sender, taken, now())
        verdicts = {
            code: self._verdict(code, identity)
            for code in dict.fromkeys(codes.values())
            if code != ErrorCode.NONE
        }
        answers = {
            tp: verdicts[code][0] if code in verdicts else CommitAnswer.COMMITTED
            for tp, code in codes.items()
        }
        giving_up: Collection[int] = ()
        unknown = [tp for tp in codes if codes[tp] in UNKNOWN_TOPIC] if verdicts else []
        if unknown:
            answers |= dict.fromkeys(self.missing(unknown), CommitAnswer.REFUSED)
            giving_up = self._giving_up(merge)
        failure: KafkaError | None = None
        for outcome in self._queue.answered(merge, answers, giving_up):
            call = self._calls[outcome.call]
            call.taken = [*call.taken, *outcome.committed]
            refused = {
                tp: (codes[tp], verdicts[codes[tp]][1]) for tp in outcome.refused
            }
            call.refused = {**call.refused, **refused}
            if outcome.waits:
                failure = self._passing(outcome.waits, codes, verdicts)
                call.attempts.note(failure)
            if outcome.has_ended:
                call.end()
        if failure is None:
            self._requests.succeeded()
        else:
            self._requests.failed(failure)

    def missing(self, unknown: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Return those of some partitions that the client's metadata lacks, too.

        Args:
            unknown: partitions that a coordinator does not know. Newer metadata is
                requested.
        """
        # Not by name: a broker may create a topic that a client asks for.
        self._topics.request_refresh()
        return frozenset(filter(self._topics.view.lacks, unknown))

    def _giving_up(self, merge: Merge) -> Collection[int]:
        # The calls that have waited long enough for topics that are not known.
        at = now()
        return [
            number
            for number in merge.calls
            if (call := self._calls.get(number)) is not None and call.gives_up(at)
        ]

    def _passing(
        self,
        partitions: Iterable[TopicPartition],
        codes: Mapping[TopicPartition, int],
        verdicts: Mapping[int, tuple[CommitAnswer, _ErrorText]],
    ) -> KafkaError:
        waiting = {tp: (codes[tp], verdicts[codes[tp]][1]) for tp in partitions}
        return self._refusal(waiting, next(iter(waiting.values())))

    def _refusal(
        self,
        refused: _Refused,
        kind: tuple[int, _ErrorText],
    ) -> KafkaError:
        # Each call gets an error of its own, because it is raised in another task.
        partitions = [tp for tp, other in refused.items() if other == kind]
        code, text = kind
        refusal = broker_error(
            code,
            f"{self._rpc.name} refused the commit of {_names(partitions)}",
            api=apis.OFFSET_COMMIT,
            topic=partitions[0].topic,
            group=self._rpc.key,
        )
        if text is None:
            return refusal
        kind_of_error, what = text
        error = kind_of_error(f"{self._rpc.name} {what}")
        error.__cause__ = refusal
        return error

    def _verdict(
        self, code: int, identity: GroupMetadata
    ) -> tuple[CommitAnswer, _ErrorText]:
        asked = reaction(apis.OFFSET_COMMIT, code)
        if code in UNKNOWN_TOPIC:
            return CommitAnswer.UNKNOWN, None
        if asked.refind_coordinator:
            self._rpc.forget()
        if asked.step in _RESETS or code == ErrorCode.FENCED_INSTANCE_ID:
            return self._identity_refused(code, identity)
        if asked.step is ReactionStep.REJOIN:
            # The member's own SyncGroup ends this state of the group.
            passes = self.member is not None and self.member.is_subscribed
            return CommitAnswer.RETRY if passes else CommitAnswer.REFUSED, _REBALANCING
        if asked.step is ReactionStep.REFRESH_MEMBER and self.member is not None:
            # This causes a heartbeat, whose answer has the member's epoch.
            self.member.commit_refused(code, identity)
            return CommitAnswer.RETRY, None
        if asked.retry:
            return CommitAnswer.RETRY, None
        return CommitAnswer.INVALID if code in _INVALID else CommitAnswer.REFUSED, None

    def _identity_refused(
        self, code: int, identity: GroupMetadata
    ) -> tuple[CommitAnswer, _ErrorText]:
        current = self._identity()
        if (current.member_id, current.generation) != (
            identity.member_id,
            identity.generation,
        ):
            # The member joined a new generation while the request was in flight. The
            # partitions that it still owns can be committed under the new identity.
            # That holds for FENCED_INSTANCE_ID too: a static member that joined again
            # under a new id has fenced its own old id.
            return CommitAnswer.RETRY, None
        member = self.member
        if (
            member is not None
            and code == ErrorCode.ILLEGAL_GENERATION
            and (member.restore_generation() or member.is_joining)
        ):
            # The coordinator has moved, and the new one does not know this generation.
            # Or the next one has begun: its number comes with the answer to the
            # JoinGroup, on another connection than this answer.
            return CommitAnswer.RETRY, None
        if code == ErrorCode.FENCED_INSTANCE_ID:
            if member is not None:
                member.commit_refused(code, identity)
            return CommitAnswer.REFUSED, None
        if member is not None and member.is_subscribed:
            member.commit_refused(code, identity)
            return CommitAnswer.REFUSED, _REMOVED
        # A member that has unsubscribed has still an identity until it has left.
        return (
            CommitAnswer.REFUSED,
            _REMOVED if identity.generation >= 0 else _NO_MEMBER,
        )

    # ---- fetching --------------------------------------------------------------------

    async def fetch(
        self, wanted: frozenset[TopicPartition] | None, attempts: Attempts
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Fetch committed offsets, as `OffsetCommitter.fetch` does.

        Args:
            wanted: which partitions; None for all that the group has.
            attempts: the time that the call has.
        """
        return await self._stored.fetch(wanted, attempts)

    async def fetch_each(
        self,
        wanted: frozenset[TopicPartition],
        attempts: Attempts,
        *,
        requires_stable: bool = True,
    ) -> Results[TopicPartition, OffsetAndMetadata | None]:
        """Fetch committed offsets, as `CommittedOffsets.fetch_each` does."""
        return await self._stored.fetch_each(
            wanted, attempts, requires_stable=requires_stable
        )

    def _fetching_as(self) -> GroupMetadata:
        # OffsetFetch is fenced by a member epoch alone. Without one it is anonymous.
        identity = self._identity()
        fences = self.member is not None and self.member.uses_member_epoch
        if fences and identity.generation >= 0:
            return identity
        return GroupMetadata(group_id=self._rpc.key)

    def _fetch_refused(self, code: int, identity: GroupMetadata) -> bool:
        # The member finds its new identity; the next attempt uses that.
        if self.member is None:
            return False
        self.member.commit_refused(code, identity)
        return True


def _names(partitions: Iterable[TopicPartition]) -> str:
    left = iter(partitions)
    names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in islice(left, _NAMED))
    others = sum(1 for _ in left)
    return f"{names} and {others} more" if others else names
