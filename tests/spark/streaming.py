"""Streams of both sources, whose rows and offsets are kept by micro-batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.reading import SOURCES, Reading, Rows


class Stream:
    """A stream with a checkpoint, whose rows are kept batch by batch."""

    def __init__(self, reading: Reading, directory: Path, **options: str) -> None:
        self.reading = reading
        self.checkpoint = directory / "checkpoint"
        self.options = options
        self.batches: dict[int, Rows] = {}

    def _keep(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = sorted(
            (tuple(row) for row in frame.collect()), key=lambda row: row[2:5]
        )

    def start(
        self, source: str, *, is_available_now: bool = True, **options: str
    ) -> StreamingQuery:
        """Start it, by default with Trigger.AvailableNow."""
        writer = (
            self.reading.spark.readStream.format(source)
            .options(**self.reading.servers, **self.options, **options)
            .load()
            .writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self.checkpoint))
        )
        if is_available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime="100 milliseconds").start()

    def run(self, source: str, **options: str) -> StreamingQuery:
        """Read what there is."""
        query = self.start(source, is_available_now=True, **options)
        query.awaitTermination()
        return query

    def _checkpointed(self) -> list[Mapping[str, Mapping[str, int]]]:
        """What the checkpoint has for each micro-batch."""
        files = (self.checkpoint / "offsets").glob("[0-9]*")
        ordered = sorted(files, key=lambda path: int(path.name))
        texts = [path.read_text(encoding="utf-8") for path in ordered]
        return [json.loads(text.splitlines()[-1]) for text in texts]

    def offsets(self) -> list[Mapping[str, Mapping[str, int]]]:
        """The offsets of each micro-batch, without the ids of topics."""
        return [
            {topic: numbers for topic, numbers in each.items() if numbers}
            for each in self._checkpointed()
        ]

    def has_ids(self) -> list[bool]:
        """Whether each micro-batch has the ids of topics with its offsets."""
        return [any(not n for n in each.values()) for each in self._checkpointed()]

    def rows(self) -> Rows:
        """All rows that were read, as often as they were read."""
        found = [row for batch in self.batches.values() for row in batch]
        return sorted(found, key=lambda row: row[2:5])


def read_by_both(reading: Reading, directory: Path, **options: str) -> Stream:
    """Read by both sources, and compare rows and offsets of all micro-batches."""
    streams = []
    for source in SOURCES:
        stream = Stream(reading, directory / source, **options)
        stream.run(source)
        streams.append(stream)
    assert streams[1].batches == streams[0].batches
    assert streams[1].offsets() == streams[0].offsets()
    return streams[1]
