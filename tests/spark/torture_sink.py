"""A sink that fails where its options say, and the numbered rows that are written.

It is `kafkaio` under another name. Each fault happens once: the first process that gets
there makes a file. Options, all beside those of kafkaio:

- ``test.faults``: the directory of these files.
- ``test.fault``: ``mid`` (the input fails in the middle of a task), ``lost`` (a task
  fails after its rows are in), ``commit`` (the driver's commit fails after all tasks),
  ``worker`` (SIGKILL of the worker in the middle of a task), ``executor`` (SIGKILL of
  its JVM), ``driver`` (SIGKILL of the process group ``test.driver``), ``workers`` (as
  ``worker``, and not once but in each attempt), ``late`` (a task waits in the middle of
  its input until the coordinator has aborted its transaction).
- ``test.loses``: how many of 100 tasks fail once after their rows are in.
- ``test.slow``: seconds that each task waits in the middle of its input.
- ``test.batch`` and ``test.task``: where; by default in batch 1, task 1.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafkaio.admin import Admin
from kafkaio.errors import KafkaError
from kafkaio.spark._source import KafkaSource
from kafkaio.spark._writer import KafkaStreamWriter

__all__ = ["FaultySource", "Injected", "numbered", "stream_of"]


_IN_THE_MIDDLE = frozenset({"mid", "worker", "workers", "executor", "driver", "late"})


class Injected(Exception):
    """A fault that was asked for."""


class FaultySource(KafkaSource):
    """``kafkaio``, with faults in its streaming sink."""

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:
        options = dict(self.options)
        faults = {name: options.pop(name) for name in list(options) if "test." in name}
        inner = KafkaStreamWriter.of(options, schema, overwrite=overwrite)
        return FaultyWriter(inner, faults, self.options["kafka.bootstrap.servers"])


class FaultyWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # not followed
    """A writer that fails once."""

    def __init__(
        self, inner: KafkaStreamWriter, faults: Mapping[str, str], servers: str
    ) -> None:
        self._inner = inner
        self._faults = faults
        self._servers = servers

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        self._note(
            f"attempt of {context.getLocalProperty('streaming.sql.batchId')}-"
            f"{context.partitionId()}-{context.attemptNumber()}"
        )
        try:
            done = self._inner.write(self._with_faults(iterator, context))
        except KafkaError as error:
            self._note(f"failed: {error}")
            raise
        if self._is_here("lost", context) and self._first("lost"):
            raise Injected
        if self._loses(context):
            raise Injected
        return done

    def _loses(self, context: TaskContext) -> bool:
        batch = context.getLocalProperty("streaming.sql.batchId")
        name = f"lost-{batch}-{context.partitionId()}"
        share = int(self._faults.get("test.loses", "0"))
        return crc32(name.encode()) % 100 < share and self._first(name)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._inner.commit(messages, batchId)
        is_here = self._fault == "commit" and batchId == self._at("batch")
        if is_here and self._first("commit"):
            raise Injected

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._note(f"abort of {batchId}")
        self._inner.abort(messages, batchId)

    @property
    def _fault(self) -> str:
        return self._faults.get("test.fault", "")

    def _at(self, what: str) -> int:
        return int(self._faults.get(f"test.{what}", "1"))

    def _is_here(self, fault: str, context: TaskContext) -> bool:
        return (
            self._fault == fault
            and context.partitionId() == self._at("task")
            and context.getLocalProperty("streaming.sql.batchId")
            == str(self._at("batch"))
        )

    def _note(self, event: str) -> None:
        place = Path(self._faults["test.faults"]) / "events"
        with place.open("a") as file:
            file.write(f"{event}\n")

    def _first(self, name: str) -> bool:
        place = Path(self._faults["test.faults"]) / name
        try:
            place.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _with_faults(
        self, batches: Iterable[pa.RecordBatch], context: TaskContext
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            time.sleep(float(self._faults.get("test.slow", "0")))
            fault = self._fault
            is_here = fault in _IN_THE_MIDDLE and self._is_here(fault, context)
            if is_here and (fault == "workers" or self._first(fault)):
                # What is on its way reaches the broker first.
                time.sleep(0.5)
                self._fail(fault)
            yield batch.slice(half)

    def _fail(self, fault: str) -> None:
        if fault == "mid":
            raise Injected
        if fault == "late":
            # On a thread of its own: the loop of the worker writes meanwhile.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, self._until_aborted()).result()
        elif fault == "driver":
            os.killpg(int(self._faults["test.driver"]), signal.SIGKILL)
        elif fault == "executor":
            daemon = os.getppid()
            status = Path(f"/proc/{daemon}/stat").read_text()
            os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    async def _until_aborted(self) -> None:
        """Wait until the transaction of this task has been open, and is no more."""
        own = f"-{self._at('task')}"
        async with asyncio.timeout(60), Admin(self._servers) as admin:
            was_open = False
            while True:
                found = await admin.list_transactions(states=["Ongoing"])
                is_open = any(one.transactional_id.endswith(own) for one in found)
                if was_open and not is_open:
                    return
                was_open = is_open
                await asyncio.sleep(0.02)


def numbered(directory: Path, batches: int, rows: int) -> set[bytes]:
    """Write files of numbered rows, one for each micro-batch; return the rows."""
    directory.mkdir()
    for batch in range(batches):
        lines = [f"{batch}-{row}" for row in range(rows)]
        file = directory / f"{batch}.txt"
        file.write_text("\n".join(lines) + "\n")
        os.utime(file, (batch, batch))  # the order in which Spark takes them
    return {
        f"{batch}-{row}".encode() for batch in range(batches) for row in range(rows)
    }


def stream_of(spark: SparkSession, directory: Path, tasks: int = 4) -> DataFrame:
    """Read the files as a stream, one in each micro-batch, in some tasks."""
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(directory))
    return rows.repartition(tasks, "value")
