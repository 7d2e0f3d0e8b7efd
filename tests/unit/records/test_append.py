"""Receipts, deliveries and open batches: each law on the pure and the compiled twin."""

from __future__ import annotations

import asyncio
import copy
import gc
import importlib.util
import inspect
import pickle
import threading
from array import array
from pydoc import plain, render_doc
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kafkaio._records import _append, _columns, _murmur2, _pure, _receipts
from kafkaio._records._layout import Destinations, Origin
from kafkaio.errors import UsageError
from kafkaio.types import NewRecord, RecordMetadata, TimestampType
from tests.unit.records.test_columns import view_of

COMPILED = "kafkaio._records._speedups"
NAMES = ("pure", "compiled")


def twin_named(name: str) -> ModuleType | SimpleNamespace:
    if name == "pure":
        return SimpleNamespace(
            Delivery=_receipts.Delivery,
            open_batch_first=_append.open_batch_first,
            OpenBatches=_append.OpenBatches,
            RowReceipts=_append.RowReceipts,
            Receipt=_receipts.Receipt,
            metadata_run=_receipts.metadata_run,
            RecordWriter=_pure.RecordWriter,
            Rows=_columns.Rows,
        )
    if importlib.util.find_spec(COMPILED) is None:
        pytest.skip("the compiled codec was not built")
    return importlib.import_module(COMPILED)


@pytest.fixture(params=NAMES)
def twin(request: pytest.FixtureRequest):
    return twin_named(request.param)


def records_of(writer) -> list:
    origin = Origin(
        topic="t",
        partition=0,
        start_offset=0,
        base_offset=0,
        last_offset_delta=writer.count - 1,
        base_timestamp=writer.first_timestamp,
        log_append_time=None,
        timestamp_type=TimestampType.CREATE,
        leader_epoch=-1,
    )
    return _pure.decode_records(writer.section(), 0, writer.count, origin)


class Bench:
    """Open batches of one topic with a clock that stands still."""

    def __init__(self, twin, *, largest: int = 10_000, **options: bool) -> None:
        self.twin = twin
        self.nanoseconds = 1_700_000_000_123_999_999
        self.open_batches = twin.OpenBatches(
            lambda: self.nanoseconds, largest, **options
        )
        self.batches: dict[int, tuple] = {}

    def open(
        self,
        partition: int,
        *,
        partitions: int = 3,
        size: int = 1_000,
        limit: int = 2**31 - 1,
    ) -> None:
        writer = self.twin.RecordWriter(size)
        writer.try_append(5, None, b"first", ())
        receipt = self.twin.Receipt("t", partition, count=1)
        self.batches[partition] = writer, receipt
        self.open_batches.open("t", partition, partitions, (writer, receipt), limit)

    def take(self, value=b"v", key=None, headers=(), timestamp=7, partition=None):
        return self.open_batches.take("t", value, key, headers, timestamp, partition)

    def count(self, partition: int) -> int:
        return self.batches[partition][1].count


# ---- open batches --------------------------------------------------------------------


def test_a_record_without_a_key_goes_to_the_sticky_partition(twin) -> None:
    bench = Bench(twin)
    bench.open(1)
    assert bench.take() is None  # nothing is sticky yet
    bench.open_batches.stick("t", 1, 500)
    before = bench.batches[1][0].size_bytes
    delivery = bench.take(timestamp=None)
    receipt, index, timestamp = delivery.place()
    assert receipt is bench.batches[1][1]
    assert (index, timestamp) == (1, 1_700_000_000_123)
    assert bench.count(1) == 2
    size = bench.batches[1][0].size_bytes - before
    assert bench.open_batches.taken == size > 0
    assert bench.open_batches.unstick("t") == size
    assert bench.open_batches.unstick("t") == 0
    assert bench.take() is None


def test_a_partition_is_sticky_until_it_had_its_bytes(twin) -> None:
    bench = Bench(twin)
    bench.open(0)
    bench.open_batches.stick("t", 0, 10)
    assert bench.take() is not None  # 9 bytes: one is left
    assert bench.take() is not None
    assert bench.take() is None
    assert bench.take(partition=0) is not None


def test_keys_and_partitions_find_their_open_batches(twin) -> None:
    bench = Bench(twin)
    for partition in range(3):
        bench.open(partition)
    bench.open_batches.stick("t", 0, 1_000)
    for key in (b"", b"a", b"kafka", bytes(range(256))):
        delivery = bench.take(b"", key=key)
        where = delivery.place()[0].partition
        assert where == _murmur2.key_partition(key, 3)
    assert bench.take(key=b"a", partition=2).place()[0].partition == 2
    assert bench.open_batches.unstick("t") == 0


