"""Topics on the real brokers, for every test below this directory.

With ``KAFKAIO_KAFKA=embedded`` the embedded broker takes their place, and all tests run
on it, unchanged, but those that are named here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka.source import is_embedded
from kafkaio.testing.pytest_plugin import TopicFactory, topic_factory

_JAVA: Final = "needs Java"
_REAL: Final = "is about the nodes of a real Kafka, and starts them"
_EMBEDDED: Final = (
    "is about the embedded broker in any case, whatever the others are on"
)
_TRANSACTIONS: Final = "the embedded broker has no transactions yet"
_MEMORY: Final = "the embedded broker keeps its records in the memory that is measured"
_MIGRATION: Final = "the embedded broker does not let groups change their protocol yet"
#: Why a module, or a test, cannot run on the embedded broker.
NEEDS_REAL: Final = {
    "test_console_tools": _JAVA,
    "test_protocol_java": _JAVA,
    "test_records_java": _JAVA,
    "test_group_assignors": _JAVA,
    "test_group::test_three_members_one_of_them_java": _JAVA,
    "test_group::test_the_tool_shows_our_member_and_its_offsets": _JAVA,
    "test_consumer_protocol::test_beside_a_java_member": _JAVA,
    "test_consumer_protocol::test_we_join_a_classic_group_of_java": _JAVA,
    "test_consumer_protocol::test_a_group_migrates_member_by_member": _MIGRATION,
    "test_log_files": _JAVA,
    "test_embedded_java": _JAVA,
    "test_differential": _REAL,
    "test_kafka_fixture": _REAL,
    "test_rebootstrap": _REAL,
    "test_quickstart::test_three_brokers_of_which_one_is_killed_and_restarted": _REAL,
    "test_tls": _REAL,
    "test_truncation": _REAL,
    "test_embedded_clients": _EMBEDDED,
    "test_embedded_groups": _EMBEDDED,
    "test_deferred_revoke": _EMBEDDED,
    "test_quickstart::test_the_embedded_broker": _EMBEDDED,
    "test_client::test_every_destination": _TRANSACTIONS,
    "test_consumer::test_read_committed": _TRANSACTIONS,
    "test_pains::test_memory_does_not_grow_with_what_was_done": _MEMORY,
}


def _needs_real(item: pytest.Item) -> bool:
    name = item.name.partition("[")[0]
    return not NEEDS_REAL.keys().isdisjoint(
        {
            item.path.stem,
            f"{item.path.stem}::{name}",
        }
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what needs a real Kafka where there is none."""
    if not is_embedded():
        return
    here = Path(__file__).parent
    left_out = [i for i in items if i.path.parent == here and _needs_real(i)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def topic(real_kafka: Kafka, request: pytest.FixtureRequest) -> TopicFactory:
    """Make topics with new names on `real_kafka`."""
    return topic_factory(real_kafka, request)


@pytest.fixture
def cluster_topic(
    real_kafka_cluster: Kafka, request: pytest.FixtureRequest
) -> TopicFactory:
    """Make topics with new names on `real_kafka_cluster`."""
    return topic_factory(real_kafka_cluster, request)
