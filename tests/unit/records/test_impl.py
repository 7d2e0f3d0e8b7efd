"""The choice of the codec."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaio._records import _crc, _impl
from kafkaio._records._impl import _is_compiled_wanted, crc32c
from kafkaio.errors import ConfigurationError

IS_BUILT = importlib.util.find_spec("kafkaio._records._speedups") is not None


@pytest.mark.parametrize(
    ("wanted", "is_built", "expected"),
    [
        ("auto", True, True),
        ("auto", False, False),
        ("python", True, False),
        ("python", False, False),
        ("compiled", True, True),
    ],
)
def test_choice(wanted: str, is_built: bool, expected: bool) -> None:
    assert _is_compiled_wanted(wanted, is_built=is_built) is expected


def test_compiled_must_be_there_when_asked_for() -> None:
    with pytest.raises(ConfigurationError, match="without its compiled codec"):
        _is_compiled_wanted("compiled", is_built=False)


def test_unknown_choice() -> None:
    with pytest.raises(ConfigurationError, match="auto, compiled or python"):
        _is_compiled_wanted("rust", is_built=True)


def test_both_loops_come_from_the_chosen_twin() -> None:
    twin = "_speedups" if _impl.accelerated else "_pure"
    assert _impl.RecordWriter.__module__ == f"kafkaio._records.{twin}"
    assert _impl.decode_records.__module__ == f"kafkaio._records.{twin}"


def test_only_one_module_imports_the_compiled_codec() -> None:
    package = Path(_impl.__file__).parent.parent
    assert [
        file.name
        for file in package.rglob("*.py")
        if "_speedups" in file.read_text(encoding="utf-8")
    ] == ["_impl.py"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "expected"), [("python", False), ("auto", IS_BUILT)]
)
def test_environment_decides(wanted: str, expected: bool) -> None:
    code = "from kafkaio._records._impl import accelerated; print(accelerated)"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KAFKAIO_CODEC": wanted},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == str(expected)


def test_crc32c_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283


def test_crc32c_is_found_in_another_layout_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_crc, "find_spec", lambda _: None)
    assert _crc._load()(b"123456789") == 0xE3069283


def test_the_package_of_crc32c_can_be_imported_beside_it() -> None:
    import crc32c as package

    assert package.crc32c(b"123456789") == crc32c(b"123456789")