def test_keys_that_are_ignored_go_to_the_sticky_partition(twin) -> None:
    bench = Bench(twin, ignore_keys=True)
    for partition in range(3):
        bench.open(partition)
    bench.open_batches.stick("t", 2, 1_000)
    found = {bench.take(key=bytes([n])).place()[0].partition for n in range(9)}
    assert found == {2}
    assert bench.open_batches.unstick("t") > 0


@pytest.mark.parametrize(
    "odd",
    [
        {"value": "text"},
        {"value": bytearray(b"v")},
        {"value": b"v" * 9_950},  # with its batch header, larger than the largest
        {"key": "k"},
        {"key": bytearray(b"k")},
        {"headers": "ab"},
        {"headers": ["ab"]},
        {"headers": MappingProxyType({"a": b"b"})},
        {"headers": [("a", memoryview(b"b"))]},
        {"headers": (("a", b"b", 1),)},
        {"headers": [["a"]]},
        {"headers": [("a", b"b"), ("a", b"b", 1)]},
        {"headers": ((b"a", b"b"),)},
        {"headers": (("a", "b"),)},
        {"headers": {"a": "b"}},
        {"headers": {b"a": b"b"}},
        {"headers": (("\ud800", b"b"),)},
        {"headers": [("a" * 9_950, b"")]},
        {"headers": [("a", b"b" * 9_950)]},
        {"timestamp": -1},
        {"timestamp": 2**63 - 1},
        {"timestamp": 2**70},
        {"timestamp": True},
        {"timestamp": 1.0},
        {"partition": 3},
        {"partition": -1},
        {"partition": 2**70},
        {"partition": True},
        {"partition": 1},  # which has no open batch
    ],
)
def test_what_is_odd_is_left_to_the_accumulator(twin, odd: dict) -> None:
    bench = Bench(twin)
    bench.open(0, size=2**30)
    bench.open_batches.stick("t", 0, 2**30)
    assert bench.take(**odd) is None
    assert bench.count(0) == 1
    assert bench.open_batches.taken == 0
    headers = (("a", None), ("é", b"x"))
    assert bench.take(None, headers=headers) is not None
    records = records_of(bench.batches[0][0])
    assert records[1].headers == headers


@pytest.mark.parametrize("pairs", [tuple, list])
@pytest.mark.parametrize("shape", [tuple, list, dict])
def test_headers_of_any_shape_go_through_an_open_batch(twin, shape, pairs) -> None:
    headers = (("trace", b"1"), ("é" * 70, b"v" * 200), ("none", None), ("", b""))
    bench = Bench(twin)
    bench.open(0)
    given = shape(map(pairs, headers))
    assert bench.take(b"v", b"key", given, partition=0) is not None
    assert records_of(bench.batches[0][0])[1].headers == headers


def test_headers_that_change_afterwards_were_written_as_they_were(twin) -> None:
    bench = Bench(twin)
    bench.open(0)
    value, pair, table = bytearray(b"one"), ["a", b"1"], {"a": b"1"}
    given = [("a", value), pair]
    for headers in (given, table):
        assert bench.take(headers=headers, partition=0) is not None
    value[:] = b"more than before"
    pair[:] = ["b", b"2"]
    given.clear()
    table["b"] = b"2"
    _, first, second = records_of(bench.batches[0][0])
    assert first.headers == (("a", b"one"), ("a", b"1"))
    assert second.headers == (("a", b"1"),)


def test_a_clock_that_changes_the_headers_is_no_danger(twin) -> None:
    given = [("a", b"1")] * 9

    def clock() -> int:
        given.clear()
        return 5_000_000

    batches = twin.OpenBatches(clock, 10_000)
    writer = twin.RecordWriter(1_000)
    writer.try_append(5, None, b"first", ())
    batches.open("t", 0, 1, (writer, twin.Receipt("t", 0, count=1)), 1_000)
    assert batches.take("t", b"v", None, given, None, 0) is not None
    assert len(records_of(writer)) == 2


def test_other_topics_are_left_to_the_accumulator(twin) -> None:
    class Text(str):
        __slots__ = ()

    bench = Bench(twin)
    bench.open(0)
    bench.open_batches.stick("t", 0, 500)
    for topic in ("u", Text("t"), None, 5, []):
        assert bench.open_batches.take(topic, b"v", None, (), None, None) is None
    assert bench.open_batches.take_values("u", [b"v"], 0) is None
    bench.open_batches.close("u", 0)
    bench.open_batches.stick("u", 0, 5)
    assert bench.open_batches.unstick("u") == 0


