"""The fixtures as a user's tests use them: each run is a separate pytest."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kafkaio._client import Client
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.testing.kafka import ClusterOptions, Kafka
from kafkaio.testing.kafka._embedded import EmbeddedEngine
from kafkaio.testing.kafka._source import BOOTSTRAP_VARIABLE, KAFKA_VARIABLE

pytest_plugins = ("pytester",)

LOOPS = ("-o", "asyncio_default_fixture_loop_scope=function")
AUTO = ("--asyncio-mode=auto", *LOOPS)
STRICT = ("--asyncio-mode=strict", *LOOPS)

ROUND_TRIP = """
import asyncio
import pytest
from kafkaio.testing import Broker

{mark}
async def test_it({more}kafka_broker, kafka_producer, kafka_consumer, kafka_topic):
    assert isinstance(kafka_broker, Broker)
    await kafka_producer.send(kafka_topic, b"one")
    async with asyncio.timeout(30):
        assert (await anext(kafka_consumer)).value == b"one"
"""


class Loaded:
    """The modules that runs within this process loaded, beside their own tests."""

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        for name, module in sys.modules.items():
            file = getattr(module, "__file__", None)
            if file and not Path(file).is_relative_to(config.rootpath):
                self.modules[name] = module


LOADED = Loaded()


@pytest.fixture(autouse=True)
def modules_stay_loaded() -> Iterator[None]:
    """Keep what a run loaded, which pytester would unload.

    A module that is loaded again has other classes than those that modules and caches
    hold already, and fails tests that run later in the same process.
    """
    yield
    sys.modules.update(LOADED.modules)


def run(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(source)
    return pytester.runpytest_inprocess(
        *("-p", "kafkaio.testing.pytest_plugin", "-p", "no:cacheprovider"),
        *("-p", "no:xdist", "-p", "no:randomly", "-p", "no:hypothesispytest"),
        *("--strict-markers", "-W", "error", *options),
        plugins=[LOADED],
    )


def test_with_pytest_asyncio_in_auto_mode(pytester: pytest.Pytester) -> None:
    source = ROUND_TRIP.format(mark="", more="")
    run(pytester, source, *AUTO).assert_outcomes(passed=1)


@pytest.mark.parametrize("scope", ["function", "module"])
def test_with_pytest_asyncio_in_strict_mode(
    pytester: pytest.Pytester, scope: str
) -> None:
    mark = f"@pytest.mark.asyncio(loop_scope={scope!r})"
    source = ROUND_TRIP.format(mark=mark, more="")
    run(pytester, source, *STRICT).assert_outcomes(passed=1)


def test_with_the_plugin_of_anyio(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    source = ROUND_TRIP.format(mark="@pytest.mark.anyio", more="")
    run(pytester, source, *STRICT).assert_outcomes(passed=1)


def test_without_anything_to_run_a_loop(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it(kafka_broker): pass", "-p", "no:asyncio")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs pytest-asyncio or anyio's plugin*"])


def test_settings_of_the_marker(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.kafka("embedded", nodes=2, partitions=5, as_version="2.8")
        async def test_it(kafka_broker, kafka_topic, kafka_topics):
            assert kafka_broker.release == "2.8"
            assert len(kafka_broker.nodes) == 2
            assert len(kafka_broker.topics[kafka_topic].partitions) == 5
            assert kafka_topic.startswith("test_it-embedded")
            other = kafka_topics(config={"retention.ms": "7"})
            assert kafka_broker.topics[other].settings.get("retention.ms") == "7"
            assert len(kafka_broker.topics) == 2
        """,
        *AUTO,
    )
    result.assert_outcomes(passed=1)


REGISTRY = """
import asyncio
import urllib.request
import pytest

def ask(url):
    return urllib.request.urlopen(url, timeout=30).read()

{mark}
@pytest.mark.kafka_registry(compatibility="FULL")
async def test_it({more}kafka_registry):
    found = await asyncio.to_thread(ask, kafka_registry.url + "/config")
    assert found == b'{{"compatibilityLevel":"FULL"}}'
    assert kafka_registry.count("GET /config") == 1
"""


