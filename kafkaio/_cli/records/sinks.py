"""The outputs of ``kafkaio consume``: text, JSON, files of Arrow and Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, Protocol

from kafkaio._cli.records.decoded import DecodedRecord, ShownRecord, utf_8
from kafkaio._cli.records.record_json import json_of
from kafkaio._cli.records.rendering import Renderer
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._consumer.batch import Batch
from kafkaio.types import Record

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from kafkaio._cli.records.columns import DecodedColumns


class RecordSinkPort(Protocol):
    """Writes records; each call has records of one partition."""

    def write(self, records: Batch | Sequence[ShownRecord]) -> None:
        """Write records. A batch is not used after the call."""

    def close(self) -> None:
        """Write the end of the output."""


class TextSink:
    """Writes each record by a function; implements `RecordSinkPort`."""

    def __init__(self, out: BinaryIO, render: Renderer) -> None:
        self._out = out
        self._render = render

    def write(self, records: Batch | Sequence[ShownRecord]) -> None:
        """Write records, and flush them."""
        # One write for a batch: a system call for each record would cost more than the
        # rendering.
        self._out.write(b"".join(map(self._render, records)))
        self._out.flush()

    def close(self) -> None:
        """Do nothing: text has no end."""


def line_of(write: Callable[[ShownRecord], str]) -> Renderer:
    """Return a function that writes a record as a line."""
    return lambda record: utf_8(write(record)) + b"\n"


class JsonSink:
    """Writes one JSON document piece by piece; implements `RecordSinkPort`.

    Args:
        out: the file.
        errors: the entries of records that were left out, when the document ends.
    """

    def __init__(self, out: BinaryIO, errors: Sequence[Mapping[str, object]]) -> None:
        self._out = out
        self._errors = errors
        # What precedes the next record: the beginning of the document, then commas.
        self._before = b'{"records": [\n'

    def write(self, records: Batch | Sequence[ShownRecord]) -> None:
        """Write records, and flush them."""
        if not records:
            return
        text = ",\n".join(map(json_of, records))
        self._out.write(self._before + utf_8(text))
        self._before = b",\n"
        self._out.flush()

    def close(self) -> None:
        """End the document."""
        is_empty = self._before != b",\n"
        before = self._before if is_empty else b"\n"
        errors = json.dumps(self._errors, ensure_ascii=False).encode()
        self._out.write(before + b'], "errors": ' + errors + b"}\n")
        self._out.flush()


class ArrowSink:
    """Writes a file of Arrow's IPC format, or of Parquet; implements `RecordSinkPort`.

    Args:
        path: the file.
        is_parquet: whether it is Parquet.
        decoded: makes the columns of decoded keys and values; None for bytes.

    Raises:
        CommandFailed: pyarrow is not installed.
    """

    def __init__(
        self,
        path: str,
        *,
        is_parquet: bool,
        decoded: Callable[[], DecodedColumns] | None = None,
    ) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq

            from kafkaio.arrow import schema
        except ImportError:
            needed = "files of Arrow need pyarrow: pip install 'kafkaio[arrow]'"
            raise CommandFailed(needed, Exit.USAGE) from None
        # The column of topics is dictionary-encoded, and each batch has a dictionary of
        # its own; a file allows one. So the file has plain strings.
        fields = schema(headers=True)
        self._plain = fields.set(0, fields.field(0).with_type(pa.string()))
        self._path = path
        self._new_file = pq.ParquetWriter if is_parquet else pa.ipc.new_file
        self._decoded = None if decoded is None else decoded()
        # A file has one type for each column, which the first decoded value decides;
        # until then the records wait here.
        self._waiting: list[DecodedRecord] = []
        self._schema: pa.Schema | None = None
        self._writer: pa.ipc.RecordBatchFileWriter | pq.ParquetWriter | None = None
        if decoded is None:
            self._open(self._plain)

    def _open(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = self._new_file(self._path, schema)

    def write(self, records: Batch | Sequence[ShownRecord]) -> None:
        """Write records as a table."""
        if not records:
            return
        if self._decoded is None or isinstance(records, Batch):
            self._write(self._table(records))
            return
        self._waiting += [each for each in records if isinstance(each, DecodedRecord)]
        table = self._decoded.table(self._waiting)
        if table is not None:
            if self._writer is None:
                place, plain = table.schema.get_field_index("topic"), self._plain
                self._open(table.schema.set(place, plain.field("topic")))
            self._write(table)
            self._waiting = []

    def _write(self, table: pa.Table) -> None:
        assert self._writer is not None
        self._writer.write_table(table.cast(self._schema))

    def _table(self, records: Batch | Sequence[ShownRecord]) -> pa.Table:
        if isinstance(records, Batch):
            return records.to_arrow(headers=True)
        from kafkaio.arrow import records_to_table

        raw = [record for record in records if isinstance(record, Record)]
        return records_to_table(raw, headers=True)

    def close(self) -> None:
        """End the file."""
        if self._writer is None:
            # No value said the type of a column: all of them are null.
            from kafkaio.arrow import records_to_table

            self._open(self._plain)
            if self._waiting:
                raw = [record.raw for record in self._waiting]
                self._write(records_to_table(raw, headers=True))
        assert self._writer is not None
        self._writer.close()