def test_a_full_batch_takes_no_more(twin) -> None:
    bench = Bench(twin)
    bench.open(0, size=100)
    bench.open_batches.stick("t", 0, 10_000)
    assert bench.take(b"v" * 50) is None
    assert bench.take(b"v" * 5) is not None
    bench.batches[0][0].close()
    assert bench.take(b"") is None


def test_an_open_batch_takes_nothing_that_could_pass_its_limit(twin) -> None:
    bench = Bench(twin)
    bench.open(0, limit=300)
    bench.open_batches.stick("t", 0, 10_000)
    values = [b"v" * 30] * 9
    rows, places = rows_of(twin, [(None, b"v" * 30)] * 9), twin.RowReceipts(9)
    taken = bench.open_batches.take_rows("t", None, rows, 0, places, 9_999)
    writer = bench.batches[0][0]
    assert 0 < taken < 9
    assert writer.size_bytes <= 300
    assert bench.open_batches.take_values("t", values, 0) is None
    assert bench.take(b"v" * 30) is None
    assert writer.count == 1 + taken
    bench.open(0, limit=300)
    run = bench.open_batches.take_values("t", values, 0)
    assert 0 < run[2] <= taken
    assert bench.batches[0][0].size_bytes <= 300


class Base:
    """A producer as `open_batch_first` knows it."""

    def __init__(self, direct: Any) -> None:
        self._direct = direct


def test_a_method_runs_only_for_what_no_open_batch_takes(twin) -> None:
    class Sender(Base):
        @twin.open_batch_first
        def put(
            self,
            topic: str,
            value: object,
            *,
            key: object = None,
            headers: object = (),
            timestamp: int | None = None,
            partition: int | None = None,
        ) -> tuple[object, ...]:
            """Take a record in."""
            return topic, value, key, headers, timestamp, partition

    bench = Bench(twin)
    sender = Sender(bench.open_batches)
    put = sender.put
    assert put("t", "odd", key=1, headers=[1], timestamp=2) == (
        *("t", "odd", 1, [1], 2, None),
    )
    assert put("t", b"v", partition=3) == ("t", b"v", None, (), None, 3)
    bench.open(0)
    delivery = put("t", b"v", partition=0, timestamp=9)
    assert delivery.place() == (bench.batches[0][1], 1, 9)
    # None: each record needs the method.
    assert Sender(None).put("t", b"v", partition=0) == ("t", b"v", None, (), None, 0)
    with pytest.raises(TypeError):
        put("t", b"v", b"k")


def test_a_method_with_open_batches_is_a_method_like_any_other(twin) -> None:
    class Sender(Base):
        @twin.open_batch_first
        def put(self, topic: str, value: object, *, key: object = None) -> str:
            """Take a record in."""
            return "method"

    class Sub(Sender):
        def put(self, topic: str, value: object, **options: object) -> Any:
            return "sub", super().put(topic, value, **options)

    class Plain:
        def put(self, topic: str, value: object, *, key: object = None) -> str:
            raise AssertionError

    signature = inspect.signature(Plain.put)
    assert inspect.signature(Sender.put) == signature
    assert list(inspect.signature(Sender(None).put).parameters) == [
        *("topic", "value", "key")
    ]
    assert Sender.put.__name__ == "put"
    assert Sender.put.__qualname__.endswith("Sender.put")
    assert Sender.put.__module__ == __name__
    assert Sender.put.__doc__ == Sender(None).put.__doc__ == "Take a record in."
    assert "put(self, topic: 'str', value" in plain(render_doc(Sender))
    sender = Sender(None)
    assert sender.put.__self__ is sender
    assert inspect.ismethod(sender.put)
    bench = Bench(twin)
    bench.open(0)
    made = Sub(bench.open_batches).put("t", b"v", partition=0, timestamp=9)
    assert made[0] == "sub"
    assert made[1].place() == (bench.batches[0][1], 1, 9)


def test_open_batches_of_a_thread_take_no_record_of_another(twin) -> None:
    bench = Bench(twin)
    bench.open(0)
    bench.open_batches.bind(threading.get_ident, lambda: None)
    taken = []
    thread = threading.Thread(target=lambda: taken.append(bench.take(partition=0)))
    thread.start()
    thread.join()
    assert taken == [None]
    assert bench.batches[0][0].count == 1
    assert bench.take(partition=0) is not None


def test_open_batches_ask_now_and_then_whether_records_may_come(twin) -> None:
    bench = Bench(twin, largest=100)
    bench.open(0, size=10_000)
    asked = []

    def check() -> None:
        asked.append(bench.batches[0][0].count)
        if len(asked) == 2:
            raise UsageError("from the wrong loop")

    bench.open_batches.bind(threading.get_ident, check)
    for _ in range(511):
        assert bench.take(partition=0) is not None
    with pytest.raises(UsageError, match="wrong loop"):
        bench.take(partition=0)
    assert asked == [256, 512]
    assert bench.batches[0][0].count == 512
    assert bench.take(partition=0) is not None
    assert asked == [256, 512, 512]


