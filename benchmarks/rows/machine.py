"""Where a run took place: versions, the machine, and what else it did."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from kafkaio.testing.kafka import Kafka

GO_MODULE = Path(__file__).parents[1] / "go"
PACKAGES = ("kafkaio", "confluent-kafka", "aiokafka")


def ticks() -> int:
    """Return how many of the kernel's ticks a second has."""
    return os.sysconf("SC_CLK_TCK")


def versions(kafka: Kafka | None) -> dict[str, str]:
    """Return the versions of what takes part."""
    found = {name: metadata.version(name) for name in PACKAGES}
    go = re.search(r"franz-go v(\S+)", (GO_MODULE / "go.mod").read_text())
    assert go is not None
    found["franz-go"] = go[1]
    found["Python"] = platform.python_version()
    found["Kafka"] = kafka.options.release.version if kafka else "not ours"
    return found


def machine() -> dict[str, str | int]:
    """Return the processor, the number of its cores, and the kernel."""
    info = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", info)
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": os.cpu_count() or 1,
        "kernel": f"{platform.system()} {platform.release()}",
    }


def busy() -> float:
    """Seconds of CPU that the machine has spent, by all of its cores."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = (int(each) for each in fields[:8])
    return (user + nice + system + irq + softirq + steal) / ticks()


def ours() -> float:
    """Seconds of CPU of this process and its descendants, ended ones included."""
    return sum(_spent(pid) for pid in _family())


def _family() -> Iterator[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    family = {os.getpid()}
    while more := {pid for pid, up in parents.items() if up in family} - family:
        family |= more
    yield from family


def _spent(pid: int) -> float:
    # Its own, and that of its children that have ended: user and system.
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) / ticks() if fields else 0.0


def _stat(pid: int) -> list[str]:
    """Return the fields after the name, which may have spaces; none if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()
