"""The format language: what is written, what is read, and where a format is wrong."""

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._cli.records.format import FormatError
from kafkaio._cli.records.input import FormatReader, InputError, InputRecord
from kafkaio._cli.records.rendering import compile_format, compile_kcat_format
from kafkaio.types import Record, TimestampType

RECORD = Record(
    topic="orders",
    partition=3,
    offset=258,
    timestamp=1_700_000_000_123,
    key=b"k1",
    value=b"value",
    headers=(("a", b"1"), ("b", None)),
    timestamp_type=TimestampType.CREATE,
    leader_epoch=7,
)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (r"%v\n", b"value\n"),
        (r"%t[%p]@%o %k=%v", b"orders[3]@258 k1=value"),
        ("%T %K %V %H %e", b"6 2 5 2 7"),
        ("%V{big32}%v", b"\0\0\0\x05value"),
        ("%o{byte}%o{big8}%o{little16}", b"\x02\x02\x02\x01"),
        ("%o{big64}%p{little64}", b"\0\0\0\0\0\0\x01\x02\x03\0\0\0\0\0\0\0"),
        ("%o{hex} %o{hex64} %o{hex4}", b"102 0000000000000102 2"),
        ("%v{hex} %v{base64} %v{base64raw}", b"76616c7565 dmFsdWU= dmFsdWU"),
        ("%h{%k=%v;}", b"a=1;b=;"),
        ("%h{%K{byte}%k%V{byte}%v}", b"\x01a\x011\x01b\0"),
        (r"%h{%k:%v%}}", b"a:1}b:}"),
        ("%d", b"1700000000123"),
        ("%d{strftime[%F %T]}", b"2023-11-14 22:13:20"),
        ("%d{strftime{{%Y}}}%d{strftime##%m##}", b"202311"),
        ("%a{timestamp-type}", b"CreateTime"),
        (r"%%%{%}\\\x41\t\r", b"%{}\\A\t\r"),
        ("%k{unpack[>H]} %k{unpack[<H]}", b"27441 12651"),
        ("%v{unpack{{cs$}}}", b"value"),
        ("%k{unpack[q]}", b" (there are too few bytes to unpack)"),
        ("%k{unpack[b$]}", b"107 (1 bytes are left)"),
        ("ä%v", "ävalue".encode()),
        ("", b""),
    ],
)
def test_a_record_is_written(layout: str, expected: bytes) -> None:
    assert compile_format(layout)(RECORD) == expected


def test_records_are_numbered() -> None:
    render = compile_format("%i ")

    assert render(RECORD) + render(RECORD) == b"1 2 "


def test_null_key_and_value_are_empty() -> None:
    record = Record("t", 0, 0, -1, None, None)

    assert compile_format("%K %V %k|%v %d{strftime[%F]}")(record) == b"0 0 | -1"


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (r"%t %p %o %k %s\n", b"orders 3 258 k1 value\n"),
        ("%K %S %T %h", b"2 5 1700000000123 a=1,b=NULL"),
        (r"%R%s\x00%%", b"\0\0\0\x05value\0%"),
    ],
)
def test_kcat_writes(layout: str, expected: bytes) -> None:
    assert compile_kcat_format(layout)(RECORD) == expected


def test_kcat_marks_null_by_its_length() -> None:
    record = Record("t", 0, 0, -1, None, None)

    assert compile_kcat_format("%K %S %R")(record) == b"-1 -1 \xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("layout", "place", "words"),
    [
        ("%v %z", 3, "unknown token %z"),
        ("%v %", 3, "ends within a token"),
        ("%v{hex", 2, "not closed"),
        ("%v{hx}", 3, "'hx'"),
        ("%V{big31}", 3, "'big31'"),
        ("%h %v", 0, "braces"),
        ("%h{%k%o}", 5, "%o is not a token of a header"),
        ("%h{%k", 2, "not closed"),
        (r"a\q", 1, r"unknown escape \q"),
        (r"\x4", 0, "two hexadecimal digits"),
        ("%d{strftime[%F}", 11, "closes this bracket"),
        ("%d{strftime}", 11, "brackets"),
        ("%d{go##2006##}", 3, "strftime"),
        ("%a", 0, "timestamp-type"),
        ("%a{compression}", 3, "timestamp-type"),
        ("%x", 0, "producer id"),
        ("%k{re[a]}", 0, "reads input"),
        ("%K{3}%k", 0, "reads input"),
        ("%k{unpack[bz]}", 11, "'z'"),
    ],
)
def test_a_wrong_format_has_a_caret_under_the_place(
    layout: str, place: int, words: str
) -> None:
    with pytest.raises(FormatError) as raised:
        compile_format(layout)

    first, shown, caret = str(raised.value).split("\n")
    assert words in first
    assert shown == f"  {layout}"
    assert caret == " " * (2 + place) + "^"


def test_a_wrong_kcat_format_has_a_caret() -> None:
    with pytest.raises(FormatError, match="unknown token %v of kcat") as raised:
        compile_kcat_format("%t %v")

    assert raised.value.position == 3


# ---- reading -----------------------------------------------------------------------


def read(layout: str, *pieces: bytes) -> list[InputRecord]:
    reader = FormatReader(layout)
    found = [each for piece in pieces for each in reader.feed(piece)]
    return [*found, *reader.finish()]


def test_lines_are_read() -> None:
    found = read(r"%v\n", b"one\ntw", b"o\nthree")

    assert [each.value for each in found] == [b"one", b"two", b"three"]
    assert found[0] == InputRecord(value=b"one")


