"""Where a command reads and writes: closed, full, or of another encoding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaio._records.batch import encode_batch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="redirects by sh")


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of sh, in which ``kafkaio`` is the command."""
    line = line.replace("kafkaio", f"{sys.executable} -m kafkaio")
    return subprocess.run(
        ["/bin/sh", "-c", line],
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A segment whose records are more than a pipe takes, with a key in UTF-8."""
    path = tmp_path / ("0" * 20 + ".log")
    records = [(1, "é".encode(), b"x" * 100, ())] * 2000
    path.write_bytes(encode_batch(records))
    return path


def test_a_reader_that_stops_is_no_error_of_a_file(segment: Path) -> None:
    done = shell(f"kafkaio log dump --records {segment} | head -1")
    assert (done.stdout.decode(), done.stderr) == (f"{segment}\n", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["completion bash", "log dump --records FILE"])
def test_no_space_is_one_line(command: str, segment: Path) -> None:
    done = shell(f"kafkaio {command.replace('FILE', str(segment))} > /dev/full")
    (line,) = done.stderr.decode().splitlines()
    assert line.endswith(": [Errno 28] No space left on device")
    assert line.startswith("kafkaio")
    assert done.returncode == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_may_be_closed(closed: str, segment: Path) -> None:
    assert shell(f"kafkaio log verify {segment} {closed}").returncode == 0
    done = shell(f"kafkaio topics list -b localhost:1 --timeout 0.2 {closed}")
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    produced = shell(f"kafkaio produce t -b localhost:1 --timeout 0.2 {closed}")
    assert produced.returncode == 1
    assert b"Traceback" not in produced.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_a_program_reads_is_utf_8(encoding: str, segment: Path) -> None:
    line = f"kafkaio log dump --records --json {segment}"
    done = shell(line, PYTHONIOENCODING=encoding)
    assert '"key": "é"' in done.stdout.decode("utf-8")
    assert done.stderr == b""
    # An error has what the stream has not as escapes.
    failed = shell("kafkaio topics é", PYTHONIOENCODING=encoding)
    assert b"No such command" in failed.stderr
    assert failed.returncode == 2