def test_an_open_batch_is_closed(twin) -> None:
    bench = Bench(twin)
    bench.open(0)
    bench.open(1)
    bench.open_batches.close("t", 0)
    bench.open_batches.close("t", 7)  # there is no such partition: nothing happens
    assert bench.take(partition=0) is None
    assert bench.take(partition=1) is not None
    bench.open_batches.clear()
    assert bench.take(partition=1) is None


def test_values_are_taken_up_to_the_end_of_the_batch(twin) -> None:
    bench = Bench(twin)
    values = [b"%04d" % n for n in range(200)]
    assert bench.open_batches.take_values("t", values, 0) is None  # no topic yet
    bench.open(0, size=500)
    assert (
        bench.open_batches.take_values("t", values, 0) is None
    )  # nothing is sticky yet
    bench.open_batches.stick("t", 1, 10_000)
    assert bench.open_batches.take_values("t", values, 0) is None  # no open batch there
    bench.open_batches.stick("t", 0, 10_000)
    receipt, first, count, timestamp = bench.open_batches.take_values("t", values, 10)
    writer, kept = bench.batches[0]
    assert receipt is kept
    assert (first, timestamp) == (1, 1_700_000_000_123)
    assert receipt.count == writer.count == 1 + count
    assert bench.open_batches.take_values("t", values, 10 + count) is None
    taken = records_of(writer)
    assert [r.value for r in taken[1:]] == values[10 : 10 + count]
    assert bench.open_batches.unstick("t") == bench.open_batches.taken


def test_values_are_taken_up_to_one_that_is_odd(twin) -> None:
    bench = Bench(twin)
    bench.open(0)
    bench.open_batches.stick("t", 0, 10_000)
    values = [b"a", None, "odd", b"b"]
    assert bench.open_batches.take_values("t", values, 0)[2] == 2
    assert bench.open_batches.take_values("t", values, 2) is None
    assert bench.open_batches.take_values("t", values, 3)[2] == 1
    assert bench.open_batches.take_values("t", values, 4) is None
    assert bench.open_batches.are_plain([b"a", None])
    assert not bench.open_batches.are_plain(values)
    assert not bench.open_batches.are_plain([b"v" * 10_000])


def test_records_of_any_shape_are_taken(twin) -> None:
    bench = Bench(twin)
    for partition in range(3):
        bench.open(partition)
    bench.open_batches.stick("t", 1, 10_000)
    records = [
        b"value",
        None,
        NewRecord(b"with key", key=b"a", headers=[("h", b"1")]),
        NewRecord(None, timestamp=5, partition=2),
        NewRecord(b"dict", headers={"h": None}),
        (0, (9, None, b"planned", (("p", b"2"),))),
        (None, (9, b"kafka", None, ())),
    ]
    places = twin.RowReceipts(len(records), has_times=True)
    assert bench.open_batches.take_records("t", records, 0, places, 10_000) == 7
    by_key = [_murmur2.key_partition(key, 3) for key in (b"a", b"kafka")]
    slots = memoryview(places.slots).cast("i")
    went = [places.receipts[slot].partition for slot in slots]
    assert went == [1, 1, by_key[0], 2, 1, 0, by_key[1]]
    now = 1_700_000_000_123
    assert list(memoryview(places.times).cast("q")) == [now, now, now, 5, now, 9, 9]
    indices = memoryview(places.indices).cast("i")
    read = {number: records_of(bench.batches[number][0]) for number in range(3)}
    found = [read[where][index] for where, index in zip(went, indices, strict=True)]
    assert [each.value for each in found] == [
        b"value",
        None,
        b"with key",
        None,
        b"dict",
        b"planned",
        None,
    ]
    assert found[2].key == b"a"
    assert [each.headers for each in found[2:6]] == [
        (("h", b"1"),),
        (),
        (("h", None),),
        (("p", b"2"),),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        "text",
        7,
        (None, (1, b"k", b"v", ())),
        NewRecord("text"),
        NewRecord(b"v", key="text"),
        NewRecord(b"v", headers=[("h", 7)]),
        NewRecord(b"v", headers=[7]),
        NewRecord(b"v", timestamp=-1),
        NewRecord(b"v", timestamp=1.5),
        NewRecord(b"v", timestamp=2**63),
        NewRecord(b"v", partition=-1),
        NewRecord(b"v", partition=True),
        NewRecord(b"v", partition=2**31),
        NewRecord(b"v" * 10_000),
    ],
)
def test_an_odd_record_is_left_to_the_accumulator(twin, odd: object) -> None:
    bench = Bench(twin)
    bench.open(0)
    bench.open_batches.stick("t", 0, 10_000)
    assert bench.open_batches.are_records([b"a", NewRecord(b"b", key=b"k")])
    assert not bench.open_batches.are_records([b"a", odd])
    if type(odd) is not tuple:
        places = twin.RowReceipts(3, has_times=True)
        taken = bench.open_batches.take_records("t", [b"a", odd, b"b"], 0, places, 999)
        assert taken == places.count == 1


