"""Fail if a row has fallen by more than a fifth behind what it was.

    python -m benchmarks.rows.guard [--rounds N] [--append]

measures all rows, and compares the ratio of each to the fastest other client with the
median of the last entries of ``benchmarks/series.jsonl`` of the same processor. Rows
that have fallen are measured again, with more rounds, before they are said to have
fallen. The last line of the output is the entry; ``--append`` writes it to the series
as well. ``--run FILE`` takes the figures of ``python -m benchmarks.rows --json FILE``
instead of measuring, but measures again what has fallen.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.rows.__main__ import measure
from benchmarks.rows.compare import Run
from benchmarks.rows.series import Entry, Fall, better_of, falls, parse
from benchmarks.rows.table import ROWS

SERIES = Path(__file__).parents[1] / "series.jsonl"
#: Rounds of a row that has fallen.
AGAIN = 7


def entry_of(run: Mapping[str, object], commit: str) -> Entry:
    """Return what the series keeps of a run."""
    machine, date, other = run["machine"], run["date"], run["other"]
    assert isinstance(machine, Mapping)
    assert isinstance(date, str)
    assert isinstance(other, float)
    name = f"{machine['cpu']}, {machine['cores']} cores"
    lines = Run(run, ROWS).lines()
    ratios = {line.key: round(line.ratio, 3) for line in lines if line.peers}
    return Entry(commit, date, name, other, ratios)


def again(fallen: list[Fall], bootstrap: str | None) -> Mapping[str, object]:
    """Measure rows once more."""
    names = {fall.key.partition("/")[0] for fall in fallen}
    print(f"\nonce more: {', '.join(sorted(names))}", flush=True)
    rows = [row for row in ROWS if row.name in names]
    return asyncio.run(measure(rows, AGAIN, bootstrap))


def head() -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(  # noqa: S603 - ours
        command, check=True, capture_output=True, text=True
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, help="figures of a run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bootstrap", help="a broker that runs: HOST:PORT")
    parser.add_argument("--append", action="store_true", help="keep the entry")
    args = parser.parse_args()
    run: Mapping[str, object]
    if args.run:
        run = json.loads(args.run.read_text())
    else:
        run = asyncio.run(measure(ROWS, args.rounds, args.bootstrap))
    commit = head()
    entry = entry_of(run, commit)
    series = parse(SERIES.read_text()) if SERIES.exists() else []
    fallen = falls(entry, series)
    if fallen:
        repeated = again(fallen, args.bootstrap)
        entry = better_of(entry, entry_of(repeated, commit))
        fallen = falls(entry, series)
    for fall in fallen:
        print(f"FALLEN: {fall}")
    failed = run["failed"]
    assert isinstance(failed, Mapping)
    for name, why in failed.items():
        print(f"FAILED: {name}: {why}")
    if args.append:
        with SERIES.open("a") as file:
            file.write(entry.line() + "\n")
    print(entry.line())
    return 1 if fallen or failed else 0


if __name__ == "__main__":
    sys.exit(main())
