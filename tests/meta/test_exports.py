"""The public surface: a name that comes or goes does so on purpose."""

import subprocess
import sys

import pytest

import kafkaio
from kafkaio import admin, errors, types

OTHERS = {
    *("ANY", "Broker", "Controller", "Destination", "GroupCoordinator", "Leader"),
    *("TransactionCoordinator", "Client", "ClientConfig", "ConsumerConfig"),
    *admin.__all__,
    *("ProducerConfig", "Producer", "Delivery", "DeliveriesFailed", "TableDelivery"),
    *("Consumer", "Batch", "Poll", "Observer", "ErrorCode", "accelerated", "messages"),
    *("Assigned", "RevokeRequested", "Revoked", "Lost"),
    *("DeadLetter", "Lane", "Retry", "exactly_once"),
    *("Transaction", "TransactionOutcome", "TransactionalConsumer"),
    *("Assignor", "Layout", "Subscription"),
    *("OffsetStore", "DualOffsetStore", "FileOffsetStore"),
    *("KafkaOffsetStore", "SQLiteOffsetStore", "ZooKeeperOffsetStore"),
    *(
        "GroupMetadata",
        "Metric",
        "NewRecord",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
    ),
    "OffsetRange",
    *("Record", "RecordMetadata", "TimestampType", "TopicPartition", "__version__"),
}


def test_the_names_of_the_package() -> None:
    assert set(kafkaio.__all__) == OTHERS | set(errors.__all__)
    assert set(kafkaio.__all__) <= set(dir(kafkaio))


@pytest.mark.parametrize("name", kafkaio.__all__)
def test_every_name_is_there(name: str) -> None:
    value = getattr(kafkaio, name)
    assert value is getattr(kafkaio, name)
    if name in errors.__all__:
        assert issubclass(value, errors.KafkaError | errors.AdminErrors)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'AIOProducer'"):
        _ = kafkaio.AIOProducer


def loaded_by(code: str) -> set[str]:
    """The modules that are there after ``code`` ran in a process of its own."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def parts(loaded: set[str], package: str) -> set[str]:
    """What of a package is loaded."""
    return {
        name.removeprefix(f"{package}.")
        for name in loaded
        if name.startswith(f"{package}.")
    }


MESSAGES = "kafkaio.protocol.messages"
#: What every client says to a broker.
OF_ALL = {"api_versions", "metadata", "request_header"}
#: Slow to load, and of no use to most programs, or not before the first batch.
DEAR = {"cramjam", "lz4", "zstandard", "crc32c", "importlib.metadata", "sqlite3"}


def test_what_is_not_used_is_not_loaded() -> None:
    loaded = loaded_by("import kafkaio; kafkaio.TopicPartition; kafkaio.KafkaError")
    assert parts(loaded, "kafkaio") == {"_dataclass", "_version", "errors", "types"}


def test_a_producer_loads_what_it_needs() -> None:
    loaded = loaded_by("import kafkaio; kafkaio.Producer")
    assert "kafkaio._producer.producer" in loaded
    assert not parts(loaded, "kafkaio._consumer")
    assert parts(loaded, MESSAGES) == OF_ALL | {"init_producer_id", "produce"}
    assert not loaded & DEAR


def test_a_consumer_loads_what_it_needs() -> None:
    loaded = loaded_by("import kafkaio; kafkaio.Consumer")
    assert "kafkaio._consumer.consumer" in loaded
    assert not parts(loaded, "kafkaio._producer")
    messages = parts(loaded, MESSAGES)
    assert {*OF_ALL, "fetch", "join_group"} < messages
    assert not messages & {"produce", "init_producer_id", "create_topics"}
    assert not loaded & DEAR


def test_one_codec_is_loaded() -> None:
    loaded = loaded_by("import kafkaio; kafkaio.Producer; kafkaio.Consumer")
    common = {
        *("_impl", "_layout", "batch", "builder", "compression", "control"),
        *("legacy", "sections", "view"),
    }
    compiled = {"_speedups"}
    pure = {
        *("_append", "_columns", "_crc", "_cursor", "_frame", "_header", "_murmur2"),
        *("_pure", "_receipts", "_stream"),
    }
    codec = compiled if kafkaio.accelerated else pure
    assert parts(loaded, "kafkaio._records") == common | codec


def test_classes_are_loaded_without_their_methods() -> None:
    loaded_by(
        "import kafkaio; kafkaio.Producer; kafkaio.Consumer\n"
        "modules = [m for n, m in sys.modules.items() if n.startswith('kafkaio.')]\n"
        "classes = {c for m in modules for c in vars(m).values() if type(c) is type}\n"
        "fields = [vars(c).get('__dataclass_fields__') for c in classes]\n"
        "kinds = [type(each).__name__ for each in fields]\n"
        "assert kinds.count('_Unmade') > 80, kinds.count('_Unmade')\n"
        "assert kinds.count('dict') < 12, kinds.count('dict')"
    )


def test_public_values_are_those_of_types() -> None:
    assert kafkaio.TopicPartition is types.TopicPartition
    assert repr(kafkaio.TopicPartition("t", 1)) == (
        "TopicPartition(topic='t', partition=1)"
    )
