"""Writes rows of Spark to Kafka: `KafkaWriter` and `KafkaStreamWriter`.

Spark makes a writer in the driver for each batch and each micro-batch, and pickles it
to the executors, where each attempt of a task calls ``write``. So all attempts of one
execution of a write share the id of a *run*, which the writer gets when it is made.
``commit`` and ``abort`` run in the driver, in a process of their own, on a copy of the
writer: they only have the messages that the tasks have returned.

At least once (the default), a task has written its rows when ``write`` returns, and
``commit`` does nothing. With ``exactlyOnce``, each attempt commits a transaction of its
own (`kafkaio.spark._exactly_once`). ``commit`` decides on the transactions that a
repetition has left open (`kafkaio.spark._judgement`). ``abort`` ends these, and those
of tasks that did not return, since readers would wait for them.

Those processes live for one call, so the tasks import what only they need.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from kafkaio._dataclass import dataclass
from kafkaio.errors import KafkaError, UsageError
from kafkaio.spark import _runtime as runtime
from kafkaio.spark._errors import explained, plainly
from kafkaio.spark._marker_state import Outcome, TaskReport
from kafkaio.spark._options import WriteOptions
from kafkaio.spark._rows import RowColumns, pulled, write_rows
from kafkaio.spark._shipping import shipped

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kafkaio._client import Client
    from kafkaio._producer.detached import DetachedTransaction
    from kafkaio._producer.transaction import Transaction
    from kafkaio.spark._exactly_once import TaskName, TaskResult
    from kafkaio.spark._judgement import VersionWrite
    from kafkaio.spark._marker_stores import MarkerStorePort

_log = logging.getLogger("kafkaio.spark")

#: Seconds for `abort`: the query has failed, and reports its error afterwards.
_ABORT_TIMEOUT: Final = 10.0
#: Local properties that Spark sets for the tasks of a micro-batch.
_BATCH_ID: Final = "streaming.sql.batchId"
_QUERY_ID: Final = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class TaskDone(WriterCommitMessage):  # type: ignore[misc]  # pyspark is not followed
    """The message of a task to the driver.

    Attributes:
        app: the application of its transaction; None without ``exactlyOnce``.
        rows: number of rows of its input.
        is_skipped: whether nothing was written, since rows were in.
        version: the version that it wrote.
        run: the run that it belongs to.
        report: the report to the driver; None without ``exactlyOnce``.
        held: its transaction, if it was left open for the driver.
    """

    app: str | None
    rows: int
    is_skipped: bool = False
    version: int = -1
    run: str = ""
    report: TaskReport | None = None
    held: DetachedTransaction | None = None

    @classmethod
    def of(cls, name: TaskName, run: str, result: TaskResult) -> TaskDone:
        """Make the message of a task that wrote exactly once."""
        held = result.held
        report = TaskReport(
            name.task,
            result.outcome,
            result.found,
            result.expected,
            -1 if held is None else held.producer_id,
        )
        return cls(
            name.app, result.rows, result.is_skipped, name.version, run, report, held
        )


class KafkaWriter(DataSourceArrowWriter):  # type: ignore[misc]  # as above
    """Writes a batch; made by `of`."""

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink

    __reduce__ = shipped

    @classmethod
    def of(
        cls, options: Mapping[str, str], schema: StructType, *, overwrite: bool
    ) -> KafkaWriter:
        """Make the writer of a batch.

        Args:
            options: the options as they were given.
            schema: the columns of the rows.
            overwrite: whether Spark asks to replace the topic's records.

        Raises:
            ConfigurationError: an option is impossible.
            UsageError: a topic cannot be overwritten; or the columns do not fit.
        """
        checked = WriteOptions.of(options, is_stream=False)
        return cls(_Sink.of(checked, schema, overwrite=overwrite))

    @plainly
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task; returns when they are acknowledged."""
        return self._sink.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Note that the batch is in; judge it, if it was begun before."""
        self._sink.commit(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """End what tasks have left open."""
        self._sink.abort(messages)


class KafkaStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # as above
    """Writes the micro-batches of a stream; made by `of`."""

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink

    __reduce__ = shipped

    @classmethod
    def of(
        cls, options: Mapping[str, str], schema: StructType, *, overwrite: bool
    ) -> KafkaStreamWriter:
        """Make the writer of a stream.

        Args:
            options: the options as they were given.
            schema: the columns of the rows.
            overwrite: whether the query's output mode is ``complete``.

        Raises:
            ConfigurationError: an option is impossible.
            UsageError: the output mode is ``complete``; or the columns do not fit.
        """
        checked = WriteOptions.of(options, is_stream=True)
        checkpoint = options.get("checkpointlocation")
        sink = _Sink.of(checked, schema, overwrite=overwrite, checkpoint=checkpoint)
        return cls(sink)

    @plainly
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task; returns when they are acknowledged."""
        return self._sink.write(iterator)

    def commit(
        self, messages: Sequence[WriterCommitMessage | None], batchId: int
    ) -> None:
        """Judge the micro-batch, if it was begun before; else do nothing."""
        self._sink.commit(messages)

    def abort(
        self, messages: Sequence[WriterCommitMessage | None], batchId: int
    ) -> None:
        """End what tasks have left open."""
        self._sink.abort(messages)


