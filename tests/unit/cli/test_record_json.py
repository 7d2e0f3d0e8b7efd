"""Records as lines of JSON, and back."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._cli.records.input import InputError, InputRecord
from kafkaio._cli.records.record_json import JsonReader, envelope_of, json_of
from kafkaio.types import Record, TimestampType
from tests.support.cli import validate

BYTES = st.none() | st.binary(max_size=9) | st.text(max_size=9).map(str.encode)
RECORDS = st.builds(
    Record,
    topic=st.text(min_size=1, max_size=5),
    partition=st.integers(0, 99),
    offset=st.integers(0, 2**63 - 1),
    timestamp=st.integers(0, 2**62),
    key=BYTES,
    value=BYTES,
    headers=st.lists(st.tuples(st.text(max_size=4), BYTES)).map(tuple),
    timestamp_type=st.sampled_from(TimestampType),
)


def read(*pieces: bytes) -> list[InputRecord]:
    reader = JsonReader()
    found = [each for piece in pieces for each in reader.feed(piece)]
    return [*found, *reader.finish()]


@settings(max_examples=20)
@given(records=st.lists(RECORDS, max_size=3), cut=st.integers(0, 300))
def test_lines_are_read_back(records: list[Record], cut: int) -> None:
    data = "\n".join(map(json_of, records)).encode()

    assert read(data[:cut], data[cut:]) == [
        InputRecord(r.topic, r.partition, r.key, r.value, [*r.headers], r.timestamp)
        for r in records
    ]


@settings(max_examples=20)
@given(record=RECORDS)
def test_a_line_has_the_schema(record: Record) -> None:
    document = json.loads(json_of(record))

    validate(document, "consume", "line")
    assert document["offset"] == record.offset


def test_kcats_envelope() -> None:
    record = Record("t", 1, 2, 3, b"k", b"\xff", (("a", b"1"), ("b", None)))

    assert json.loads(envelope_of(record)) == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "tstype": "create",
        "ts": 3,
        "broker": None,
        "headers": ["a", "1", "b", None],
        "key": "k",
        "payload": {"base64": "/w=="},
    }


def test_headers_may_be_an_object() -> None:
    (found,) = read(b'{"value": "v", "headers": {"a": "1"}}\n\n')

    assert found == InputRecord(value=b"v", headers=[("a", b"1")])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "line 2: "),
        (b"[]", "line 2: not a JSON object"),
        (b'{"valu_": "a"}', "unknown key 'valu_'"),
        (b'{"value": 1}', "value is neither null, text nor"),
        (b'{"value": {"base64": "!"}}', "value is not base64"),
        (b'{"partition": "a"}', 'partition is "a", not of type int'),
        (b'{"headers": 1}', "headers is not a list"),
        (b'{"headers": [1]}', "a header is not"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(line: bytes, words: str) -> None:
    with pytest.raises(InputError) as raised:
        read(b"{}\n" + line + b"\n")

    assert words in str(raised.value)
