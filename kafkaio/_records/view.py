"""Reads batches of message format 2: the header at once, the records on demand.

`RecordBatch` inherits from the codec's `BatchHeader`, compiled or pure: that saves an
object and an attribute access per batch.
"""

from __future__ import annotations

from kafkaio._records._impl import BatchHeader, ColumnsBuilder, RecordCursor
from kafkaio._records._layout import BATCH_HEADER_SIZE, NO_END
from kafkaio._records.compression import (
    DEFAULT_LIMIT,
    BytesLike,
    Compression,
    Decompression,
    Decompressor,
)
from kafkaio._records.control import parse_control_type
from kafkaio._records.sections import ReadableBatch, Section
from kafkaio.errors import CorruptRecord

_NONE = Compression.NONE


class RecordBatch(BatchHeader, ReadableBatch):
    """One batch of message format 2, with the attributes of its `BatchHeader`.

    The attributes are read-only; `kafkaio._records._header.BatchHeader` explains them.

    Args:
        data: the whole batch, header included. It is referred to, so it must not change
            before `detach`.
        decompressor: decompresses the records.
        max_decompressed: the most bytes that the records may decompress to.

    Raises:
        CorruptRecord: the batch is too short, or a header field is impossible.
    """

    __slots__ = ("_decompressed", "_decompressor", "_max_decompressed")

    def __init__(
        self,
        data: BytesLike,
        decompressor: Decompressor,
        max_decompressed: int = DEFAULT_LIMIT,
    ) -> None:
        BatchHeader.__init__(self, data)  # super() takes longer than the rest
        self._decompressor = decompressor
        self._max_decompressed = max_decompressed
        # The result of `prepare`, for the next call that reads the records.
        self._decompressed: bytes | Decompression | None = None

    @property
    def raw(self) -> bytes:
        """The bytes of the batch, header included."""
        return bytes(self._data)

    def prepare(self, most: int) -> bool:
        """Decompress the records, or about ``most`` bytes more of them.

        The decompressed bytes are kept for the next call that reads the records.

        Returns:
            Whether they can be read at once: `prepare` need not be called again.

        Raises:
            CorruptRecord: the records cannot be decompressed.
            RecordTooLarge: they decompress to more than the limit.
        """
        if self.compression is _NONE:
            return True
        made = self._decompressed
        if made is None:
            made = self._decompressor.begin(
                self.compression,
                memoryview(self._data)[BATCH_HEADER_SIZE:],
                self._max_decompressed,
                most,
            )
        elif not isinstance(made, bytes):
            try:
                if made.go_on(most):
                    made = made.result()
            except BaseException:
                # A generator that has raised is over: the next call begins anew, and
                # raises the same.
                self._decompressed = None
                raise
        self._decompressed = made
        return isinstance(made, bytes)

    def check_crc(self) -> None:
        """Verify the checksum, which covers everything after it.

        It does not cover the base offset, the length, the leader epoch and the magic
        byte. A wrong length or magic byte shows in other ways; a wrong offset or epoch
        cannot be detected.

        Raises:
            CorruptRecord: the checksum is wrong.
        """
        actual = self.computed_checksum()
        if actual != self.checksum:
            raise CorruptRecord(
                f"the batch at offset {self.base_offset} has the checksum "
                f"{actual:#010x} but says {self.checksum:#010x}"
            )

    def section(self, topic: str, partition: int, start_offset: int = 0) -> Section:
        """Return the records as bytes; every call decompresses them again.

        Raises:
            CorruptRecord: the records cannot be decompressed.
        """
        origin = self.origin(topic, partition, start_offset)
        data, position = self._place()
        return Section(bytes(data), position, self.count, origin)

    def iterate(
        self, topic: str, partition: int, start_offset: int = 0
    ) -> RecordCursor:
        """Check the records and return a cursor; see `ReadableBatch.iterate`."""
        data, position = self._place()
        return self.cursor(data, position, topic, partition, start_offset)

    def add_to(
        self,
        columns: ColumnsBuilder,
        topic: str,
        partition: int,
        start_offset: int = 0,
        end_offset: int = NO_END,
    ) -> bool:
        """Add the records to columns, without a copy; see `ReadableBatch.add_to`."""
        data, position = self._place()
        origin = self.origin(topic, partition, start_offset)
        return columns.add(data, position, self.count, origin, end_offset)

    def _place(self) -> tuple[BytesLike, int]:
        # Returns the bytes that hold the records, and where they begin.
        if self.compression is _NONE:
            return self._data, BATCH_HEADER_SIZE
        # Given away, and not kept: records are read once as a rule, and decompressed
        # they may take many times the memory of the batch.
        made, self._decompressed = self._decompressed, None
        if isinstance(made, bytes):
            return made, 0
        data = self._decompressor.decompress(
            self.compression,
            memoryview(self._data)[BATCH_HEADER_SIZE:],
            self._max_decompressed,
        )
        return data, 0

    def control_type(self) -> int | None:
        """Return the type of a control batch: 0 abort, 1 commit; others are ignored.

        Returns:
            The type; None if compaction has removed the control record.

        Raises:
            CorruptRecord: the control record cannot be decoded.
        """
        records = self.decode("", 0)
        if not records:
            return None
        return parse_control_type(records[0].key)

    def __repr__(self) -> str:
        return (
            f"<RecordBatch {self.base_offset}-{self.last_offset} "
            f"{self.compression.name.lower()} | {self.count} records, "
            f"{self.size_bytes} bytes>"
        )
