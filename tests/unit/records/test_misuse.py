"""Nothing that Python code does to the compiled codec ends the process."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import kafkaio
from kafkaio._records._impl import accelerated, batch_header

compiled = pytest.mark.skipif(not accelerated, reason="the codec is not compiled")


@compiled
@pytest.mark.parametrize("seed", [1, 2])
def test_misuse_raises_and_does_not_crash(seed: int) -> None:
    script = Path(__file__).with_name("misuse.py")
    found = subprocess.run(
        [sys.executable, str(script), str(seed), "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    calls = found.stdout.splitlines()
    assert found.returncode == 0, calls[-3:]
    assert calls[-1] == "survived"


@compiled
def test_a_record_without_init_raises() -> None:
    class Forgetful(kafkaio.Record):
        def __init__(self) -> None:
            pass

    for record in (kafkaio.Record.__new__(kafkaio.Record), Forgetful()):
        for use in (
            repr,
            hash,
            copy.copy,
            pickle.dumps,
            lambda record: record.topic,
            lambda record: record.partition,
            lambda record: record.topic_partition,
            lambda record: record == record,
        ):
            with pytest.raises(AttributeError):
                use(record)
        assert (record.key, record.value, record.headers) == (None, None, ())


@compiled
def test_a_delivery_without_init_raises() -> None:
    delivery = kafkaio.Delivery.__new__(kafkaio.Delivery)
    for use in (
        repr,
        lambda delivery: delivery.is_done,
        lambda delivery: delivery.result(),
        lambda delivery: delivery.exception(),
        lambda delivery: delivery.__await__(),
    ):
        with pytest.raises(AttributeError):
            use(delivery)


@compiled
def test_rows_whose_init_failed_have_no_rows() -> None:
    from kafkaio._records import _speedups as codec

    rows = codec.Rows.__new__(codec.Rows)
    with pytest.raises(kafkaio.UsageError):
        rows.__init__(1000, b"12345678", None, None)
    assert rows.length == 0
    with pytest.raises(kafkaio.UsageError):
        rows.record(999)


@compiled
def test_a_topic_without_partitions_takes_nothing() -> None:
    from kafkaio._records import _speedups as codec

    opened = codec.OpenBatches(lambda: 0, 1000)
    batch = codec.RecordWriter(100), codec.Receipt("t", 0)
    with pytest.raises(IndexError):
        opened.open("t", 0, 0, batch, 100)
    assert opened.take("t", b"v", b"key", (), None, None) is None
    with pytest.raises(TypeError):
        opened.open("t", 0, 1, (None, None), 100)
    opened.open("t", 0, 1, batch, 100)
    opened.stick("t", 0, 100)
    with pytest.raises(IndexError):
        opened.take_values("t", [b"v"], -1)


def test_a_batch_needs_all_of_its_producer() -> None:
    from kafkaio._records._impl import RecordWriter

    writer = RecordWriter(100)
    writer.try_append(1, b"k", b"v")
    for producer in ((), (1,), (1, 2)):
        with pytest.raises((IndexError, ValueError)):
            batch_header(writer, None, 0, -1, producer)