def test_all_fields_are_read() -> None:
    layout = r"%t %p %d %H %h{%k=%v;}%k\t%v\n"

    (found,) = read(layout, b"orders 3 1700 2 a=1;b=2;key\tvalue\n")

    headers: list[tuple[str, bytes | None]] = [("a", b"1"), ("b", b"2")]
    assert found == InputRecord("orders", 3, b"key", b"value", headers, 1700)


def test_offsets_are_read_and_dropped() -> None:
    assert read(r"%o %e %v\n", b"17 2 x\n") == [InputRecord(value=b"x")]


@pytest.mark.parametrize(
    ("layout", "data"),
    [
        ("%V{big32}%v", b"\0\0\0\x02hi"),
        ("%V{little16}%v", b"\x02\0hi"),
        ("%V{byte}%v", b"\x02hi"),
        ("%V{hex8}%v", b"02hi"),
        ("%V %v", b"2 hi"),
        ("%V{2}%v", b"hi"),
        ("%v{hex};", b"6869;"),
        ("%v{base64};", b"aGk=;"),
        ("%v{base64raw};", b"aGk;"),
        ("%v{re#[a-z]+#}\\n", b"hi\n"),
        ("%v", b"hi"),
        ("<%v>", b"<hi>"),
        ("%v\\n\\n", b"hi\n\n"),
    ],
)
@settings(max_examples=20)
@given(cuts=st.sets(st.integers(0, 20)))
def test_a_value_is_read_from_any_pieces(
    layout: str, data: bytes, cuts: set[int]
) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    pieces = [data[a:b] for a, b in pairwise(places)]

    assert read(layout, *pieces) == [InputRecord(value=b"hi")]


@pytest.mark.parametrize(
    ("layout", "data", "words"),
    [
        (r"%k\t%v\n", b"a\tb\nc\n", "line 2, record 2: the input ends within a record"),
        (r"%p %v\n", b"1 a\nx b\n", "line 2, record 2: expected a number, found b'x b"),
        (r"%v{hex}\n", b"zz\n", "line 1, record 1: b'zz' is not hexadecimal"),
        (r"%v{base64}\n", b"a\n", "is not base64"),
        ("<%v>", b"<a>b", "expected b'<', found b'b'"),
        ("%V{big32}%v", b"\0\0\0\x09abc", "(7 bytes of it)"),
        (r"%v{re[a+]}\n", b"b\n", "does not match"),
        (r"%V %v\n", b"-2 a\n", "the length %V is -2"),
        (r"%H %h{%k%%%v;}%v\n", b"1 \xff%1;v\n", "is not UTF-8"),
    ],
)
def test_wrong_input_is_named_by_its_line(layout: str, data: bytes, words: str) -> None:
    with pytest.raises(InputError) as raised:
        read(layout, data)

    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("layout", "place", "words"),
    [
        ("%k%v", 0, "the end of %k is not defined"),
        (r"%V{hex}%v\n", 0, "hex32"),
        ("%v{unpack[b]}", 0, "unpack writes"),
        (r"%d{strftime[%F]} %v\n", 0, "strftime writes"),
        (r"%a{timestamp-type} %v\n", 0, "%a writes"),
        (r"%v %v\n", 3, "twice"),
        (r"%v %V\n", 3, "must come before"),
        (r"%h{%k=%v }%v\n", 0, "%H"),
        (r"%H %h{%k%v }%v\n", 6, "the end of %k"),
        (r"%H %h{%k=%v}%v\n", 9, "the end of %v"),
        ("%V%v{re[a]}", 2, "exclude"),
        ("%v{re[(]}", 0, "regular expression is wrong"),
        ("", 0, "reads nothing"),
        ("abc", 0, "reads nothing"),
    ],
)
def test_a_format_that_cannot_be_read_is_refused(
    layout: str, place: int, words: str
) -> None:
    with pytest.raises(FormatError) as raised:
        FormatReader(layout)

    assert words in raised.value.reason
    assert raised.value.position == place


NUMBERS = st.sampled_from(["ascii", "big32", "little32", "hex32", "big64", "little64"])
RECORDS = st.builds(
    Record,
    topic=st.text(min_size=1, max_size=5),
    partition=st.integers(0, 99),
    offset=st.integers(0, 2**31 - 1),
    timestamp=st.integers(0, 2**31 - 1),
    key=st.none() | st.binary(min_size=1, max_size=9),
    value=st.binary(max_size=30),
    headers=st.lists(st.tuples(st.text(max_size=4), st.binary(max_size=5))).map(tuple),
)


@settings(max_examples=20)
@given(
    records=st.lists(RECORDS, max_size=4),
    kinds=st.lists(NUMBERS, min_size=6, max_size=6),
    cut=st.integers(0, 200),
)
def test_what_is_written_with_lengths_is_read_back(
    records: list[Record], kinds: list[str], cut: int
) -> None:
    a, b, c, d, e, f = kinds
    layout = (
        f"%T{{{a}}};%t%p{{{b}}};%d{{{c}}};%H{{{d}}};"
        f"%h{{%K{{{e}}};%k%V{{{f}}};%v}}%K{{{a}}};%k%V{{{b}}};%v"
    )
    data = b"".join(map(compile_format(layout), records))

    found = read(layout, data[:cut], data[cut:])

    assert found == [
        InputRecord(r.topic, r.partition, r.key, r.value, [*r.headers], r.timestamp)
        for r in records
    ]


@settings(max_examples=20)
@given(values=st.lists(st.binary()), way=st.sampled_from(["hex", "base64"]))
def test_encoded_lines_are_read_back(values: list[bytes], way: str) -> None:
    layout = f"%v{{{way}}}\\n"
    records = [Record("t", 0, 0, 0, None, value) for value in values]

    found = read(layout, b"".join(map(compile_format(layout), records)))

    assert [each.value for each in found] == values
