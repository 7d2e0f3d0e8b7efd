"""pytest fixtures: a Kafka for each test, embedded in its event loop or a real one.

pytest loads this module wherever kafkaio is installed. The rest of kafkaio is imported
only when a test requests a fixture::

    async def test_orders(kafka_producer, kafka_consumer, kafka_topic):
        await kafka_producer.send(kafka_topic, b"one")
        assert (await anext(kafka_consumer)).value == b"one"

``@pytest.mark.kafka`` chooses the Kafka: ``"embedded"`` (the default), ``"real"``, or
both; with both, the test runs once on each. The embedded broker, the producer and the
consumer live on the event loop of the test, which pytest-asyncio (in either mode) or
anyio's plugin runs. So does the schema registry of ``kafka_registry``, which each test
has for itself.

A real cluster lives as long as the session and is not bound to an event loop. Its
Kafka version is chosen by ``--kafka-version`` or ``$KAFKAIO_KAFKA_VERSION``. If it
cannot start, every test that requests it fails; none is skipped. On a cluster that the
fixtures did not start (``$KAFKAIO_BOOTSTRAP``), the topics that they created are
deleted at the end of the run, whether the tests passed or not.
"""

from __future__ import annotations

import os
import re
import uuid
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import pytest

# Imported where they are used: imports cost time, and a real Kafka needs the extra
# `kafka`.
if TYPE_CHECKING:
    from kafkaio._consumer import Consumer
    from kafkaio._producer import Producer
    from kafkaio.testing._embedded import Broker
    from kafkaio.testing._schema_registry import SchemaRegistry
    from kafkaio.testing.kafka import Kafka

__all__ = ["TopicFactory"]

VERSION_VARIABLE: Final = "KAFKAIO_KAFKA_VERSION"
_CLUSTER_BROKERS: Final = 3
_LONGEST_STEM: Final = 80
_EMBEDDED: Final = "embedded"
_REAL: Final = "real"
_MARKERS: Final = (
    "kafka(*kinds, partitions=1, nodes=1, **settings): the Kafka of the test:"
    ' "embedded" (the default), "real", or both; the settings are arguments of'
    " kafkaio.testing.Broker",
    "kafka_registry(**settings): the settings are arguments of"
    " kafkaio.testing.SchemaRegistry",
    "kafka_versions(*versions): run on these versions of a real Kafka only, such as"
    ' "3.9", "4.0+" for all from 4.0 on, or "newest"',
    "not_embedded(reason): deselect the test when the embedded broker replaces the"
    " real Kafka (KAFKAIO_KAFKA=embedded)",
)


