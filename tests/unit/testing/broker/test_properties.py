"""A ``server.properties`` is read as Java reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaio.testing._broker.properties import Address, listener, read_properties


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("", {}),
        ("# a=1\n! b=2\n\n   # c=3\n", {}),
        ("a=1\nb: 2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a.b  =  one two  \n", {"a.b": "one two"}),
        ("a=1,\\\n   2,\\\n   3\n", {"a": "1,2,3"}),
        ("a=C:\\\\logs\nb=x", {"a": "C:\\logs", "b": "x"}),
        ("a\\:b=\\u0041\\t1", {"a:b": "A\t1"}),
        ("a=\nb", {"a": "", "b": ""}),
        ("a=x=y:z\na=last", {"a": "last"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\r\nb=2\r\n", {"a": "1", "b": "2"}),
    ],
)
def test_properties(text: str, config: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(text.encode())
    assert read_properties(file) == config


@pytest.mark.parametrize(
    ("listeners", "address"),
    [
        ("", None),
        ("CONTROLLER://:9093", None),
        ("PLAINTEXT://:9092", Address("", 9092)),
        (
            "CONTROLLER://:1, INSIDE://kafka:9092,PLAINTEXT://x:3",
            Address("kafka", 9092),
        ),
        ("PLAINTEXT://[::1]:9092", Address("::1", 9092)),
    ],
)
def test_listeners(listeners: str, address: Address | None) -> None:
    assert listener({"listeners": listeners}, "listeners") == address
