"""The public surface: a name that comes or goes does so on purpose."""

import subprocess
import sys

import pytest

import kafkaio
from kafkaio import errors, types

OTHERS = {
    *("ANY", "Broker", "Controller", "Destination", "GroupCoordinator", "Leader"),
    *("TransactionCoordinator", "Client", "ClientConfig", "ConsumerConfig"),
    *("ProducerConfig", "Producer", "Delivery", "DeliveriesFailed"),
    *("Consumer", "Batch", "Poll", "Observer", "ErrorCode", "accelerated", "messages"),
    *("Assigned", "RevokeRequested", "Revoked", "Lost"),
    *("DeadLetter", "Lane", "Retry"),
    *("Assignor", "Layout", "Subscription"),
    *("OffsetStore", "DualOffsetStore", "FileOffsetStore"),
    *("KafkaOffsetStore", "SQLiteOffsetStore", "ZooKeeperOffsetStore"),
    *("GroupMetadata", "NewRecord", "OffsetAndMetadata", "OffsetAndTimestamp"),
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
        assert issubclass(value, errors.KafkaError)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'AIOProducer'"):
        _ = kafkaio.AIOProducer


def test_what_is_not_used_is_not_loaded() -> None:
    code = (
        "import sys, kafkaio; kafkaio.TopicPartition; kafkaio.KafkaError;"
        "loaded = {n.split('.')[1] for n in sys.modules if n.startswith('kafkaio.')};"
        "assert loaded == {'_version', 'errors', 'types'}, loaded;"
        "kafkaio.Producer;"
        "assert not [n for n in sys.modules if n.startswith('kafkaio.consumer')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_public_values_are_those_of_types() -> None:
    assert kafkaio.TopicPartition is types.TopicPartition
    assert repr(kafkaio.TopicPartition("t", 1)) == (
        "TopicPartition(topic='t', partition=1)"
    )
