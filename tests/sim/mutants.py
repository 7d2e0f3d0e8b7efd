"""Bugs of transactions that are planted on purpose: the simulation must find each.

A mutant replaces one attribute, or one piece of the source of one function.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Final

from kafkaio import _exactly_once
from kafkaio._consumer.transactions import JoinedTransaction
from kafkaio._machines.transaction import TransactionMachine
from kafkaio._machines.transaction_holds import TransactionHolds
from kafkaio._producer.transaction import Transaction
from kafkaio._producer.transaction_manager import TransactionManager
from kafkaio._producer.turns import RunTurns
from kafkaio._producer.txn_coordinator import TxnCoordinator
from kafkaio._producer.txn_offsets import TxnOffsets
from tests.sim.scenario import exactly_once
from tests.sim.world import run

__all__ = ["MUTANTS", "Mutant", "find"]

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug.

    Attributes:
        name: what is wrong.
        owner: the class, or the module, that has the function.
        function: the function's name.
        old: a piece of its source, found once.
        new: what stands there instead.
    """

    name: str
    owner: object
    function: str
    old: str
    new: str

    @contextmanager
    def planted(self) -> Generator[None]:
        """Plant the bug for the duration of the block.

        Raises:
            ValueError: the function has changed, and does not have the piece once.
        """
        right = inspect.getattr_static(self.owner, self.function)
        wrapper: Callable[[Callable[..., object]], object] = _same
        function = right
        if isinstance(right, property):
            wrapper, function = property, right.fget
        elif isinstance(right, staticmethod):
            wrapper, function = staticmethod, right.__func__
        source = textwrap.dedent(inspect.getsource(function))
        source = source[source.index("def ") :]
        if inspect.iscoroutinefunction(function):
            source = f"async {source}"
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.old!r} is not there once")
        scope = dict(vars(sys.modules[function.__module__]))
        code = compile(source.replace(self.old, self.new), self.name, "exec")
        exec("from __future__ import annotations", scope)
        exec(code, scope)
        setattr(self.owner, self.function, wrapper(scope[function.__name__]))
        try:
            yield
        finally:
            setattr(self.owner, self.function, right)


def _same(function: Callable[..., object]) -> object:
    return function


_machine: Final = partial(Mutant, owner=TransactionMachine)
_manager: Final = partial(Mutant, owner=TransactionManager)
_coordinator: Final = partial(Mutant, owner=TxnCoordinator)
_offsets: Final = partial(Mutant, owner=TxnOffsets)
_joined: Final = partial(Mutant, owner=JoinedTransaction)

