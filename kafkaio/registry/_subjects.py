"""Subjects: the names under which schemas are registered and evolve."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kafkaio._public import public
from kafkaio.errors import ConfigurationError
from kafkaio.serde import SerializationContext

#: Returns the subject for a context and the full name of the record; the name is empty
#: where the schema has none.
SubjectStrategy: TypeAlias = Callable[[SerializationContext, str], str]


@public("kafkaio.registry")
def topic_name(context: SerializationContext, record: str) -> str:
    """Return ``<topic>-value`` or ``<topic>-key``: one schema for each topic.

    Args:
        context: the topic, and whether it is about its keys.
        record: not used.
    """
    del record
    return f"{context.topic}-{context.field}"


@public("kafkaio.registry")
def record_name(context: SerializationContext, record: str) -> str:
    """Return the name of the record: one schema for each type, on all topics.

    Args:
        context: not used.
        record: the full name of the record.

    Raises:
        ConfigurationError: the schema has no name.
    """
    del context
    return _named(record)


@public("kafkaio.registry")
def topic_record_name(context: SerializationContext, record: str) -> str:
    """Return ``<topic>-<name of the record>``: one schema for each type on a topic.

    Args:
        context: the topic.
        record: the full name of the record.

    Raises:
        ConfigurationError: the schema has no name.
    """
    return f"{context.topic}-{_named(record)}"


def _named(record: str) -> str:
    if not record:
        raise ConfigurationError(
            "the schema has no name to make a subject of: give it one (the title of a "
            "JSON schema), or use topic_name"
        )
    return record


#: Strategies whose subject depends on the topic, key or value, and the record alone.
FIXED_STRATEGIES: tuple[SubjectStrategy, ...] = (
    topic_name,
    record_name,
    topic_record_name,
)
