"""The task that commits finished records, and shows the group signs of life."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio

from kafkaio._runtime.clock import now
from kafkaio.errors import (
    BrokerError,
    Fenced,
    GroupError,
    KafkaError,
    OffsetStoreError,
)

if TYPE_CHECKING:
    from kafkaio.consumer.core import Core

__all__ = ["AutoCommitter"]

#: Seconds between two looks at whether the user reads on.
_LOOK_EVERY: Final = 1.0
#: Looks within one poll interval, at least.
_LOOKS: Final = 10


class AutoCommitter:
    """Looks after the consumer while the user works.

    Args:
        core: the consumer's inner works.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._progress = 0
        self._is_awaited = False
        config = core.config
        self._commit_every = config.auto_commit_interval_ms / 1000
        self._tick = min(
            _LOOK_EVERY, self._commit_every, config.max_poll_interval_ms / 1000 / _LOOKS
        )
        # A commit that takes longer would be overtaken by the next one.
        self._timeout = max(1.0, self._commit_every)

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Somebody waits for the start, and so is alive, within the block."""
        self._is_awaited = True
        try:
            yield
        finally:
            self._is_awaited = False

    async def run(self) -> None:
        """Look after the consumer until cancelled."""
        core = self._core
        next_commit = now() + self._commit_every
        while True:
            due = now() + self._tick
            await anyio.sleep(self._tick)
            core.cluster.report_late_timer(now() - due)
            if core.member is not None and self._shows_life():
                core.member.polled(now())
            if now() >= next_commit or self._is_loss_near():
                await self.commit_quietly()
                next_commit = now() + self._commit_every

    def _is_loss_near(self) -> bool:
        # What is finished of partitions that are held past their deadline is ours to
        # commit until then, and nobody's afterwards.
        group = self._core.member
        due = None if group is None else group.revoke_due
        return due is not None and due - now() < 2 * self._tick

    def _shows_life(self) -> bool:
        # Whoever takes records, or waits for one, is alive: the clock need not be read
        # with every record for that.
        reader = self._core.reader
        if self._is_awaited:
            return True
        if reader.divider is not None:
            return reader.divider.shows_life()
        before, self._progress = self._progress, reader.progress
        return self._core.reading.is_on or before != self._progress

    async def commit_quietly(self) -> None:
        """Commit what is finished; what fails is tried again with the next commit.

        Only a refusal for good, such as a missing permission, and a store
        that fails reach the user.
        """
        core = self._core
        if not core.auto_commits:
            return
        try:
            await core.commit_finished(self._timeout)
        except KafkaError as error:
            core.cluster.observer.commit_failed(core.config.group_id or "", error)
            for_good = (
                isinstance(error, BrokerError | OffsetStoreError)
                and not error.retriable
            )
            # What the group says about the member is the coordinator's business.
            if for_good and not isinstance(error, Fenced | GroupError):
                core.reader.fail(error)
            else:
                core.cluster.observer.retrying(
                    "auto-commit", 1, self._commit_every, error
                )