class TopicFactory(Protocol):
    """Creates a topic with a new, unique name, and returns the name."""

    def __call__(
        self,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic; return its name when it has leaders.

        Args:
            partitions: number of partitions.
            replication_factor: replicas of each partition; None for the default of the
                cluster.
            config: the topic's configs that differ from the defaults.
        """


# ---- hooks ---------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--kafka-version``."""
    parser.addoption(
        "--kafka-version",
        help="Kafka version of the real brokers, such as 4.4 or 3.9",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and the fixtures on which the public ones are built."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    if not config.getoption("showfixtures", default=False):
        # `pytest --fixtures` runs no test, and shows users what they can request.
        config.pluginmanager.register(_private_fixtures(config), "kafkaio-fixtures")


def _chosen(config: pytest.Config) -> str:
    from kafkaio.testing.kafka._releases import DEFAULT_VERSION, find_release

    option = config.getoption("--kafka-version", default=None)
    wanted = option or os.environ.get(VERSION_VARIABLE) or DEFAULT_VERSION
    return find_release(str(wanted)).short


def _is_embedded() -> bool:
    from kafkaio.testing.kafka._source import is_embedded

    return is_embedded()


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Deselect the tests that are not for this run's Kafka."""

    def marked(name: str) -> dict[pytest.Item, tuple[str, ...]]:
        markers = [(item, item.get_closest_marker(name)) for item in items]
        return {item: marker.args for item, marker in markers if marker is not None}

    deselected: set[pytest.Item] = set()
    if versions := marked("kafka_versions"):
        from kafkaio.testing.kafka._releases import is_among

        chosen = _chosen(config)
        deselected.update(
            item for item, wanted in versions.items() if not is_among(chosen, wanted)
        )
    if (reasons := marked("not_embedded")) and _is_embedded():
        deselected.update(reasons)
    if deselected:
        config.hook.pytest_deselected(items=[i for i in items if i in deselected])
        items[:] = [item for item in items if item not in deselected]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on each Kafka that its marker names."""
    marker = metafunc.definition.get_closest_marker("kafka")
    if marker is None or "_kafka_kind" not in metafunc.fixturenames:
        return
    if not set(marker.args) <= {_EMBEDDED, _REAL}:
        pytest.fail(f"kafka{marker.args}: must be {_EMBEDDED!r}, {_REAL!r} or both")
    kinds = marker.args
    if len(kinds) > 1 and _is_embedded():
        kinds = (_REAL,)  # the embedded broker takes its place: once is enough
    if kinds:
        metafunc.parametrize("_kafka_kind", kinds, indirect=True)


# ---- a Kafka for each test -----------------------------------------------------------


def _settings(request: pytest.FixtureRequest) -> dict[str, object]:
    """The settings of a test's marker, without the number of partitions."""
    marker = request.node.get_closest_marker("kafka")
    settings = dict(marker.kwargs) if marker else {}
    settings.pop("partitions", None)
    return settings


def _kind(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", _EMBEDDED))


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, _kafka_kind: str) -> Broker | Kafka:
    """The Kafka of this test: a `Broker` of its own, or the session's real Kafka.

    Both have ``bootstrap_servers``. If the marker asks for several ``nodes`` of a real
    Kafka, at most three, all of them are up again after the test.
    """
    if _kafka_kind == _EMBEDDED:
        broker: Broker = _on_loop(request, "broker")
        return broker
    settings = _settings(request)
    nodes = settings.pop("nodes", 1)
    if settings:
        pytest.fail(f"a real Kafka has no setting {', '.join(settings)}", pytrace=False)
    name = "real_kafka" if nodes == 1 else "real_kafka_cluster"
    kafka: Kafka = request.getfixturevalue(name)
    return kafka


@pytest.fixture
def kafka_topics(
    kafka_broker: Broker | Kafka, request: pytest.FixtureRequest
) -> TopicFactory:
    """Creates topics with new, unique names.

    ::

        name = kafka_topics(partitions=3)
    """
    return topic_factory(kafka_broker, request)


@pytest.fixture
def kafka_topic(kafka_topics: TopicFactory, request: pytest.FixtureRequest) -> str:
    """Name of a new topic, with as many partitions as the marker says (default 1)."""
    marker = request.node.get_closest_marker("kafka")
    return kafka_topics(marker.kwargs.get("partitions", 1) if marker else 1)


@pytest.fixture
def kafka_producer(
    kafka_broker: Broker | Kafka, request: pytest.FixtureRequest
) -> Producer:
    """A started producer on the Kafka of this test; it is closed after the test."""
    del kafka_broker
    producer: Producer = _on_loop(request, "producer")
    return producer


@pytest.fixture
def kafka_consumer(kafka_topic: str, request: pytest.FixtureRequest) -> Consumer:
    """A started consumer of `kafka_topic` from its beginning, without a group.

    It is closed after the test.
    """
    del kafka_topic
    consumer: Consumer = _on_loop(request, "consumer")
    return consumer


@pytest.fixture
def kafka_registry(request: pytest.FixtureRequest) -> SchemaRegistry:
    """A schema registry of this test; ``url`` is its address.

    ``@pytest.mark.kafka_registry(compatibility="FULL")`` gives it settings.
    """
    registry: SchemaRegistry = _on_loop(request, "registry")
    return registry


# ---- fixtures on the event loop of a test --------------------------------------------

_Opened: TypeAlias = (
    "AbstractAsyncContextManager[Broker | Producer | Consumer | SchemaRegistry]"
)
_Open: TypeAlias = Callable[[pytest.FixtureRequest], _Opened]
#: Makes a fixture of an asynchronous generator function.
_Decorate: TypeAlias = Callable[..., object]
_LOOP_SCOPES: Final = ("function", "class", "module", "package", "session")


def _open_broker(request: pytest.FixtureRequest) -> _Opened:
    from kafkaio.testing._embedded import Broker

    return Broker(**_settings(request))  # type: ignore[arg-type]  # as the marker says


def _open_producer(request: pytest.FixtureRequest) -> _Opened:
    from kafkaio._producer import Producer

    return Producer(request.getfixturevalue("kafka_broker").bootstrap_servers)


def _open_consumer(request: pytest.FixtureRequest) -> _Opened:
    from kafkaio._consumer import Consumer

    return Consumer(
        request.getfixturevalue("kafka_broker").bootstrap_servers,
        topics=request.getfixturevalue("kafka_topic"),
        auto_offset_reset="earliest",
    )


def _open_registry(request: pytest.FixtureRequest) -> _Opened:
    from kafkaio.testing._schema_registry import SchemaRegistry

    marker = request.node.get_closest_marker("kafka_registry")
    return SchemaRegistry(**(marker.kwargs if marker else {}))


_OPENED: Final[Mapping[str, _Open]] = {
    "broker": _open_broker,
    "registry": _open_registry,
    "producer": _open_producer,
    "consumer": _open_consumer,
}


def _fixtures(runner: str, decorate: _Decorate, **options: str) -> dict[str, object]:
    """Make a fixture of each entry of ``_OPENED`` with the decorator of a plugin."""

    def fixture(name: str, open_: _Open) -> object:
        async def opened(request: pytest.FixtureRequest) -> AsyncGenerator[object]:
            async with open_(request) as value:
                yield value

        return decorate(opened, name=name, **options)

    names = {f"_kafka_{what}_on_{runner}": open_ for what, open_ in _OPENED.items()}
    return {name: fixture(name, open_) for name, open_ in names.items()}


def _private_fixtures(config: pytest.Config) -> ModuleType:
    """Make the fixtures that only the public ones request.

    Those on an event loop are there once for anyio's plugin and, if pytest-asyncio is
    installed, once for each of its scopes.
    """
    plugin = ModuleType("private fixtures of kafkaio")
    found = vars(plugin)
    found["kind"] = pytest.fixture(_kind, name="_kafka_kind")
    found["cluster"] = pytest.fixture(
        _shared_cluster, scope="session", name="_shared_kafka_cluster"
    )
    found.update(_fixtures("anyio", pytest.fixture))
    if config.pluginmanager.hasplugin("asyncio"):
        import pytest_asyncio

        for scope in _LOOP_SCOPES:
            decorate = pytest_asyncio.fixture
            found.update(_fixtures(scope, decorate, loop_scope=scope))
    return plugin


def _on_loop(request: pytest.FixtureRequest, what: str) -> Any:
    """Open one of ``_OPENED`` on the event loop of the test."""
    config = request.config
    if "anyio_backend" in request.fixturenames:
        runner = "anyio"
    elif config.pluginmanager.hasplugin("asyncio"):
        marker = request.node.get_closest_marker("asyncio")
        scope = marker.kwargs.get("loop_scope") if marker else None
        runner = scope or config.getini("asyncio_default_test_loop_scope")
    else:
        pytest.fail(f"an embedded {what} needs pytest-asyncio or anyio's plugin")
    return request.getfixturevalue(f"_kafka_{what}_on_{runner}")


# ---- a real Kafka for the session ----------------------------------------------------

#: The topics created on each cluster that outlives the session.
_MADE: Final = pytest.StashKey[dict[object, list[str]]]()


@contextmanager
def _deleting_topics(kafka: Kafka, config: pytest.Config) -> Iterator[None]:
    """At the end, delete the topics made on a cluster that we did not start."""
    from kafkaio.testing.kafka._source import ExternalCluster

    # A cluster that was started for the session ends with it.
    if not isinstance(kafka.engine, ExternalCluster):
        yield
        return
    made = config.stash.setdefault(_MADE, {}).setdefault(kafka, [])
    try:
        yield
    finally:
        try:
            kafka.delete_topics_blocking(made)
        except RuntimeError as error:
            warnings.warn(str(error), stacklevel=1)


def _unique(stem: str) -> str:
    """Return a new topic name that begins with the name of its test."""
    clean = re.sub(r"[^a-zA-Z0-9._-]+", "-", stem)[:_LONGEST_STEM]
    # Unique: a cluster can serve several runs at a time.
    return f"{clean}-{uuid.uuid4().hex[:8]}"


def topic_factory(
    kafka: Broker | Kafka, request: pytest.FixtureRequest
) -> TopicFactory:
    """Return a `TopicFactory`; the names that it gives begin with the test's name.

    For fixtures that create topics on a Kafka of their own.
    """
    # The name shows which test has left a topic behind.
    stem = str(request.node.name)

    def create(
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> str:
        # Only a real Kafka has the blocking form: a Broker's has nothing to wait for.
        make = getattr(kafka, "create_topic_blocking", kafka.create_topic)
        name = _unique(stem)
        made = request.config.stash.get(_MADE, {}).get(kafka)
        if made is not None:
            made.append(name)  # before it exists: the run may be interrupted
        make(name, partitions, replication_factor, config)
        return name

    return create


@pytest.fixture(scope="session")
def kafka_version(request: pytest.FixtureRequest) -> str:
    """The Kafka version of this run, such as ``4.4``."""
    return _chosen(request.config)


@pytest.fixture(scope="session")
def real_kafka_source() -> Callable[[int, str], Kafka]:
    """Makes the real clusters of the session, of a number of brokers and a version.

    It is `kafkaio.testing.kafka.real_kafka`; a fixture of this name in a
    ``conftest.py`` can give them options of their own.
    """
    from kafkaio.testing.kafka import real_kafka as choose

    return choose


@pytest.fixture(scope="session")
def real_kafka(
    real_kafka_source: Callable[[int, str], Kafka],
    kafka_version: str,
    request: pytest.FixtureRequest,
) -> Iterator[Kafka]:
    """One real broker, shared by the session. A test must not stop its node."""
    with (
        real_kafka_source(1, kafka_version) as kafka,
        _deleting_topics(kafka, request.config),
    ):
        yield kafka


def _shared_cluster(
    real_kafka_source: Callable[[int, str], Kafka],
    kafka_version: str,
    request: pytest.FixtureRequest,
) -> Iterator[Kafka]:
    with (
        real_kafka_source(_CLUSTER_BROKERS, kafka_version) as kafka,
        _deleting_topics(kafka, request.config),
    ):
        yield kafka


@pytest.fixture
def real_kafka_cluster(_shared_kafka_cluster: Kafka) -> Iterator[Kafka]:
    """Three real brokers, shared by the session.

    A test may kill, stop or pause nodes: all of them are up again after it.
    """
    yield _shared_kafka_cluster
    engine = _shared_kafka_cluster.engine
    for node_id in engine.node_ids:
        engine.resume(node_id)
    for node_id in engine.node_ids:
        engine.start(node_id, wait=False)
    for node_id in engine.node_ids:
        engine.start(node_id)