def test_a_record_whose_init_did_not_run_is_not_read() -> None:
    bench = Bench(twin_named("compiled"))
    assert not bench.open_batches.are_records([object.__new__(NewRecord)])


def test_records_without_room_for_their_places_are_refused(twin) -> None:
    bench = Bench(twin)
    bench.open(0)
    bench.open_batches.stick("t", 0, 10_000)
    take = bench.open_batches.take_records
    for places, start in (
        (twin.RowReceipts(1, has_times=True), 0),
        (twin.RowReceipts(2), 0),
        (twin.RowReceipts(2, has_times=True), -1),
    ):
        with pytest.raises(UsageError, match="no such records"):
            take("t", [b"a", b"b"], start, places, 999)
    assert bench.count(0) == 1
    places = twin.RowReceipts(2, has_times=True)
    assert take("t", [b"a", b"b"], 1, places, 999) == 1
    assert take("t", [b"a", b"b"], 2, places, 999) == 0
    assert take("t", [b"a", b"b"], 1, places, bench.open_batches.taken) == 0


def rows_of(twin, pairs: list, destinations: Destinations | None = None):
    layout = {"width": 4, "pad": 0, "has_validity": True}
    keys = view_of([key for key, _ in pairs], **layout)
    values = view_of([value for _, value in pairs], **layout)
    return twin.Rows(len(pairs), 7, keys, values, None, destinations)


def where(places) -> list[tuple[int, int]]:
    slots = memoryview(places.slots).cast("i")
    indices = memoryview(places.indices).cast("i")
    return [
        (places.receipts[slots[row]].partition, indices[row])
        for row in range(places.count)
    ]


def test_rows_go_to_the_open_batches_of_their_keys(twin) -> None:
    bench = Bench(twin)
    pairs = [(b"%d" % (n % 7), b"v%d" % n) for n in range(20)]
    rows, places = rows_of(twin, pairs), twin.RowReceipts(20)
    take = bench.open_batches.take_rows
    assert take("t", None, rows, 0, places, 9_999) == 0  # no topic yet
    for partition in range(3):
        bench.open(partition)
    assert take("t", 3, rows, 0, places, 9_999) == 0  # no such partition
    assert take("t", 2**70, rows, 0, places, 9_999) == 0
    assert take("t", None, rows, 0, places, 30) > 0  # as many as the loop's turn has
    assert 30 <= bench.open_batches.taken < 60
    done = places.count
    assert take("t", None, rows, done, places, 9_999) == 20 - done
    found = where(places)
    for (partition, index), (key, value) in zip(found, pairs, strict=True):
        assert partition == _murmur2.key_partition(key, 3)
        made = records_of(bench.batches[partition][0])[index]
        assert (made.key, made.value, made.timestamp) == (key, value, 7)
    for partition in range(3):
        count = 1 + [each[0] for each in found].count(partition)
        assert bench.count(partition) == bench.batches[partition][0].count == count
    with pytest.raises(UsageError, match="no such rows from 0"):
        take("t", None, rows, 0, places, 9_999)
    with pytest.raises(UsageError, match="no such rows from 21"):
        take("t", None, rows, 21, twin.RowReceipts(99), 9_999)


def test_rows_without_keys_go_to_the_sticky_partition(twin) -> None:
    bench = Bench(twin)
    bench.open(1)
    rows, places = rows_of(twin, [(None, b"v")] * 20), twin.RowReceipts(20)
    assert bench.open_batches.take_rows("t", None, rows, 0, places, 9_999) == 0
    bench.open_batches.stick("t", 1, 50)
    taken = bench.open_batches.take_rows("t", None, rows, 0, places, 9_999)
    assert 0 < taken < 20
    assert where(places) == [(1, 1 + row) for row in range(taken)]
    assert bench.open_batches.unstick("t") == bench.open_batches.taken >= 50
    bench.open(0, size=100)
    left = bench.open_batches.take_rows("t", 0, rows, taken, places, 9_999)
    assert 0 < left < 20 - taken  # then the batch is full
    assert where(places)[taken:] == [(0, 1 + row) for row in range(left)]