def test_a_registry_on_each_loop(pytester: pytest.Pytester) -> None:
    source = REGISTRY.format(mark="", more="")
    run(pytester, source, *AUTO).assert_outcomes(passed=1)
    mark = "@pytest.mark.asyncio(loop_scope='module')"
    source = REGISTRY.format(mark=mark, more="")
    run(pytester, source, *STRICT).assert_outcomes(passed=1)
    source = REGISTRY.format(mark="@pytest.mark.anyio", more="anyio_backend, ")
    pytester.makeconftest(
        "import pytest\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    run(pytester, source, *STRICT).assert_outcomes(passed=1)


BOTH = """
import pytest

@pytest.fixture(scope="session")
def real_kafka():
    class Real:
        bootstrap_servers = "real:9092"
        def create_topic_blocking(self, *wanted): self.made = wanted
        create_topic = None
    return Real()

@pytest.fixture
def real_kafka_cluster(): return "three nodes"
"""


def test_both_by_one_marker(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(BOTH)
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.kafka("embedded", "real")
        async def test_both(kafka_broker, kafka_topic):
            assert kafka_topic.startswith("test_both-")

        @pytest.mark.kafka("real", partitions=3)
        async def test_real(kafka_broker, kafka_topic):
            assert kafka_broker.bootstrap_servers == "real:9092"
            assert kafka_broker.made == (kafka_topic, 3, None, None)

        @pytest.mark.kafka("real", nodes=3)
        async def test_cluster(kafka_broker):
            assert kafka_broker == "three nodes"

        @pytest.mark.kafka("real", as_version="2.8")
        async def test_wrong(kafka_broker): pass
        """,
        *(*AUTO, "-v"),
    )
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*test_both?embedded? PASSED*",
            "*test_both?real? PASSED*",
            "*a real Kafka has no setting as_version*",
        ]
    )


def test_a_marker_that_nobody_knows(pytester: pytest.Pytester) -> None:
    source = """
        import pytest

        @pytest.mark.kafka("imagined")
        def test_it(kafka_broker): pass
        """
    result = run(pytester, source, *AUTO)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*must be 'embedded', 'real' or both*"])


def test_nothing_is_loaded_before_it_is_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            loaded = {name for name in sys.modules if name.startswith("kafkaio.")}
            always = ("_dataclass", "_public", "_version", "errors", "types")
            loaded -= {f"kafkaio.{name}" for name in always}
            assert loaded == {"kafkaio.testing", "kafkaio.testing.pytest_plugin"}
        """
    )
    result = pytester.runpytest_subprocess("-p", "kafkaio.testing.pytest_plugin")
    result.assert_outcomes(passed=1)


def test_the_examples_of_the_guide(pytester: pytest.Pytester) -> None:
    guide = Path(__file__).parents[4] / "docs" / "guide" / "testing.md"
    section = guide.read_text().split("## With pytest")[1]
    example = section.split("```python")[1].split("```")[0]
    result = run(pytester, example, *AUTO, "-k", "not real")
    result.assert_outcomes(passed=4, deselected=1)


@pytest.mark.parametrize(("variable", "runs"), [("", 2), ("embedded", 1)])
def test_each_kafka_once(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    runs: int,
) -> None:
    monkeypatch.setenv("KAFKAIO_KAFKA", variable)
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.kafka("embedded", "real")
        def test_it(_kafka_kind):
            pass
        """,
        *AUTO,
    )
    result.assert_outcomes(passed=runs)


MAKES_TOPICS = """
import pytest
from kafkaio.testing.pytest_plugin import topic_factory

@pytest.fixture
def topic(real_kafka, request):
    return topic_factory(real_kafka, request)

def test_one(topic, real_kafka):
    topic(partitions=2), topic()
    real_kafka.create_topic_blocking("of-the-test")

@pytest.mark.kafka("real")
def test_two(kafka_topic):
    raise AssertionError("leaves its topic behind")
"""


def test_topics_on_an_external_cluster_are_deleted(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ClusterOptions()
    with Kafka.on(EmbeddedEngine(options), options) as theirs:
        theirs.create_topic_blocking("theirs")
        monkeypatch.delenv(KAFKA_VARIABLE, raising=False)
        monkeypatch.setenv(BOOTSTRAP_VARIABLE, theirs.bootstrap_servers)
        result = run(pytester, MAKES_TOPICS, *AUTO)
        result.assert_outcomes(passed=1, failed=1)
        assert topics(theirs) == {"theirs", "of-the-test"}


def test_topics_that_cannot_be_deleted_are_reported(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ClusterOptions()
    with Kafka.on(EmbeddedEngine(options), options) as theirs:
        monkeypatch.delenv(KAFKA_VARIABLE, raising=False)
        monkeypatch.setenv(BOOTSTRAP_VARIABLE, theirs.bootstrap_servers)
        monkeypatch.setattr(
            "kafkaio.testing.kafka._topics.delete_topics",
            lambda _, names, __: dict.fromkeys(names, 29),
        )
        source = "def test_it(kafka_topic): pass"
        mark = "import pytest\n@pytest.mark.kafka('real')\n"
        result = run(pytester, mark + source, *AUTO, "-W", "default")
        result.assert_outcomes(passed=1, warnings=1)
        result.stdout.fnmatch_lines(["*could not be deleted: test_it-* (error 29)*"])


def topics(kafka: Kafka) -> set[str | None]:
    """The names of all topics that a cluster has."""

    async def ask() -> set[str | None]:
        async with Client(kafka.bootstrap_servers) as client:
            answer = await client.request(MetadataRequest(topics=None))
            return {topic.name for topic in answer.topics}

    return asyncio.run(ask())


@pytest.mark.parametrize("options", [(), ("-v",)])
def test_only_public_fixtures_are_shown(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    source = "def test_it(kafka_topic): ..."
    result = run(pytester, source, "--fixtures", *STRICT, *options)
    shown = {line.split(" ")[0] for line in result.outlines if " -- " in line}
    ours = {name for name in shown if "kafka" in name}
    assert ours == {
        *("kafka_broker", "kafka_topic", "kafka_topics", "kafka_producer"),
        *("kafka_consumer", "kafka_version", "real_kafka", "real_kafka_cluster"),
        *("real_kafka_source", "kafka_registry"),
    }