#: The bugs.
MUTANTS: Final = (
    _machine(
        name="a bump is left out",
        function="_ended",
        old="if self._has_harm and not is_bumped:",
        new="if False:",
    ),
    _machine(
        name="the logs are not told the next epoch",
        function="initialised",
        old="is_sealed = self._has_late and protocol is Protocol.TV1",
        new="is_sealed = False",
    ),
    _machine(
        name="the epoch of the answer to EndTxn is ignored",
        function="_ended",
        old="effects = self._identified(identity)",
        new="effects = self._identified(end.identity)",
    ),
    _coordinator(
        name="an EndTxn without an answer is repeated as an abort",
        function="_repeat",
        old="exchange.message,",
        new="(setattr(exchange.message, 'committed', False)"
        " if isinstance(request, End) and exchange.unanswered.is_pending else None)"
        " or exchange.message,",
    ),
    _machine(
        name="a transaction that can only be aborted is committed",
        function="_end",
        old="is_commit = self.state is TxnState.COMMITTING",
        new="is_commit = True",
    ),
    _machine(
        name="a transaction that was started ends without EndTxn",
        function="_end",
        old="if not self.is_started:",
        new="if not self._groups_added:",
    ),
    _machine(
        name="partitions are admitted before they are added",
        function="begin",
        old="if self._adds:\n        return (_ADMIT_NOWHERE,)",
        new="if self._adds:\n        return (_ADMIT_ALL,)",
    ),
    _machine(
        name="a refused addition leaves the transaction committable",
        function="not_added",
        old="return (*started, *self.mark_abort_only(now, error))",
        new="return started",
    ),
    _machine(
        name="a group counts as added before the answer",
        function="want_offsets",
        old="if self.protocol is Protocol.TV2:",
        new="if True:",
    ),
    _machine(
        name="a fenced producer goes on",
        function="end_answered",
        old="return self.fence(error)",
        new="return self._ended(now, end, identity)",
    ),
    _machine(
        name="a failed record leaves the transaction committable",
        function="mark_abort_only",
        old="self._go(TxnEvent.ABORT_ONLY)",
        new="return ()",
    ),
    _manager(
        name="EndTxn is sent before all is acknowledged",
        function="end_if_drained",
        old="and self._accumulator.backlog.is_empty",
        new="",
    ),
    _manager(
        name="EndTxn is sent before the offsets are committed",
        function="end_if_drained",
        old="and not run.commits",
        new="",
    ),
    _coordinator(
        name="an EndTxn without an answer is taken for its success",
        function="replied",
        old="if isinstance(answer, Exception):",
        new="if isinstance(answer, Exception) and isinstance(exchange.request, End):\n"
        "            effects = self._machine.end_answered(now(), None, None, 0)\n"
        "            self._owner.perform(effects)\n"
        "            return\n"
        "        if isinstance(answer, Exception):",
    ),
    _offsets(
        name="offsets are committed without the member",
        function="_request",
        old="generation_id_or_member_epoch=place.generation,\n"
        "        member_id=place.member_id,",
        new="",
    ),
    _offsets(
        name="a refused commit of offsets is ignored",
        function="_commit",
        old="if not found:",
        new="if True:",
    ),
    _manager(
        name="the consumer is not rewound",
        function="_start_rewind",
        old="await consumer.rewind(is_unknown=is_unknown)",
        new="consumer.end()",
    ),
    _manager(
        name="the next transaction begins before the rewind",
        function="_ended",
        old="self._start_rewind(run, consumer)",
        new="self._start_rewind(run, consumer); self._turns.end(run)",
    ),
    Mutant(
        name="an outcome is never told",
        owner=RunTurns,
        function="end",
        old="run.is_done = True",
        new="run.is_done = run.outcome is not TransactionOutcome.ABORTED",
    ),
    _manager(
        name="an abort is told as a commit",
        function="_ended",
        old="run.outcome = outcome",
        new="run.outcome = outcome = TransactionOutcome.COMMITTED",
    ),
    _joined(
        name="the first record of a partition does not hold it",
        function="_hold",
        old="self._member.hold((claim,))",
        new="pass",
    ),
    _joined(
        name="a partition is let go when its offsets are committed",
        function="handed_out",
        old="return TransactionOffsets(commit, self._port, self._topic_ids)",
        new="if self._member is not None:\n"
        "        self._member.unhold(self._holds.claims)\n"
        "        self._member.release(self._pending() & self._holds.partitions)\n"
        "    return TransactionOffsets(commit, self._port, self._topic_ids)",
    ),
    # Not the check in JoinedTransaction.handed_out: the transaction had failed when the
    # loss was noticed, so that a commit is refused there before any request.
    Mutant(
        "a lost partition is not noticed",
        TransactionHolds,
        "update",
        "if numbers.get(claim.partition) != claim.number",
        "if False",
    ),
    Mutant(
        "the loop works on what its transaction does not commit",
        _exactly_once,
        "_covered",
        "return kept",
        "return taken",
    ),
    Mutant(
        "a transaction commits without its offsets",
        Transaction,
        "commit",
        "await manager.commit_offsets(run, offsets)",
        "pass",
    ),
)


def find(mutant: Mutant, seed: int, hours: float) -> tuple[str, float, int]:
    """Simulate with a bug until a law is broken.

    Args:
        mutant: the bug.
        seed: the first seed.
        hours: the most simulated hours.

    Returns:
        The law, "" for none; the simulated seconds it took; and the last seed.
    """
    spent, tried = 0.0, seed
    with mutant.planted():
        for number in count():
            # Both versions of transactions in turn; see `exactly_once`.
            tried = seed + number // 6 * 6 + number // 2 % 3 + 3 * (number % 2)
            outcome = run(exactly_once(tried))
            spent += outcome.seconds
            if outcome.violations:
                return outcome.violations[0].law, spent, tried
            if spent > hours * _HOUR:
                break
    return "", spent, tried
