"""The codecs leak no memory."""

from __future__ import annotations

import gc
import sys
from array import array
from contextlib import suppress
from itertools import pairwise
from types import ModuleType

import pytest

from kafkaio._records._layout import BinaryView, DecodedColumns, HeaderView
from kafkaio.errors import CorruptRecord, UsageError
from tests.unit.records.strategies import field, origin, record, varint
from tests.unit.records.test_codecs import NOW
from tests.unit.records.test_columns import columnar
from tests.unit.records.test_cursor import cursor_class

HEADERS = varint(2) + field(b"n") + field(b"v" * 600) + field(b"\xff") + field(None)
GOOD = b"".join(
    record(key=b"k" * 600, value=b"v" * 600, headers=HEADERS, offset_delta=n)
    for n in range(8)
)
BAD = GOOD[:-1] + b"\7"


def read(codec: ModuleType, data: bytes) -> None:
    args = (data, 0, 8, origin())
    for made in codec.decode_records(*args):
        _ = made.headers, made.topic_partition, codec.converted(made, 1, [made])
    codec.decode_keys(*args)
    reader = cursor_class(codec)(*args, 900)
    next(reader)
    reader.take(2)
    reader.take_values(2)
    reader.stop()


def gather(codec: ModuleType, data: bytes) -> None:
    builder = columnar(codec).ColumnsBuilder(DecodedColumns(headers=True))
    builder.add(GOOD, 0, 8, origin())
    builder.add(data, 0, 8, origin())
    columns = builder.finish()
    writer = codec.RecordWriter(10**6)
    view = BinaryView(columns.keys.validity, columns.keys.offsets, columns.keys.data)
    rows = columnar(codec).Rows
    headers = HeaderView(array("q", range(1, 17)), view, view)
    assert rows(16, columns.timestamps, view, None, headers).append_to(writer) == 16
    assert rows(16, NOW, view, view, headers).check() > 0
    with pytest.raises(UsageError):
        rows(17, NOW, view, None)


def append(codec: ModuleType, data: bytes) -> None:
    writer = codec.RecordWriter(10**6)
    writer.try_append(NOW, data, data, [("name", data), ("other", None)])
    writer.append_values(NOW, [data, "text"])


@pytest.mark.slow
@pytest.mark.parametrize("data", [GOOD, BAD], ids=["good", "corrupt"])
@pytest.mark.parametrize("work", [read, gather, append])
def test_leaves_nothing_behind(codec: ModuleType, work, data: bytes) -> None:
    def several(times: int) -> int:
        for _ in range(times):
            with suppress(CorruptRecord, UsageError, TypeError):
                work(codec, data)
        gc.collect()
        return sys.getallocatedblocks()

    several(5)
    counts = [several(40) for _ in range(5)]
    # What leaks grows each time; what the interpreter itself keeps does not.
    assert min(after - before for before, after in pairwise(counts)) < 30
