"""Misuses every type and function of the compiled codec: ``misuse.py SEED ROUNDS``.

Objects whose ``__init__`` did not run or failed, subclasses that do not call it,
arguments of wrong types and sizes: each call may raise what it likes. The process must
not end. It prints the call before it makes it, so that the last line names the culprit.
"""

from __future__ import annotations

import copy
import pickle
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from kafkaio._records import _speedups as codec
from kafkaio._records._layout import (
    BinaryView,
    DecodedColumns,
    Destinations,
    HeaderView,
    Origin,
)
from kafkaio._records.builder import encode_batch
from kafkaio.types import TimestampType

BATCH = encode_batch([(1_000, b"key", b"value", (("name", b"x"),))] * 3)
RECORDS = BATCH[61:]
ORIGIN = Origin("t", 0, 0, 0, 2, 1_000, None, TimestampType.CREATE, 1)
OFFSETS = b"".join(n.to_bytes(4, "little") for n in (0, 1, 2, 3))
VIEW = BinaryView(None, OFFSETS, b"abc", 0, 4)
HUGE = (2**40, 2**61, 2**62 - 1, 2**63 - 1, 2**64, -(2**63))

#: Not called: they block, or they would end this process by design.
LEFT_OUT = {"__class__", "__init_subclass__", "__subclasshook__", "__del__"}


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201 - the last line names the culprit


class Liar:
    """Is equal to nothing, has no length, and pretends to be everything."""

    def __len__(self) -> int:
        return 2**40

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __index__(self) -> int:
        return -1


def types() -> list[type]:
    found = [value for value in vars(codec).values() if isinstance(value, type)]
    return [kind for kind in found if kind.__module__ == codec.__name__]


def functions() -> list[tuple[str, Callable[..., object]]]:
    return [
        (name, value)
        for name, value in sorted(vars(codec).items())
        if type(value).__name__
        in {"cython_function_or_method", "builtin_function_or_method"}
    ]


def empty(kind: type) -> object:
    """Make an object without its ``__init__``."""
    return kind.__new__(kind)  # type: ignore[call-overload]


def derived(kind: type) -> object:
    """Make an object of a subclass that forgets ``__init__``."""
    made = type("Forgetful", (kind,), {"__init__": lambda self, *args, **more: None})
    return made()


def good(dice: random.Random) -> list[object]:
    """Objects that are as they should be."""
    writer = codec.RecordWriter(1_000)
    writer.try_append(1, b"k", b"v")
    receipt = codec.Receipt("t", 0)
    settled = codec.Receipt("t", 0, count=3)
    settled.acknowledge(5, -1)
    cursor = codec.RecordCursor(RECORDS, 0, 3, ORIGIN, 3)
    handout = codec.Handout(lambda: False)
    handout.cursor, handout.credit = cursor.copy(), 3
    acquired = codec.Acquired("t", 0, 0, 2, 1, 5, None)
    of_share = codec.AcquiredCursor(cursor, [acquired], 0)
    return [
        writer,
        receipt,
        settled,
        codec.Delivery(receipt, 0, 5),
        codec.Delivery(settled, dice.choice([0, 2, *HUGE[:2]]), 5),
        cursor,
        acquired,
        of_share,
        next(of_share.copy()),
        handout,
        codec.RecordStream(handout, lambda: 5),
        codec.BatchHeader(BATCH),
        codec.RowReceipts(2),
        codec.OpenBatches(lambda: 1, 10**6),
        codec.ColumnsBuilder(DecodedColumns(headers=True)),
        codec.Rows(3, 5, VIEW, VIEW),
        codec.decode_records(RECORDS, 0, 3, ORIGIN)[0],
    ]


def things(dice: random.Random) -> list[object]:
    """Arguments, good and bad."""
    return [
        *good(dice),
        *[bad for kind in types() if (bad := quietly(empty, kind)) is not None],
        *HUGE,
        *range(-2, 5),
        None,
        True,
        1.5,
        "t",
        "\ud800",
        b"",
        b"k",
        RECORDS,
        RECORDS[:-3],
        BATCH,
        BATCH[:40],
        bytearray(RECORDS),
        memoryview(RECORDS),
        memoryview(RECORDS)[::2],
        [],
        [b"v", None, 5],
        [("name", b"x")],
        [("name",)],
        {"name": b"x"},
        (),
        (1,),
        (1, 2),
        (5, 0, 1),
        (2**70, 0, 1),
        (None, None),
        (codec.RecordWriter(100), codec.Receipt("t", 0)),
        (empty(codec.RecordWriter), empty(codec.Receipt)),
        ORIGIN,
        ORIGIN[:4],
        ORIGIN._replace(start_offset=None),
        DecodedColumns(),
        VIEW,
        VIEW._replace(first=2**62),
        VIEW._replace(offsets=b"\xff" * 16),
        VIEW._replace(data=b""),
        VIEW[:3],
        HeaderView(OFFSETS * 2, VIEW, VIEW),
        Destinations(("t", "u"), OFFSETS, OFFSETS),
        Destinations((), b"\xff" * 16, None),
        Destinations(("t",), None, b"\xff" * 16),
        lambda *args: None,
        lambda *args: 1,
        Liar(),
        object(),
        ValueError("x"),
        KeyError,
    ]


def quietly(call: Callable[..., object], *args: object, **named: object) -> object:
    try:
        return call(*args, **named)
    except BaseException:  # noqa: BLE001 - whatever it is, it is an exception
        return None


class Misuse:
    """Makes one call after another."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.things = things(self.dice)

    def arguments(self) -> list[object]:
        return self.dice.choices(self.things, k=self.dice.randrange(7))

    def targets(self) -> list[object]:
        targets = good(self.dice)
        for kind in types():
            for make in (empty, derived):
                if (made := quietly(make, kind)) is not None:
                    targets.append(made)
            made = quietly(empty, kind)
            init: Any = getattr(made, "__init__", None)
            if init is not None:  # perhaps it fails half-way
                quietly(init, *self.arguments())
                targets.append(made)
        return targets

    def round(self) -> None:
        for name, function in functions():
            self.call(name, function)
        for target in self.targets():
            names = [name for name in dir(type(target)) if name not in LEFT_OUT]
            self.dice.shuffle(names)
            for name in names:
                say(type(target).__qualname__, name)
                value = quietly(getattr, target, name)
                if callable(value):
                    self.call(name, value)
            for use in (repr, hash, str, copy.copy, pickle.dumps, list, iter, len):
                say(type(target).__qualname__, use.__name__)
                quietly(use, target)
            quietly(lambda value: value == value.__class__, target)

    def call(self, name: str, value: Callable[..., object]) -> None:
        args = self.arguments()
        say(" ", name, [type(arg).__name__ for arg in args])
        made = quietly(value, *args)
        if made is not None and hasattr(made, "send"):
            quietly(made.send, None)


def main() -> None:
    seed, rounds = map(int, sys.argv[1:])
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda unraisable: None
    misuse = Misuse(seed)
    for _ in range(rounds):
        misuse.round()
        misuse.things = things(misuse.dice)
    say("survived")


if __name__ == "__main__":
    main()
