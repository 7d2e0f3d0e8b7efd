"""Markers as committed offsets of groups, for users who cannot have a topic for them.

Each task has a group, with the name of its transactional id, and commits the marker in
its own transaction. The marker is in the metadata. The offset is beyond the end of any
log, so that tools see no lag.

Another group of the application holds its *claim*: the version that was begun last, its
run, whether another run had begun it before, and whether it is in as a whole. The claim
is committed outside of transactions, so it is weaker than the log order of a topic: two
runs of a version that begin in the same instant may both find no claim. One driver at a
time, which `kafkaio.spark` assumes, does not do that.

Tasks do not see what other runs have committed or have open. The driver does: it lists
the groups and the transactions with the application's names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from kafkaio._client import Client
from kafkaio._dataclass import dataclass
from kafkaio._producer.transaction import Transaction
from kafkaio.admin import Admin
from kafkaio.spark._errors import one_of_many
from kafkaio.spark._marker_names import TaskName
from kafkaio.spark._marker_state import AppState, Begun, RowsMarker, RowSum
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

#: An offset that no log reaches.
BEYOND: Final = 2**62
_CLAIM: Final = "batch"
#: Stands for the run of an open transaction, which the coordinator does not know.
UNKNOWN_RUN: Final = "?"
_OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """The version of an application that was begun last.

    Attributes:
        version: the version.
        run: the run that has begun it last.
        has_others: whether another run had begun it before.
        is_refused: whether a task of it had other rows than those that are in.
        rows: the rows of the whole version, if it is in.
    """

    version: int
    run: str
    has_others: bool = False
    is_refused: bool = False
    rows: RowSum | None = None

    def metadata(self) -> str:
        found: dict[str, object] = {"version": self.version, "run": self.run}
        found |= {"others": self.has_others, "refused": self.is_refused}
        if self.rows is not None:
            found |= _rows(self.rows)
        return json.dumps(found)


class GroupMarkers:
    """Keeps markers as committed offsets.

    Args:
        client: a started client.
        topic: the topic on whose partition 0 offsets are committed.
    """

    begins_by_writing = False

    def __init__(self, client: Client, topic: str) -> None:
        self._client = client
        self._at = TopicPartition(topic, 0)
        self.topic = topic

    async def prepare(self) -> None:
        """Check that the topic exists.

        Raises:
            UnknownTopicOrPartition: it does not.
        """
        await self._client.partitions_for(self.topic)

    async def begin(self, tx: Transaction, name: TaskName, run: str) -> AppState:
        """Read the markers of the task, and claim the version for the run.

        A run without a name, as `TaskAttempt` has by default, claims nothing.

        Raises:
            KafkaError: a coordinator refused, or did not answer in time.
        """
        del tx
        # Read before the claim is written: afterwards every attempt would find its own.
        state, claim = await self._read(name)
        if not run:
            state.is_begun_elsewhere = False
            return state
        if claim is None or claim.version < name.version:
            await self._claim(name.scope, _Claim(version=name.version, run=run))
        elif claim.version == name.version and claim.run != run and claim.rows is None:
            mine = _Claim(version=name.version, run=run, has_others=True)
            await self._claim(name.scope, mine)
            state.is_begun_elsewhere = True
        return state

    async def again(self, name: TaskName, run: str) -> AppState:
        """Return a state in which another run has begun: only the driver knows more."""
        del name, run
        state = AppState.empty()
        state.is_begun_elsewhere = True
        return state

    async def _read(self, name: TaskName) -> tuple[AppState, _Claim | None]:
        group, claims = name.transactional_id, _claims(name.scope)
        with one_of_many():
            async with Admin(self._client) as admin:
                # Stable offsets (KIP-447): waits until a commit that the coordinator
                # is completing has become visible.
                found = await admin.list_consumer_group_offsets(
                    {group: [self._at], claims: [self._at]}, require_stable=True
                )
        state = AppState.empty()
        marker = marker_in(found[group].get(self._at))
        if marker is not None:
            state.tasks[name.task] = marker
        claim = _claim_in(found[claims].get(self._at))
        if claim is not None:
            _add_claim(state, claim, name.version)
        return state, claim

    async def _claim(self, scope: str, claim: _Claim) -> None:
        with one_of_many():
            async with Admin(self._client) as admin:
                await admin.alter_consumer_group_offsets(
                    _claims(scope),
                    {self._at: OffsetAndMetadata(BEYOND, claim.metadata())},
                )

    async def mark(
        self, tx: Transaction, name: TaskName, run: str, rows: RowSum
    ) -> None:
        """Commit the rows' marker in the transaction.

        Raises:
            KafkaError: what `Transaction.commit_offsets` raises.
        """
        value = {"version": name.version, "run": run, **_rows(rows)}
        marker = OffsetAndMetadata(BEYOND, json.dumps(value))
        await tx.commit_offsets(
            GroupMetadata(name.transactional_id), {self._at: marker}
        )

    async def verify(self, tx: Transaction, name: TaskName, run: str) -> None:
        """Do nothing: no task of this store commits a repetition by itself."""

    async def refuse(self, name: TaskName, run: str) -> None:
        """Note that the version must not be written any further.

        Raises:
            KafkaError: it was not noted.
        """
        claim = _Claim(version=name.version, run=run, is_refused=True)
        await self._claim(name.scope, claim)

    async def look(self, scope: str, version: int = 0) -> AppState:
        """Ask for all tasks that have committed, and all that are open.

        Args:
            scope: of which application.
            version: the version that open transactions are taken to write.

        Raises:
            KafkaError: a broker refused, or did not answer in time.
        """
        pattern = re.compile(re.escape(f"{scope}-") + "([0-9]+)")
        with one_of_many():
            async with Admin(self._client) as admin:
                # Transactions first: one that has ended by then has its offsets.
                opened = await admin.list_transactions(states=_OPEN)
                listed = await admin.list_groups()
                groups = [each for each in listed if pattern.fullmatch(each)]
                claims = _claims(scope)
                # Not the stable ones: transactions that tasks have left open would make
                # this wait until they end, and the driver is about to end them.
                found = await admin.list_consumer_group_offsets(
                    {group: [self._at] for group in [*groups, claims]}
                )
        state = AppState.empty()
        for group in groups:
            marker = marker_in(found[group].get(self._at))
            if marker is not None:
                state.tasks[int(group.rpartition("-")[2])] = marker
        claim = _claim_in(found[claims].get(self._at))
        if claim is not None:
            _add_claim(state, claim, version)
        for each in opened:
            if pattern.fullmatch(each.transactional_id):
                task = int(each.transactional_id.rpartition("-")[2])
                state.open[task] = Begun(version, UNKNOWN_RUN, each.producer_id)
        return state

    async def finish(self, scope: str, version: int, run: str, rows: RowSum) -> None:
        """Note that a whole version is in.

        Raises:
            KafkaError: it was not noted.
        """
        await self._claim(scope, _Claim(version=version, run=run, rows=rows))


def groups_of(scope: str, names: Iterable[str]) -> list[str]:
    """Return which groups are markers of an application, sorted."""
    pattern = re.compile(re.escape(f"{scope}-") + f"([0-9]+|{_CLAIM})")
    return sorted(name for name in names if pattern.fullmatch(name))


def _claims(scope: str) -> str:
    return f"{scope}-{_CLAIM}"


def _add_claim(state: AppState, claim: _Claim, version: int) -> None:
    if claim.rows is not None:
        state.done = RowsMarker(claim.version, claim.run, claim.rows)
    elif claim.version == version:
        state.is_begun_elsewhere = claim.has_others
        state.is_refused = claim.is_refused


def _rows(rows: RowSum) -> dict[str, object]:
    return {"rows": rows.rows, "digest": f"{rows.digest:016x}", "way": rows.way}


def marker_in(committed: OffsetAndMetadata | None) -> RowsMarker | None:
    """Return the marker in a committed offset; None if there is none.

    An offset without a version in its metadata was written by another program: it
    counts as the marker of the version before its offset, with unknown rows, so that
    nothing is doubled.
    """
    if committed is None:
        return None
    found = _parsed(committed.metadata)
    version = found.get("version")
    if not isinstance(version, int):
        if committed.offset >= BEYOND:
            return None
        return RowsMarker(committed.offset - 1, "", _rows_in(found))
    return RowsMarker(version, str(found.get("run", "")), _rows_in(found))


def _claim_in(committed: OffsetAndMetadata | None) -> _Claim | None:
    found = {} if committed is None else _parsed(committed.metadata)
    version = found.get("version")
    if not isinstance(version, int):
        return None
    return _Claim(
        version=version,
        run=str(found.get("run", "")),
        has_others=found.get("others") is True,
        is_refused=found.get("refused") is True,
        rows=_rows_in(found),
    )


def _parsed(metadata: str) -> Mapping[str, object]:
    try:
        found = json.loads(metadata)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _rows_in(found: Mapping[str, object]) -> RowSum | None:
    rows, digest, way = found.get("rows"), found.get("digest"), found.get("way")
    if not (isinstance(rows, int) and isinstance(digest, str) and isinstance(way, int)):
        return None
    try:
        return RowSum(rows, int(digest, 16) % 2**64, way)
    except ValueError:
        return None