def test_rows_are_taken_up_to_an_end(twin) -> None:
    bench = Bench(twin)
    bench.open(0)
    rows, places = rows_of(twin, [(None, b"v")] * 20), twin.RowReceipts(20)
    take = bench.open_batches.take_rows
    assert take("t", 0, rows, 0, places, 9_999, 0) == 0
    assert take("t", 0, rows, 0, places, 9_999, 7) == 7
    assert take("t", 0, rows, 7, places, 9_999) == 13
    assert where(places) == [(0, 1 + row) for row in range(20)]
    with pytest.raises(UsageError, match="no such rows from 3"):
        take("t", 0, rows, 3, twin.RowReceipts(20), 9_999, 2)
    with pytest.raises(UsageError, match="no such rows from 3"):
        take("t", 0, rows, 3, twin.RowReceipts(20), 9_999, 21)
    # There need not be a place for rows that are not taken.
    assert take("t", 0, rows, 0, twin.RowReceipts(2), 9_999, 2) == 2


def test_rows_go_where_they_say(twin) -> None:
    bench = Bench(twin)
    for partition in range(3):
        bench.open(partition)
    bench.open_batches.stick("t", 2, 10_000)
    pairs = [(b"%d" % n if n % 2 else None, b"v%d" % n) for n in range(12)]
    numbers = [n % 4 - 1 for n in range(12)]  # -1 for none
    own = Destinations(partitions=array("i", numbers))
    rows, places = rows_of(twin, pairs, own), twin.RowReceipts(12)
    assert bench.open_batches.take_rows("t", None, rows, 0, places, 9_999) == 12
    for (partition, _), (key, _), number in zip(
        where(places), pairs, numbers, strict=True
    ):
        by_key = 2 if key is None else _murmur2.key_partition(key, 3)
        assert partition == (number if number >= 0 else by_key)
    places = twin.RowReceipts(12)
    assert bench.open_batches.take_rows("t", 1, rows, 0, places, 9_999) == 12
    assert [each[0] for each in where(places)] == [1 if n < 0 else n for n in numbers]
    # The call goes on up to a row whose topic or partition has no open batch.
    own = Destinations(("t", "u"), array("i", [0, 0, 1]), array("i", [1, 0, 0]))
    rows, places = rows_of(twin, pairs[:3], own), twin.RowReceipts(3)
    assert bench.open_batches.take_rows(None, None, rows, 0, places, 9_999) == 2
    assert bench.open_batches.take_rows("t", None, rows, 2, places, 9_999) == 0
    own = Destinations(partitions=array("i", [0, 3]))
    rows = rows_of(twin, pairs[:2], own)
    assert (
        bench.open_batches.take_rows("t", None, rows, 0, twin.RowReceipts(2), 999) == 1
    )
    assert (
        bench.open_batches.take_rows(None, None, rows, 0, twin.RowReceipts(2), 999) == 0
    )


def test_several_tables_share_an_open_batch(twin) -> None:
    bench = Bench(twin)
    bench.open(0)
    rows, places = (
        rows_of(twin, [(None, b"v")]),
        [twin.RowReceipts(2), twin.RowReceipts(2)],
    )
    for each in (*places, *places):
        assert bench.open_batches.take_rows("t", 0, rows, 0, each, 9_999) == 1
    assert [where(each) for each in places] == [[(0, 1), (0, 3)], [(0, 2), (0, 4)]]
    with pytest.raises(UsageError, match="only 2 rows"):
        places[0].add(bench.batches[0][1], 5)
    assert len(places[0].receipts) == 1
    with pytest.raises(UsageError, match="-1 rows"):
        twin.RowReceipts(-1)


