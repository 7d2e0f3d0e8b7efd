"""Expressions of ``--filter``."""

import pytest

from kafkaio._cli.records.decoded import Decoded, DecodedRecord
from kafkaio._cli.records.filters import compile_filter
from kafkaio._cli.records.format import FormatError
from kafkaio.types import Record

RECORD = Record(
    topic="orders",
    partition=3,
    offset=258,
    timestamp=1000,
    key=b"k1",
    value=b'{"id": 7}',
    headers=(("trace", b"00-a"), ("trace", b"00-b"), ("empty", None)),
)


@pytest.mark.parametrize(
    ("expression", "is_kept"),
    [
        ('key == "k1"', True),
        ("key == 'k2'", False),
        ('key != "k2"', True),
        ("value != null", True),
        ('topic == "orders" and partition == 3', True),
        ("partition in (1, 3)", True),
        ("partition in (1)", False),
        ('key in ("k1", null)', True),
        ("offset >= 258 and offset < 259", True),
        ("offset > 258 or timestamp <= 1000", True),
        ('value contains "\\"id\\": 7"', True),
        ("value startswith '{' and value endswith '}'", True),
        ('value ~ "id.*[78]"', True),
        ('value ~ "^id"', False),
        ('header.trace == "00-b"', True),
        ("header.empty == null", True),
        ("header.absent == null", True),
        ('header.absent contains "a"', False),
        ('header.absent < "a"', False),
        ("key < null", False),
        ('not key == "k1"', False),
        ('not (key == "k1" and offset == 1)', True),
        ("offset == 1 and offset == 2 or offset == 258", True),
        ("offset == 258 or offset == 1 and offset == 2", True),
        ("offset > -1", True),
        ("value.id == 7", True),
        ("value.id >= 6.5 and value.id < 7.5", True),
        ("value.id in (6, 7)", True),
        ("value.id == '7'", False),
        ("value.id > 'a'", False),
        ("value.id contains '7'", False),
        ("value.id.x == null", True),
        ("key.id == null", True),
    ],
)
def test_records_are_kept(expression: str, is_kept: bool) -> None:
    assert compile_filter(expression)(RECORD) is is_kept


TREE = {
    "id": 7,
    "paid": True,
    "lines": [{"sku": "a"}, {"sku": "b", "amount": 9.5}],
    "empty": None,
}


@pytest.mark.parametrize(
    ("expression", "is_kept"),
    [
        ("value.paid == true", True),
        ("value.paid == 1", False),
        ("value.paid != false", True),
        ("value.lines.1.sku == 'b'", True),
        ("value.lines.1.amount > 9", True),
        ("value.lines.2.sku == null", True),
        ("value.lines.x == null", True),
        ('value.lines contains \'"sku":"a"\'', True),
        ("value.empty == null", True),
        ("value contains '\"paid\":true'", True),
        ("key == '5' and key.x == null", True),
        ("value.id in (null, 7)", True),
    ],
)
def test_decoded_records_are_kept(expression: str, is_kept: bool) -> None:
    record = DecodedRecord(RECORD, Decoded(5), Decoded(TREE, 1))
    assert compile_filter(expression)(record) is is_kept


@pytest.mark.parametrize(
    ("expression", "place", "words"),
    [
        ("", 0, "expected a field"),
        ("kye == 'a'", 0, "expected a field"),
        ("key = 'a'", 4, "comparison"),
        ("key == a", 7, "text in quotes"),
        ("offset == 'a'", 10, "a number"),
        ("offset contains 'a'", 7, "comparison"),
        ("value. == 1", 0, "value.NAME"),
        ("value.id == x", 12, "text in quotes"),
        ("key == 'a' offset", 11, "'and', 'or'"),
        ("(key == 'a'", 11, "expected ')'"),
        ("partition in (1", 15, "expected ')'"),
        ("value ~ '('", 8, "regular expression"),
        (r'value == "\q"', 9, "escape"),
        ("__import__('os')", 0, "expected a field"),
    ],
)
def test_a_wrong_expression_has_a_caret(
    expression: str, place: int, words: str
) -> None:
    with pytest.raises(FormatError) as raised:
        compile_filter(expression)

    assert words in raised.value.reason
    assert raised.value.position == place
