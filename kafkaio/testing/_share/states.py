"""What is kept of share partitions: the state that a next leader continues from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from uuid import UUID

from kafkaio.testing._share.partition import ShareImage

#: The start of a share partition of which nothing was delivered yet.
UNINITIALIZED: Final = -1


class ShareKey(NamedTuple):
    """A share partition: a group, a topic's id, and the partition's number."""

    group: str
    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class KeptState:
    """The state of a share partition.

    Attributes:
        image: its records.
        epoch: grows when an administrator changes the start.
        leader_epoch: the leader epoch of the last change.
    """

    image: ShareImage
    epoch: int = 0
    leader_epoch: int = 0


class ShareStates:
    """The states of all share partitions."""

    def __init__(self) -> None:
        self._states: dict[ShareKey, KeptState] = {}

    def get(self, key: ShareKey) -> KeptState | None:
        """Return the state of a share partition; None if the group does not have it."""
        return self._states.get(key)

    def of_group(self, group: str) -> dict[UUID, dict[int, KeptState]]:
        """Return the states of a group, by topic id and partition."""
        found: dict[UUID, dict[int, KeptState]] = {}
        for key, state in sorted(self._states.items()):
            if key.group == group:
                found.setdefault(key.topic_id, {})[key.partition] = state
        return found

    def initialize(self, key: ShareKey) -> bool:
        """Add a share partition; return False if it is there already."""
        if key in self._states:
            return False
        self._put(key, KeptState(ShareImage(UNINITIALIZED)))
        return True

    def write(
        self, key: ShareKey, image: ShareImage, epoch: int, leader_epoch: int
    ) -> bool:
        """Keep a change; return False if the leader's state is not the current one."""
        state = self._states.get(key)
        if state is None or state.epoch != epoch:
            return False
        self._put(key, replace(state, image=image, leader_epoch=leader_epoch))
        return True

    def reset(self, key: ShareKey, start: int) -> None:
        """Change the start, for the leader that reads the state next."""
        before = self._states.get(key) or KeptState(ShareImage(start))
        self._put(key, KeptState(ShareImage(start), before.epoch + 1))

    def remove(self, key: ShareKey) -> None:
        """Forget a share partition."""
        self._states.pop(key, None)

    def _put(self, key: ShareKey, state: KeptState) -> None:
        self._states[key] = state
