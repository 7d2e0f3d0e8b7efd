"""How to work on many records at a time: the half of `Consumer` about that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaio._machines.retries import Retry
from kafkaio._machines.schedule import Ordering, Schedule
from kafkaio.consumer.parallel.lanes import LaneIterator, Lanes
from kafkaio.consumer.parallel.run import Handler, OnDead, Runner
from kafkaio.errors import UsageError

if TYPE_CHECKING:
    from kafkaio.consumer.core import Core

__all__ = ["InParallel"]


class InParallel:
    """What `Consumer` offers to work on many records at a time."""

    _core: Core
    _lanes: Lanes | None = None

    def partitions(self) -> LaneIterator:
        """Iterate over lanes: one for each assigned partition, as they come.

        Each lane is for a task of its own, and goes at its own pace: a slow one holds
        no other back. It ends when its partition is given back, which waits for the
        lane's body, or was lost; see `Lane`. A partition that comes again has a new
        lane. The iteration ends when the consumer closes; `close` asks every lane to
        end and waits for the bodies, for 80 % of its timeout.

        From the first lane on, records are read from lanes alone, until the consumer
        closes; lanes run on when this iteration was left, and another one goes on
        with those that were not given out.

        Where nothing is subscribed to or assigned, the iteration raises UsageError; if
        that ends while lanes run, when the last of them has ended.

        With ``enable_auto_commit``, what lanes have finished is committed as usual;
        without it, `Lane.commit` does, or `commit`, which without arguments covers
        what all lanes have handed out.
        """
        if self._lanes is None:
            config = self._core.config
            self._lanes = Lanes(
                self._core,
                max_records=config.max_poll_records,
                timeout=config.default_api_timeout_ms / 1000,
            )
        iterator = LaneIterator(self._lanes)
        iterator.consumer = self
        return iterator

    async def run(
        self,
        handler: Handler,
        *,
        concurrency: int = 100,
        ordering: Ordering = "key",
        retry: Retry | None = None,
        dead_letter: OnDead | None = None,
    ) -> None:
        """Call a coroutine function with each record, many at a time.

        A record is finished when its handler returns. From this call on, finished
        records are committed by themselves and in order, whatever
        ``enable_auto_commit`` says: a partition is committed up to its first record
        that is not finished, every ``auto_commit_interval_ms``, when it is given back,
        and by `close`. ``commit()`` and ``commit(partitions)`` commit the same at once:
        nothing whose handler is still at work.

        When the group asks for a partition back, all up to its last record that was
        begun is finished first, so that the next owner repeats none of them; no
        further one is begun, and the other partitions run on at full speed. Handlers
        of a partition that was lost are cancelled. A member counts as alive
        (``max_poll_interval_ms``) as long as handlers end.

        `close` does the same with all partitions, for 80 % of its timeout, then this
        call returns; that is the clean way to stop. Cancelling this call cancels the
        handlers. A record whose handler was cancelled is not finished. What is not
        finished at the end is read again, by this consumer or the next.

        Args:
            handler: works on one record.
            concurrency: most handlers at a time. Twice as many records, and no fewer
                than ``max_poll_records``, are in hand at most.
            ordering: what never runs at the same time, but in the order of offsets:
                records of one ``key`` in one partition (those without a key are
                free), records of one ``partition``, or ``none``. Keys are compared
                as bytes, before they are deserialized.
            retry: which failed records are tried again, and when; None for none.
            dead_letter: takes a record, not deserialized, and the exception, where
                the last attempt failed; a `DeadLetter`, or any coroutine function.
                The record is finished when it returns.

        Raises:
            Exception: what a handler raised for the last time without a
                ``dead_letter``, or what that raised. Nothing from that record on is
                committed of its partition.
            UsageError: an argument is impossible, another task reads, or nothing is
                subscribed to or assigned (after `unsubscribe`, when what was begun
                is finished). The handler is
                no coroutine function (a TypeError, too): told by the first record,
                which is not finished, whatever ``retry`` and ``dead_letter`` say.
            ClosedError: the consumer is not running.
            KafkaError: as iterating does.
        """
        if concurrency < 1:
            raise UsageError(f"concurrency={concurrency} leaves nothing to do")
        limit = max(2 * concurrency, self._core.config.max_poll_records)
        self._core.check()
        self._core.auto_commits = self._core.committer is not None
        runner = Runner(
            self._core,
            handler,
            Schedule(ordering, limit),
            concurrency=concurrency,
            retry=retry,
            on_dead=dead_letter,
        )
        await runner.run()
