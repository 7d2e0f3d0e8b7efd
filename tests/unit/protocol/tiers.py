"""The codec with its interpreter alone, with compiled functions alone, or unused."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from unittest import mock

from kafkaio.protocol import _codec, _interpreter

_TABLES = ("_ENCODERS", "_DECODERS", "_SLICED", "_WRITERS", "_READERS")


class Tier(Enum):
    """The account of each message."""

    INTERPRETED = 1 << 62
    COMPILED = -1


def _tables() -> dict[str, dict[object, object]]:
    return {name: {} for name in _TABLES}


#: What each of them has made so far, for all tests of this process.
_MADE = {tier: _tables() for tier in Tier}


@contextmanager
def tier_of(tier: Tier) -> Generator[None]:
    """Encode and decode with this tier alone."""
    with (
        mock.patch.object(_interpreter, "ACCOUNT", tier.value),
        mock.patch.multiple(_codec, **_MADE[tier]),
    ):
        yield


_ACCOUNT = _interpreter.ACCOUNT


@contextmanager
def unused() -> Generator[None]:
    """Encode and decode as in a process that has not done so before."""
    with (
        mock.patch.object(_interpreter, "ACCOUNT", _ACCOUNT),
        mock.patch.multiple(_codec, **_tables()),
    ):
        yield
