"""Create a topic and wait until it can be used, and delete topics."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kafkaio.testing.kafka._wire import (
    NOT_CONTROLLER,
    TOPIC_ALREADY_EXISTS,
    Address,
    TopicNotCreated,
    WireMetadata,
    create_topic,
    create_topics_body,
    delete_topics,
    metadata,
)

_POLL_SECONDS: Final = 0.02
_CALL_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


def is_usable(view: WireMetadata, topic: TopicSpec) -> bool:
    """Return whether a broker knows a leader for each partition."""
    partitions = view.topics.get(topic.name, ())
    return len(partitions) == topic.partitions and all(
        partition.leader in view.brokers for partition in partitions
    )


def _views(addresses: list[Address], names: tuple[str, ...]) -> list[WireMetadata]:
    """Return the metadata of each broker that answers."""
    views = []
    for address in addresses:
        try:
            views.append(metadata(address, names))
        except OSError:
            continue
    return views


def _send(topic: TopicSpec, views: list[WireMetadata]) -> bool:
    """Send the request to the controller; return False if none could be reached."""
    body = create_topics_body(
        topic.name,
        topic.partitions,
        topic.replication_factor,
        topic.config,
        _CALL_SECONDS,
    )
    for view in views:
        # Only the controller creates topics; a broker that has just lost that role
        # answers NOT_CONTROLLER.
        address = view.brokers.get(view.controller)
        if address is None:
            continue
        try:
            create_topic(address, body, _CALL_SECONDS)
        except OSError:
            continue
        except TopicNotCreated as error:
            if error.code == NOT_CONTROLLER:
                continue
            raise
        return True
    return False


def make_topic(
    addresses: Callable[[], list[Address]], topic: TopicSpec, timeout: float
) -> None:
    """Create a topic; return when all brokers that answer know its leaders.

    Args:
        addresses: The brokers to ask, at each attempt.
        topic: The topic.
        timeout: Seconds for the whole.

    Raises:
        TopicNotCreated: The controller refused.
        TimeoutError: Time ran out.
    """
    end = time.monotonic() + timeout
    sent = attempted = False
    while True:
        # Not before it was sent: a request for an unknown topic would create it.
        views = _views(addresses(), (topic.name,) if sent else ())
        if sent and views and all(is_usable(view, topic) for view in views):
            return
        if not sent:
            try:
                sent = _send(topic, views)
            except TopicNotCreated as error:
                # The first request may have succeeded although its answer was lost.
                if error.code != TOPIC_ALREADY_EXISTS or not attempted:
                    raise
                sent = True
            attempted = True
        if time.monotonic() > end:
            raise TimeoutError(f"topic {topic.name} has no leaders after {timeout} s")
        time.sleep(_POLL_SECONDS)


def remove_topics(
    addresses: Callable[[], list[Address]], names: Collection[str], timeout: float
) -> dict[str, int]:
    """Have the controller delete topics; unknown topics are ignored.

    Args:
        addresses: The brokers to ask, at each attempt.
        names: Which ones.
        timeout: Seconds for the whole.

    Returns:
        The error code of each that could not be deleted, -1 if no broker answered.
    """
    end = time.monotonic() + timeout
    left = dict.fromkeys(names, -1)
    while left and time.monotonic() < end:
        for view in _views(addresses(), ()):
            if (address := view.brokers.get(view.controller)) is None:
                continue
            try:
                left = delete_topics(address, left, _CALL_SECONDS)
            except OSError:
                continue
            if NOT_CONTROLLER not in left.values():
                return left
        time.sleep(_POLL_SECONDS)
    return left
