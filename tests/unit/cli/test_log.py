"""``kafkaio log``: its output for good files and for bad ones."""

import struct
from pathlib import Path

import pytest

from kafkaio._cli import main
from kafkaio._records._impl import crc32c
from kafkaio._records.batch import (
    ControlType,
    EndTxnMarker,
    control_batch,
    encode_batch,
)
from kafkaio.testing._log import DiskStorage, Log, LogConfig
from tests.support import cli

NOW = 1_700_000_000_000
FIRST = "00000000000000000000"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    directory = tmp_path / "orders-0"
    config = LogConfig(segment_bytes=400, index_interval_bytes=100)
    log = Log.open(DiskStorage(directory), config, NOW)
    for n in range(10):
        raw = encode_batch([(NOW + n, b"k", b"value %d" % n, (("h", b"x"),))])
        log.append(raw, leader_epoch=n // 5, now_ms=NOW)
    log.close()
    return directory


def producer_snapshot(last_offset: int) -> bytes:
    body = struct.pack(">i", 1)
    body += struct.pack(">qhiqiqiq", 7, 1, 4, last_offset, 0, NOW, -1, -1)
    return struct.pack(">hI", 1, crc32c(body)) + body


def transactions(*rows: tuple[int, int, int, int, int]) -> bytes:
    return b"".join(struct.pack(">hqqqq", *row) for row in rows)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    code = main(["log", *words])
    return code, capsys.readouterr().out.splitlines()


def test_good_files_have_no_problems(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (partition / "00000000000000000010.snapshot").write_bytes(producer_snapshot(9))
    rows = transactions((0, 7, 2, 3, 4))
    (partition / f"{FIRST}.txnindex").write_bytes(rows)
    (partition / "partition.metadata").write_text("version: 0\n")
    code, lines = run(capsys, "verify", str(partition.parent))
    files = len(list(partition.glob("0*"))) + 1
    assert (code, lines) == (0, [f"{files} files, 0 problems"])


def test_dump_prints_every_kind_of_file(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (partition / "00000000000000000010.snapshot").write_bytes(producer_snapshot(9))
    (partition / f"{FIRST}.txnindex").write_bytes(transactions((0, 7, 2, 3, 4)))
    code, lines = run(capsys, "dump", "--records", str(partition))
    text = "\n".join(lines)
    assert code == 0
    assert "  position=0 base_offset=0 last_offset=0 count=1 size=" in text
    assert (
        "    offset=3 timestamp=1700000000003 key=b'k' value=b'value 3' "
        "header:h=b'x'" in lines
    )
    assert "  epoch=1 start_offset=5" in lines
    assert any(line.startswith("  offset=2 position=") for line in lines)
    assert any(line.startswith("  timestamp=1700000000002 offset=2") for line in lines)
    assert "  producer_id=7 first_offset=2 last_offset=3 stable_offset=4" in lines
    assert any(line.startswith("  producer_id=7 producer_epoch=1") for line in lines)


def test_flags_of_batches_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = EndTxnMarker(ControlType.ABORT)
    raw = control_batch(marker, producer_id=7, producer_epoch=1, timestamp=NOW)
    path = tmp_path / f"{FIRST}.log"
    path.write_bytes(raw)
    code, lines = run(capsys, "dump", str(path))
    assert code == 0
    assert lines[1].endswith("base_sequence=-1 transactional control")


def swap(path: Path, position: int, data: bytes) -> None:
    raw = bytearray(path.read_bytes())
    raw[position : position + len(data)] = data
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("name", "position", "data", "said"),
    [
        (f"{FIRST}.log", 70, b"\xff\xff", "has the checksum"),
        (f"{FIRST}.log", 0, b"\xff", "claims the offset"),
        (f"{FIRST}.log", 16, b"\x09", "magic byte 9"),
        (f"{FIRST}.index", 0, b"\0\0\0\1", "is indexed at 2"),
        (f"{FIRST}.index", 4, b"\0\0\0\1", "no batch begins at position 1"),
        (f"{FIRST}.index", 0, b"\x7f", "follows"),
        (f"{FIRST}.timeindex", 7, b"\xff", "is the newest"),
        (f"{FIRST}.timeindex", 0, b"\x7f", "follows"),
        (f"{FIRST}.timeindex", 8, b"\0\0\0\x7f", "is not in the segment"),
        ("leader-epoch-checkpoint", 0, b"9", "has the version 9"),
        ("leader-epoch-checkpoint", 8, b"4", "has epoch"),
        ("leader-epoch-checkpoint", 2, b"7", "does not have 7 entries"),
    ],
)
def test_problems_are_found(
    partition: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    position: int,
    data: bytes,
    said: str,
) -> None:
    swap(partition / name, position, data)
    code, lines = run(capsys, "verify", str(partition / name))
    assert code == 1
    assert said in "\n".join(lines)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        (f"{FIRST}.log", b"\0" * 10, "ends within"),
        ("5.log", encode_batch([(1, None, b"v", ())]), "offset 0 follows 4"),
        ("name.log", b"", "does not begin with an offset"),
        (f"{FIRST}.index", b"", "this segment does not exist"),
        ("5.snapshot", b"\0\1", "is truncated"),
        ("5.snapshot", producer_snapshot(4)[:-1], "checksum"),
        ("5.snapshot", b"\0\2" + producer_snapshot(4)[2:], "version 2"),
        ("5.snapshot", producer_snapshot(5), "is at 5 already"),
        (
            "5.snapshot",
            struct.pack(">hIi", 1, crc32c(b"\0\0\0\1"), 1),
            "does not have 1 entries",
        ),
        (f"{FIRST}.txnindex", b"\0", "is truncated"),
        (f"{FIRST}.txnindex", transactions((3, 1, 1, 1, 1)), "version 3"),
        (f"{FIRST}.txnindex", transactions((0, 1, 2, 1, 1)), "ends before it begins"),
        ("other", b"", "not a file of a log"),
    ],
)
def test_bad_files_are_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    data: bytes,
    said: str,
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    code, lines = run(capsys, "verify", str(path))
    assert code == 1
    assert f"{path}: " in lines[0]
    assert said in lines[0]


