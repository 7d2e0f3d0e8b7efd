"""A storage that loses what was not flushed, as a power cut does."""

from __future__ import annotations

import random

from kafkaio._records.compression import BytesLike


class PowerCut(BaseException):
    """The machine stops here."""


class CrashFile:
    def __init__(self, storage: CrashStorage) -> None:
        self._storage = storage
        self.data = bytearray()
        self.durable = b""

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, position: int, count: int) -> bytes:
        return bytes(self.data[position : position + count])

    def append(self, data: BytesLike) -> None:
        self._storage.step()
        self.data += data

    def truncate(self, size: int) -> None:
        self._storage.step()
        del self.data[size:]

    def flush(self) -> None:
        self._storage.step()
        self.durable = bytes(self.data)

    def close(self) -> None:
        pass

    def after_cut(self, dice: random.Random) -> bytes:
        """The flushed part, then a part of the rest, or garbage, or nothing."""
        shared = 0
        limit = min(len(self.durable), len(self.data))
        while shared < limit and self.durable[shared] == self.data[shared]:
            shared += 1
        if shared < len(self.durable):
            return dice.choice([self.durable, bytes(self.data)])  # a truncation
        rest = self.data[shared:]
        kept = bytearray(rest[: dice.randint(0, len(rest))])
        if kept and dice.random() < 0.5:
            begin = dice.randrange(len(kept))
            kept[begin:] = dice.choice(
                [bytes(len(kept) - begin), dice.randbytes(len(kept) - begin)]
            )
        return self.durable + bytes(kept)


class CrashStorage:
    """Counts every write, flush and change of names; stops at the one it is told.

    Attributes:
        steps: how many there were.
        stop_at: the step at which the power goes.
    """

    def __init__(self) -> None:
        self.files: dict[str, CrashFile] = {}
        self.durable_names: dict[str, CrashFile] = {}
        self.steps = 0
        self.stop_at: int | None = None

    def step(self) -> None:
        if self.steps == self.stop_at:
            raise PowerCut
        self.steps += 1

    def names(self) -> list[str]:
        return sorted(self.files)

    def open(self, name: str) -> CrashFile:
        if name not in self.files:
            self.step()
            self.files[name] = CrashFile(self)
        return self.files[name]

    def remove(self, name: str) -> None:
        self.step()
        self.files.pop(name, None)

    def replace(self, old: str, new: str) -> None:
        self.step()
        self.files[new] = self.files.pop(old)

    def sync(self) -> None:
        self.step()
        self.durable_names = dict(self.files)

    def close(self) -> None:
        pass

    def after_cut(self, dice: random.Random) -> CrashStorage:
        """What the disk holds when the power is back.

        Each name that was touched since the last sync is as it was or as it is.
        """
        survivor = CrashStorage()
        for name in sorted(self.files.keys() | self.durable_names.keys()):
            old, new = self.durable_names.get(name), self.files.get(name)
            file = old if old is new else dice.choice([old, new])
            if file is not None:
                copy = CrashFile(survivor)
                copy.data = bytearray(file.after_cut(dice))
                copy.durable = bytes(copy.data)
                survivor.files[name] = copy
        survivor.durable_names = dict(survivor.files)
        return survivor
