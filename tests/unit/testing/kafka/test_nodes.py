"""Processes of a cluster, and the guard over them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaio.testing.kafka._guard import Guard, watch
from kafkaio.testing.kafka._nodes import JvmNode, free_ports
from tests.support.patience import HANGS

WAIT = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAIT

BUSY = """
import threading, time
def work():
    while True:
        time.sleep(0.001)
for _ in range(20):
    threading.Thread(target=work, daemon=True).start()
print('up', flush=True)
time.sleep(60)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    found = tmp_path / "cluster"
    found.mkdir()
    return found


@pytest.fixture
def guard(directory: Path) -> Iterator[Guard]:
    found = Guard(directory)
    yield found
    found.close()


@pytest.fixture
def node(directory: Path) -> Iterator[JvmNode]:
    found = JvmNode(1, directory / "node1", {"PLAINTEXT": 5})
    found.directory.mkdir()
    yield found
    found.kill()


def python(code: str) -> list[str | Path]:
    return [sys.executable, "-I", "-S", "-c", code]


def wait_log(node: JvmNode, text: str) -> None:
    end = time.monotonic() + HANGS
    while text not in node.log():
        assert time.monotonic() < end
        time.sleep(0.005)


def state(pid: int) -> str:
    found = subprocess.run(
        ["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True
    )
    return found.stdout.strip()


def test_ports_are_distinct_and_below_the_ephemeral_range() -> None:
    ports = free_ports(200)  # so many that some come twice, if that may be
    assert len(ports) == len(set(ports)) == 200
    assert all(20000 <= port < 32768 for port in ports)


def test_a_node_is_down_until_started_and_after_its_end(
    node: JvmNode, guard: Guard
) -> None:
    assert (node.pid, node.returncode, node.log()) == (None, None, "")
    assert "down" in repr(node)
    node.spawn(python(WAIT), guard)
    pid = node.pid
    assert pid is not None
    assert "up" in repr(node)
    node.kill()
    assert (node.pid, node.returncode) == (None, -signal.SIGKILL)
    assert node.ended_at > 0
    node.kill()
    node.terminate(1)
    node.pause()
    assert not node.paused


def test_asked_to_end_it_ends_in_order(node: JvmNode, guard: Guard) -> None:
    node.spawn(python(WAIT), guard)
    wait_log(node, "up")
    node.terminate(10)
    assert node.returncode == -signal.SIGTERM


def test_one_that_will_not_end_is_killed(node: JvmNode, guard: Guard) -> None:
    node.spawn(python(STUBBORN), guard)
    wait_log(node, "up")
    node.terminate(0.01)
    assert node.returncode == -signal.SIGKILL


def test_a_halted_node_goes_on_or_ends(node: JvmNode, guard: Guard) -> None:
    node.spawn(python(WAIT), guard)
    node.pause()
    pid = node.pid
    assert pid is not None
    assert "paused" in repr(node)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    node.resume()
    os.waitid(os.P_PID, pid, os.WCONTINUED | os.WNOWAIT)
    node.pause()
    node.terminate(10)
    assert (node.pid, node.paused) == (None, False)


def test_no_thread_of_a_halted_node_runs_when_the_call_returns(
    node: JvmNode, guard: Guard
) -> None:
    node.spawn(python(BUSY), guard)
    wait_log(node, "up")
    for _ in range(50):
        node.pause()
        assert node.pid is not None
        now = os.WSTOPPED | os.WNOWAIT | os.WNOHANG
        assert os.waitid(os.P_PID, node.pid, now) is not None
        node.resume()


def test_a_node_that_ends_instead_of_halting_is_not_waited_for(
    node: JvmNode, guard: Guard
) -> None:
    node.spawn(python(WAIT), guard)
    node.signal(signal.SIGKILL)
    node.pause()
    assert node.returncode == -signal.SIGKILL
    assert not node.paused


def test_a_node_starts_again_and_its_log_goes_on(node: JvmNode, guard: Guard) -> None:
    for _ in range(2):
        node.spawn(python("print('line')"), guard)
        node.kill()  # waits, if it has ended already
    node.spawn(python("print('line')"), guard)
    wait_log(node, "line")


def test_a_complaint_starts_where_the_trouble_does(node: JvmNode) -> None:
    node.log_file.write_text("INFO a\n12:00 [main] ERROR what\nINFO b\n")
    assert node.complaint() == "12:00 [main] ERROR what\nINFO b\n"
    node.log_file.write_text("INFO only\n")
    assert node.complaint() == "INFO only\n"
    assert node.address("PLAINTEXT") == ("127.0.0.1", 5)


def test_the_guard_ends_what_is_left(node: JvmNode, directory: Path) -> None:
    guard = Guard(directory)
    node.spawn(python(WAIT), guard)
    guard.close()
    node._reap(10)
    assert node.returncode == -signal.SIGKILL
    assert not directory.exists()


def test_the_guard_forgets_what_has_ended(tmp_path: Path) -> None:
    with (
        subprocess.Popen(python(WAIT)) as spared,
        subprocess.Popen(python(WAIT)) as ended,
    ):
        lines = [f"+{spared.pid}\n", f"+{ended.pid}\n", f"-{spared.pid}\n", "-1\n"]
        watch(lines, tmp_path / "gone")
        assert ended.wait(10) == -signal.SIGKILL
        assert spared.poll() is None
        spared.kill()


def test_the_guard_works_without_process_handles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    directory = tmp_path / "d"
    directory.mkdir()
    with subprocess.Popen(python(WAIT)) as ended:
        watch([f"+{ended.pid}\n"], directory)
        assert ended.wait(10) == -signal.SIGKILL
    assert not directory.exists()


def test_the_guard_bears_with_one_that_is_gone_already(tmp_path: Path) -> None:
    with subprocess.Popen(python("pass")) as gone:
        gone.wait()
    watch([f"+{gone.pid}\n"], tmp_path / "d")
    assert state(gone.pid) == ""
