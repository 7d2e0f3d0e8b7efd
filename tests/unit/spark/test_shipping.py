"""Readers and writers in a process that lacks a package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StringType, StructField, StructType

from kafkaio.spark._options import ReadOptions
from kafkaio.spark._reader import KafkaReader
from kafkaio.spark._schema import projection
from kafkaio.spark._writer import KafkaStreamWriter, KafkaWriter

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
COLUMNS = StructType([StructField("value", StringType())])

#: Hides a package, and prints why something cannot be unpickled.
UNPICKLING = """
import sys

class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[2]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hiding())
import pickle
try:
    pickle.load(open(sys.argv[1], "rb"))
except ImportError as error:
    print(error)
"""


def reader() -> KafkaReader:
    options = ReadOptions.of({**SERVERS, "subscribe": "t"}, is_stream=False)
    return KafkaReader(options, projection(COLUMNS))


def writer() -> KafkaWriter:
    return KafkaWriter.of({**SERVERS, "topic": "t"}, COLUMNS, overwrite=False)


def stream_writer() -> KafkaStreamWriter:
    return KafkaStreamWriter.of({**SERVERS, "topic": "t"}, COLUMNS, overwrite=False)


@pytest.mark.parametrize("make", [reader, writer, stream_writer])
@pytest.mark.parametrize("package", ["kafkaio", "pyarrow"])
def test_what_is_missing_is_said_in_one_sentence(
    make: Callable[[], object], package: str, tmp_path: Path
) -> None:
    file = tmp_path / "pickled"
    file.write_bytes(cloudpickle.dumps(make()))
    command = [sys.executable, "-c", UNPICKLING, str(file), package]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said.startswith("planning (host ")
    assert f"No module named '{package}'; {sys.executable} needs kafkaio[spark]" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("make", [reader, writer, stream_writer])
def test_nothing_is_lost_on_the_way(make: Callable[[], object]) -> None:
    one = make()
    two = cloudpickle.loads(cloudpickle.dumps(one))
    assert type(two) is type(one)
    assert vars(two).keys() == vars(one).keys()
    assert vars(two).get("_options") == vars(one).get("_options")