@dataclass(frozen=True, slots=True)
class _Sink:
    """The part that both writers share. Can be pickled.

    Attributes:
        options: the options of the write.
        columns: which columns of the rows are written.
        run: tells one execution of a write from all others.
        checkpoint: the query's checkpoint; None if it is not known.
    """

    options: WriteOptions
    columns: RowColumns
    run: str
    checkpoint: str | None = None

    @classmethod
    def of(
        cls,
        options: WriteOptions,
        schema: StructType,
        *,
        overwrite: bool,
        checkpoint: str | None = None,
    ) -> _Sink:
        if overwrite:
            raise UsageError(
                "a topic cannot be overwritten: use outputMode('append') in a stream "
                "and mode('append') in a batch; for updates, "
                "writeStream.foreachBatch(kafkaio.spark.foreach_batch_writer(...))"
            )
        types = {field.name: field.dataType.simpleString() for field in schema}
        columns = RowColumns.of(types, options.topic)
        return cls(options, columns, uuid4().hex, checkpoint)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        runtime.freeze()
        context = TaskContext.get()
        if context is None:
            raise UsageError("rows are written by the tasks of Spark alone")
        with explained(f"writing to {self.columns.topic or 'the topics of the rows'}"):
            if not self.options.exactly_once:
                return runtime.run(self._write(iterator))
            return runtime.run(self._write_once(iterator, self._name(context)))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        done = [each for each in messages if isinstance(each, TaskDone)]
        reports = [each.report for each in done if each.report is not None]
        if not reports:
            return
        if self.options.is_stream and all(each.is_settled for each in reports):
            # In a stream, the next micro-batch shows that this one is in.
            return
        if all(each.outcome is Outcome.LATER for each in reports):
            return
        with explained(f"committing batch {done[0].version} of {done[0].app!r}"):
            runtime.run(self._settle(done, reports))

    async def _settle(
        self, done: Sequence[TaskDone], reports: Sequence[TaskReport]
    ) -> None:
        client = await runtime.client(self.options.client_config())
        held = {
            each.report.task: each.held
            for each in done
            if each.report is not None and each.held is not None
        }
        await (await self._version(client, done[0])).commit(reports, held)

    async def _version(self, client: Client, done: TaskDone) -> VersionWrite:
        from kafkaio.spark._judgement import VersionName, VersionWrite

        assert done.app is not None
        return VersionWrite(
            client,
            VersionName(
                app=done.app,
                version=done.version,
                run=done.run,
                prefix=self.options.transactional_id_prefix,
            ),
            await self._markers(client),
            is_strict=self.options.fails_on_mismatch,
        )

    async def _markers(self, client: Client) -> MarkerStorePort:
        from kafkaio.spark._marker_stores import store_of

        options = self.options
        is_topic = options.marker_store == "topic"
        return await store_of(
            client,
            topic=options.marker_topic if is_topic else None,
            groups_at=options.groups_at,
            output=options.topic,
        )

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        # Tasks that have left a transaction open, or may have: those without a message.
        unknown = [
            task
            for task, done in enumerate(messages)
            if not isinstance(done, TaskDone) or done.held is not None
        ]
        if not self.options.exactly_once or not unknown:
            return
        apps = [done.app for done in messages if isinstance(done, TaskDone)]
        app = self.options.app or (apps[0] if apps else _query_id(self.checkpoint))
        if app is None:
            # The next attempts, or the time limit, abort the transactions.
            return
        prefix = self.options.transactional_id_prefix
        from kafkaio.spark._marker_names import transactional_id

        ids = [transactional_id(prefix, app, task) for task in unknown]
        try:
            runtime.run(self._end_open(ids))
        except KafkaError as error:
            # The query has failed for another reason, which this must not hide.
            _log.warning("transactions of %s were not ended: %s", ", ".join(ids), error)

    def _name(self, context: TaskContext) -> TaskName:
        app, version = self.options.app, self.options.version
        if app is None:
            app = context.getLocalProperty(_QUERY_ID)
        if version is None:
            version = int(context.getLocalProperty(_BATCH_ID) or -1)
        if app is None or version < 0:
            raise UsageError(
                "exactlyOnce in a stream needs the ids of the query and of the batch, "
                "which this Spark does not tell its tasks: use "
                "kafkaio.spark.foreach_batch_writer(...)"
            )
        from kafkaio.spark._exactly_once import TaskName

        return TaskName(
            app=app,
            version=version,
            task=context.partitionId(),
            prefix=self.options.transactional_id_prefix,
        )

    async def _write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        producer = await runtime.producer(self.options.producer_config())
        rows = await write_rows(producer, self.columns, pulled(iterator))
        return TaskDone(None, rows)

    async def _write_once(
        self, iterator: Iterator[pa.RecordBatch], name: TaskName
    ) -> TaskDone:
        columns, options = self.columns, self.options
        from kafkaio.spark._exactly_once import TaskAttempt

        client = await runtime.client(options.client_config())
        markers = await self._markers(client)
        attempt = TaskAttempt(
            client,
            name,
            marker_topic=markers.topic,
            config=options.producer_config(name.transactional_id),
            on_mismatch="fail" if options.fails_on_mismatch else "warn",
            run=self.run,
            markers=markers,
            producers=runtime.transactional(),
        )

        async def put(tx: Transaction, batch: pa.RecordBatch) -> None:
            _ = await columns.enqueue(tx, batch)  # the commit waits for the rows

        chosen = (columns.chosen(batch) async for batch in pulled(iterator))
        result = await attempt.run(chosen, put)
        return TaskDone.of(name, self.run, result)

    async def _end_open(self, ids: Sequence[str]) -> None:
        from kafkaio.spark._judgement import fence

        began = time.monotonic()
        most_ms = round(_ABORT_TIMEOUT * 1000)
        client = await runtime.client(self.options.client_config(most_ms=most_ms))
        left = max(0.001, began + _ABORT_TIMEOUT - time.monotonic())
        await fence(client, ids, left)


def _query_id(checkpoint: str | None) -> str | None:
    """Return the id of a query, if its checkpoint is a directory of this host."""
    if checkpoint is None:
        return None
    # Spark tells the id only to tasks; in the driver's process it is in this file.
    place = checkpoint.removeprefix("file://").removeprefix("file:")
    try:
        found = json.loads((Path(place) / "metadata").read_text())
    except (OSError, ValueError):
        return None
    return str(found["id"]) if isinstance(found, dict) and "id" in found else None