def test_a_dump_shows_what_comes_before_the_bad_part(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = partition / f"{FIRST}.log"
    path.write_bytes(path.read_bytes()[:-1])
    code, lines = run(capsys, "dump", str(path))
    assert code == 1
    assert "base_offset=0" in lines[1]
    assert lines[-1].startswith("  ! the file ends within the batch")
    assert run(capsys, "dump", str(path.parent / "other"))[0] == 2


def test_no_file_at_all_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "verify", str(tmp_path)) == (2, ["0 files, 0 problems"])


@pytest.mark.parametrize("action", ["verify", "dump"])
def test_a_path_that_does_not_exist(
    action: str, partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = partition / "none"
    assert main(["log", action, str(partition), str(missing)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"kafkaio log {action}: {missing}: no such file or directory\n"


# ---- JSON ----------------------------------------------------------------------------


def test_a_dump_is_a_document(partition: Path) -> None:
    (partition / "00000000000000000010.snapshot").write_bytes(producer_snapshot(9))
    (partition / f"{FIRST}.txnindex").write_bytes(transactions((0, 7, 2, 3, 4)))
    document = cli.run("log", "dump", "--json", str(partition)).check().document
    files = {Path(each["path"]).name: each for each in document["files"]}
    assert files["leader-epoch-checkpoint"] == {
        "path": str(partition / "leader-epoch-checkpoint"),
        "kind": "leader_epochs",
        "entries": [
            {"epoch": 0, "start_offset": 0},
            {"epoch": 1, "start_offset": 5},
        ],
    }
    assert {each["kind"] for each in files.values()} == {
        *("segment", "offset_index", "time_index", "producer_snapshot"),
        *("transaction_index", "leader_epochs"),
    }
    assert files[f"{FIRST}.txnindex"]["entries"] == [
        {"producer_id": 7, "first_offset": 2, "last_offset": 3, "stable_offset": 4}
    ]
    batch = files[f"{FIRST}.log"]["entries"][0]
    assert (batch["position"], batch["count"], batch["is_control"]) == (0, 1, False)
    assert "records" not in batch
    assert document["errors"] == []


def test_records_are_in_the_document(tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    records = [(NOW, None, b"\xff", (("h", None),)), (NOW + 1, b"k", b"v", ())]
    path.write_bytes(encode_batch(records))
    words = ("log", "dump", "--records", "--json", str(path))
    (file,) = cli.run(*words).check().document["files"]
    assert file["entries"][0]["records"] == [
        {
            "offset": 0,
            "timestamp": NOW,
            "key": None,
            "value": {"base64": "/w=="},
            "headers": [{"name": "h", "value": None}],
        },
        {"offset": 1, "timestamp": NOW + 1, "key": "k", "value": "v", "headers": []},
    ]


def test_a_dump_is_a_line_for_each_file(partition: Path) -> None:
    # Before its name the option is the root's, which hands it on.
    for words in (
        ("log", "dump", "--jsonl", str(partition)),
        ("--jsonl", "log", "dump", str(partition)),
    ):
        lines = cli.run(*words).check().lines
        files = sorted(str(path) for path in partition.glob("*") if path.stat().st_size)
        assert [line["path"] for line in lines if line["entries"]] == files
        for line in lines:
            cli.validate(line, "log", "file")


def test_what_cannot_be_dumped_is_among_the_errors(partition: Path) -> None:
    path = partition / f"{FIRST}.log"
    path.write_bytes(path.read_bytes()[:-1])
    other = partition / "other"
    other.touch()
    words = ("log", "dump", "--json", str(path), str(other))
    result = cli.run(*words).check(1)
    document = result.document
    assert [each["kind"] for each in document["files"]] == ["segment", "unknown"]
    assert document["files"][0]["entries"]
    first, second = document["errors"]
    assert (first["item"], first["error"]) == (str(path), "CorruptRecord")
    assert (second["item"], second["error"]) == (str(other), "ValueError")
    assert [line.split(": ")[:2] for line in result.err.splitlines()] == [
        ["kafkaio log dump", str(path)],
        ["kafkaio log dump", str(other)],
    ]


def test_a_check_is_a_document(partition: Path, tmp_path: Path) -> None:
    good = cli.run("log", "verify", "--json", str(partition)).check().document
    assert (good["problems"], good["errors"]) == ([], [])
    assert good["file_count"] == len([*partition.glob("0*")]) + 1
    swap(partition / f"{FIRST}.log", 70, b"\xff\xff")
    bad = cli.run("log", "verify", "--json", str(partition)).check(1).document
    assert all(each["path"].startswith(str(partition)) for each in bad["problems"])
    assert "has the checksum" in " ".join(it["problem"] for it in bad["problems"])
    lines = cli.run("log", "verify", "--jsonl", str(partition)).check(1).lines
    assert lines == bad["problems"]
    (tmp_path / "empty").mkdir()
    for action, key in (("verify", "problems"), ("dump", "files")):
        words = ("log", action, "--json", str(tmp_path / "empty"))
        assert cli.run(*words).check(2).document[key] == []


def test_both_forms_of_json_exclude_each_other(partition: Path) -> None:
    result = cli.run("log", "verify", "--json", "--jsonl", str(partition)).check(2)
    assert "not allowed with" in result.err
