"""Topics on the real brokers, for every test below this directory.

With ``KAFKAIO_KAFKA=embedded`` the embedded broker takes their place, and all tests run
on it, unchanged, but those that are marked as ``not_embedded``, with the reason.

What runs on an embedded broker of its own asks no Kafka of any version, so it runs
beside the newest one only. ``every_change.py`` says what else runs when.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import pytest_asyncio

from kafkaio.testing import Broker
from kafkaio.testing.kafka._releases import DEFAULT_VERSION
from kafkaio.testing.pytest_plugin import TopicFactory, topic_factory
from tests.integration.committed import set_level
from tests.integration.differential import brokers
from tests.integration.every_change import ON_THE_NEWEST, ON_THE_OLDEST
from tests.support.apicurio import Apicurio
from tests.support.kafka import Kafka


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what is on an embedded broker of its own once, whatever the sessions.

    And mark what runs with every change on the newest and on the oldest Kafka.
    """
    once = (
        pytest.mark.kafka_versions(DEFAULT_VERSION),
        pytest.mark.not_embedded("runs on an embedded broker of its own in any case"),
    )
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if _has_its_own_broker(item):
            for mark in once:
                item.add_marker(mark, append=False)
        else:
            _mark_for_every_change(item)


def _mark_for_every_change(item: pytest.Function) -> None:
    tables = {"newest_kafka": ON_THE_NEWEST, "oldest_kafka": ON_THE_OLDEST}
    for mark, table in tables.items():
        if {item.originalname, item.name} & {*table.get(item.path.name, ())}:
            item.add_marker(mark)


def _has_its_own_broker(item: pytest.Function) -> bool:
    call = getattr(item, "callspec", None)
    return call is not None and call.params.get("_kafka_kind") == "embedded"


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


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    """Run a real Kafka that the module's tests have to themselves, to compare with."""
    with brokers.real() as kafka:
        yield kafka


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedded(kafka: Kafka) -> AsyncIterator[Broker]:
    """Run the embedded broker that is compared with `kafka`."""
    async with brokers.beside(kafka.bootstrap_servers) as broker:
        yield broker


@pytest.fixture(scope="session")
def _leveled(kafka_version: str) -> Iterator[tuple[Kafka, Callable[[int], None]]]:
    """A Kafka whose level of ``transaction.version`` tests choose."""
    levels: list[int] = []

    def choose(level: int) -> None:
        if levels[-1:] == [level]:
            return
        # In a thread: the event loop of this one is the test's.
        change = set_level(kafka.bootstrap_servers, level)
        with ThreadPoolExecutor(1) as threads:
            threads.submit(asyncio.run, change).result()
        levels.append(level)

    with Kafka(brokers=1, version=kafka_version) as kafka:
        yield kafka, choose


@pytest.fixture(
    params=[
        pytest.param(None, id="stock"),
        pytest.param(1, id="level-1", marks=pytest.mark.kafka_versions("newest")),
        pytest.param(0, id="level-0", marks=pytest.mark.kafka_versions("newest")),
    ]
)
def transactional(request: pytest.FixtureRequest) -> Kafka:
    """Kafkas with their own level of ``transaction.version``, and with lower ones.

    The highest level means TV2: 4.x has that of its own accord. All else means TV1.
    """
    kafka: Kafka
    if request.param is None:
        kafka = request.getfixturevalue("real_kafka")
        return kafka
    kafka, choose = request.getfixturevalue("_leveled")
    choose(request.param)
    return kafka


@pytest.fixture(scope="session")
def unverified(kafka_version: str) -> Iterator[Kafka]:
    """A Kafka that takes writes to partitions that are in no transaction.

    As all did before 3.6. Transactions whose time has run out are aborted soon.
    """
    settings = {
        "transaction.partition.verification.enable": "false",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    }
    with Kafka(brokers=1, version=kafka_version, config=settings) as kafka:
        yield kafka


@pytest.fixture
def switchable(_leveled: tuple[Kafka, Callable[[int], None]]) -> Iterator[Kafka]:
    """A Kafka at level 1 of ``transaction.version``, for a test that changes it."""
    kafka, choose = _leveled
    choose(1)
    yield kafka
    choose(2)
    choose(1)


@pytest.fixture
def tx_topic(transactional: Kafka, request: pytest.FixtureRequest) -> TopicFactory:
    """Make topics with new names on `transactional`."""
    return topic_factory(transactional, request)


@pytest.fixture(scope="session")
def _apicurio_process() -> Iterator[Apicurio]:
    with Apicurio() as apicurio:
        yield apicurio


@pytest.fixture(scope="session")
def apicurio(_apicurio_process: Apicurio, real_kafka: Kafka) -> Apicurio:
    """A real schema registry, for the session; it starts while Kafka does."""
    del real_kafka
    _apicurio_process.wait()
    return _apicurio_process