fields = st.none() | st.binary(max_size=40)
names = st.text(max_size=9) | st.sampled_from(["h", "\ud800", "é" * 70])
header_values = st.none() | st.binary(max_size=9) | st.just(bytearray(b"v")) | names
pairs = st.tuples(names, header_values)
headers = st.one_of(
    st.just(()),
    st.none(),
    st.lists(pairs | pairs.map(list), max_size=4),
    st.lists(pairs | pairs.map(list), max_size=4).map(tuple),
    st.dictionaries(names, header_values, max_size=4),
)
#: The number of the topic of a row, and its partition.
owned = st.tuples(st.sampled_from([0, 0, 0, 1]), st.sampled_from([-1, -1, 0, 1, 2, 3]))
takes = st.tuples(
    st.just("take"),
    fields,
    fields,
    headers,
    st.none() | st.integers(-2, 2**40),
    st.none() | st.integers(-1, 3),
)
new_records = st.builds(
    NewRecord,
    fields,
    key=fields,
    headers=headers,
    timestamp=st.none() | st.integers(-2, 2**40),
    partition=st.none() | st.integers(-1, 3),
)
steps = st.one_of(
    takes,
    takes,
    takes,
    st.tuples(st.just("values"), st.lists(fields, max_size=30)),
    st.tuples(
        st.just("records"),
        st.lists(fields | new_records, max_size=30),
        st.integers(0, 900),
    ),
    st.tuples(
        st.just("rows"),
        st.lists(st.tuples(fields, fields, owned), max_size=30),
        st.none() | st.integers(0, 3),
        st.integers(0, 900),
        st.booleans(),
        st.integers(-1, 30),
    ),
    st.tuples(st.just("open"), st.integers(0, 2), st.sampled_from([180, 2**31 - 1])),
    st.tuples(st.just("stick"), st.integers(0, 2), st.integers(0, 300)),
    st.tuples(st.just("withdraw"), st.integers(0, 2)),
    st.tuples(st.just("unstick")),
    st.tuples(st.just("clear")),
)


def told(bench: Bench, step: tuple) -> object:
    what, *rest = step
    if what == "take":
        delivery = bench.take(*rest)
        return delivery and (delivery.place()[0].partition, delivery.place()[1:])
    if what == "values":
        run = bench.open_batches.take_values("t", rest[0], 0)
        return run and (run[0].partition, run[1:])
    if what == "records":
        records, most = rest
        places = bench.twin.RowReceipts(len(records), has_times=True)
        taken = bench.open_batches.take_records("t", records, 0, places, most)
        are_fine = bench.open_batches.are_records(records)
        return taken, where(places), bytes(places.times), are_fine
    if what == "rows":
        rows, partition, most, has_topics, end = rest
        end = min(end, len(rows))
        own = Destinations(
            ("t", "u"),
            array("i", [row[2][0] for row in rows]) if has_topics else None,
            array("i", [row[2][1] for row in rows]),
        )
        places = bench.twin.RowReceipts(len(rows))
        rows = rows_of(bench.twin, [row[:2] for row in rows], own)
        topic = None if has_topics else "t"
        take = bench.open_batches.take_rows
        return take(topic, partition, rows, 0, places, most, end), where(places)
    if what == "open":
        return bench.open(rest[0], size=200, limit=rest[1])
    if what == "stick":
        return bench.open_batches.stick("t", *rest)
    if what == "withdraw":
        return bench.open_batches.close("t", *rest)
    if what == "unstick":
        return bench.open_batches.unstick("t")
    return bench.open_batches.clear()


@given(script=st.lists(steps, max_size=40))
def test_the_twins_do_the_same(script: list[tuple]) -> None:
    pure, compiled = (Bench(twin_named(name)) for name in NAMES)
    for step in script:
        assert told(pure, step) == told(compiled, step)
        assert pure.open_batches.taken == compiled.open_batches.taken
    for partition, (writer, receipt) in pure.batches.items():
        other, its_receipt = compiled.batches[partition]
        assert writer.section() == other.section()
        assert receipt.count == its_receipt.count == writer.count


# ---- receipts and deliveries ---------------------------------------------------------


def test_a_delivery_on_its_way(twin) -> None:
    delivery = twin.Delivery(twin.Receipt("t", -1, count=1), 0, 9)
    assert not delivery.is_done
    assert repr(delivery) == "<Delivery t on its way>"
    for ask in (delivery.result, delivery.exception):
        with pytest.raises(UsageError, match="on its way"):
            ask()


def test_an_acknowledged_delivery(twin) -> None:
    receipt = twin.Receipt("t", 3, count=5)
    delivery = twin.Delivery(receipt, 4, 9)
    receipt.acknowledge(100, -1)
    assert delivery.is_done
    assert delivery.result() == RecordMetadata("t", 3, 104, 9)
    assert delivery.exception() is None
    assert repr(delivery) == "<Delivery t-3 done, offset 104>"
    assert asyncio.run(awaited(delivery)) == RecordMetadata("t", 3, 104, 9)


@pytest.mark.parametrize(("time", "expected"), [(-1, 9), (0, 0), (77, 77)])
def test_the_brokers_time_counts_where_it_has_one(twin, time: int, expected) -> None:
    receipt = twin.Receipt("t", 0, count=1)
    receipt.acknowledge(-1, time)
    assert twin.Delivery(receipt, 0, 9).result() == RecordMetadata("t", 0, -1, expected)
    assert receipt.written(1, 9) == (-1, expected)
    unknown = [RecordMetadata("t", 0, -1, expected)] * 2
    assert twin.metadata_run("t", 0, -1, 2, expected) == unknown


