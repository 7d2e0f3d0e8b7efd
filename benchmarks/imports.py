"""CPU time of importing kafkaio's classes, compared with another package.

Run it as ``python benchmarks/imports.py [rounds] [other package]``. The other package
is aiokafka by default and must be installed. Every import runs in a process of its own;
the time is its user and system time, with the interpreter's start. A first round, which
is not counted, writes the bytecode. The imports take turns. Compare the ratios of the
medians, and only those of one run.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from statistics import median

NAMES = ("Client", "Producer", "Consumer")


def cpu_ms(code: str) -> float:
    """Return the CPU time of a new interpreter that runs some code, in milliseconds."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONDONTWRITEBYTECODE", "PYTHONASYNCIODEBUG"}
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code]
    subprocess.run(command, env=environment, check=True)  # noqa: S603 - ours
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    return (user + after.ru_stime - before.ru_stime) * 1000


def main(rounds: int = 21, other: str = "aiokafka") -> None:
    """Measure all imports, and print a line for each."""
    cases = {"nothing": "pass", other: f"import {other}"}
    cases |= {f"kafkaio.{name}": f"import kafkaio; kafkaio.{name}" for name in NAMES}
    times: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, code in cases.items():
            taken = cpu_ms(code)
            if number:
                times[name].append(taken)
    unit = median(times[other])
    for name, taken in times.items():
        middle = median(taken)
        print(
            f"{name:18} {middle:7.1f} ms ({min(taken):.1f} to {max(taken):.1f})"
            f"  {middle / unit:.2f} times {other}"
        )


if __name__ == "__main__":
    main(*(int(sys.argv[1]),) if len(sys.argv) > 1 else (), *sys.argv[2:3])
