"""Modules are loaded without garbage collections."""

from __future__ import annotations

import gc

import pytest

from kafkaio.spark.loading import loading


def test_the_collector_is_off_meanwhile_and_then_as_it_was() -> None:
    assert gc.isenabled()
    with loading():
        assert not gc.isenabled()
        with loading():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