def test_metadata_is_like_any_other(twin) -> None:
    receipt = twin.Receipt("t", 2, count=3)
    receipt.acknowledge(10, -1)
    assert receipt.written(1, 9) == (11, 9)
    made = twin.metadata_run("t", 2, 11, 2, 9)
    assert made == [RecordMetadata("t", 2, 11, 9), RecordMetadata("t", 2, 12, 9)]
    assert [type(each) for each in made] == [RecordMetadata] * 2
    assert hash(made[0]) == hash(RecordMetadata("t", 2, 11, 9))
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
    assert repr(made[0]) == repr(RecordMetadata("t", 2, 11, 9))
    with pytest.raises(AttributeError):
        made[0].offset = 5
    assert twin.metadata_run("t", 2, 11, 0, 9) == []
    gc.collect()
    assert made[1].topic == "t"


async def awaited(delivery) -> RecordMetadata:
    return await delivery


def test_errors_are_raised_as_twins(twin) -> None:
    receipt = twin.Receipt("t", 0, count=2)
    delivery = twin.Delivery(receipt, 1, 9)
    error = UsageError("no")
    error.__cause__ = ValueError("because")
    receipt.fail(error)
    assert delivery.exception() is error
    for ask in (delivery.result, lambda: asyncio.run(awaited(delivery))):
        with pytest.raises(UsageError, match="no") as caught:
            ask()
        assert caught.value is not error
        assert caught.value.__cause__ is error.__cause__
    assert error.__traceback__ is None
    assert repr(delivery) == f"<Delivery t-0 failed: {error!r}>"


def test_an_error_without_a_twin_is_raised_itself(twin) -> None:
    class Odd(Exception):
        def __new__(cls, *args: object) -> Odd:
            if args:
                raise ValueError("made in one way only")
            return super().__new__(cls)

    receipt = twin.Receipt("t", 0, count=1)
    error = Odd()
    error.args = ("now it has some",)
    receipt.fail(error)
    with pytest.raises(Odd) as caught:
        twin.Delivery(receipt, 0, 9).result()
    assert caught.value is error


def test_a_delivery_moves_with_its_record(twin) -> None:
    first, second, third = (twin.Receipt("t", 0, count=2) for _ in range(3))
    delivery = twin.Delivery(first, 1, 9)
    first.move([(second, 0), (second, 1)])
    second.move([(second, 0), (third, 0)])
    assert not delivery.is_done
    assert delivery.receipt() is third
    third.acknowledge(50, -1)
    assert delivery.result().offset == 50


def test_a_delivery_that_waits_asks_its_receipt_how(twin) -> None:
    asked = []

    def wait(delivery):
        asked.append(delivery)
        yield
        return "woken"

    receipt = twin.Receipt("t", 0, count=1, wait=wait)
    delivery = twin.Delivery(receipt, 0, 9)
    steps = delivery.__await__()
    assert next(steps) is None
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == "woken"
    assert asked == [delivery]


def test_waiters_are_told_once_in_order(twin) -> None:
    called = []
    receipt = twin.Receipt("t", 0)

    def waiter(number: int, *, is_done: bool = False):
        told = type("Waiter", (), {})()
        told.done, told.set_result = lambda: is_done, lambda _: called.append(number)
        return told

    forgotten = waiter(3)
    receipt.forget(forgotten)
    receipt.when_settled(waiter(1))
    receipt.when_settled(forgotten)
    receipt.when_settled(waiter(4, is_done=True))
    receipt.when_settled(waiter(2))
    receipt.forget(forgotten)
    receipt.acknowledge(0, -1)
    receipt.forget(forgotten)
    assert called == [1, 2]
    with pytest.raises(AssertionError):
        receipt.when_settled(forgotten)
    with pytest.raises(AssertionError):
        receipt.fail(ValueError())


def test_errors_that_nobody_asked_for_are_told(twin) -> None:
    lost = []
    receipt = twin.Receipt(
        "t", 4, count=3, on_lost=lambda r, n: lost.append((r.topic, r.partition, n))
    )
    deliveries = [twin.Delivery(receipt, index, 9) for index in range(3)]
    receipt.fail(ValueError("no"))
    deliveries[1].exception()
    del receipt, deliveries
    gc.collect()
    assert lost == [("t", 4, 2)]


def test_nothing_is_told_of_what_went_well_or_was_asked_for(twin) -> None:
    lost = []
    for error in (None, ValueError("no")):
        receipt = twin.Receipt("t", 4, count=1, on_lost=lost.append)
        if error is None:
            receipt.acknowledge(0, -1)
        else:
            receipt.fail(error)
            receipt.see(0)
        del receipt
    gc.collect()
    assert lost == []
