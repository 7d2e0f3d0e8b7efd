"""Write the chart and the tables of docs/performance.md and the README from a run.

``python -m benchmarks.rows --json benchmarks/figures.json`` measures, and ``python -m
benchmarks.plot [FILE]`` draws; it needs matplotlib.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt

from benchmarks.rows.compare import Line, Run
from benchmarks.rows.page import brief, written
from benchmarks.rows.table import ROWS

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "benchmarks" / "figures.json"
CHART = ROOT / "docs" / "_static" / "benchmark.svg"
PAGE = ROOT / "docs" / "performance.md"
README = ROOT / "README.md"
AHEAD, BEHIND = "#2962ff", "#e0a030"
#: A bar ends here; the number beside it says more.
WIDEST = 4.0


def draw(lines: Sequence[Line], to: Path) -> None:
    """Draw a bar for each line: its ratio to the fastest other client."""
    plt.rcParams["svg.hashsalt"] = "kafkaio"  # the same bytes for the same figures
    plt.rcParams["svg.fonttype"] = "none"  # text, not outlines
    plot, axes = plt.subplots(figsize=(9, 0.9 + 0.2 * len(lines)))
    for at, line in enumerate(lines):
        ratio = max(1 / WIDEST, min(line.ratio, WIDEST))
        colour = AHEAD if line.ratio <= 1 else BEHIND
        axes.barh(at, math.log2(ratio), color=colour, height=0.7)
        label = f"{line.ratio:.2f} of {line.fastest}"
        side = "left" if ratio > 1 else "right"
        place = math.log2(ratio) + (0.05 if ratio > 1 else -0.05)
        axes.text(place, at, label, va="center", ha=side, size=7)
    axes.set_yticks(range(len(lines)), [name(line) for line in lines], size=7)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    ticks = [0.25, 0.5, 1, 2, 4]
    axes.set_xticks([math.log2(tick) for tick in ticks], [f"{t:g}" for t in ticks])
    axes.set_xlim(-math.log2(WIDEST) - 1.8, math.log2(WIDEST) + 1.8)
    axes.margins(y=0.01)
    axes.set_title(
        "kafkaio as a ratio to the fastest other client; left of 1 kafkaio is ahead",
        size=9,
        loc="left",
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    plot.tight_layout()
    plot.savefig(to, metadata={"Date": None})
    # Matplotlib ends lines of paths with a space.
    text = "\n".join(each.rstrip() for each in to.read_text().splitlines())
    to.write_text(text + "\n")


def name(line: Line) -> str:
    call = line.way.call.replace("`", "")
    what = f"{line.row.title}: {call}" if call else line.row.title
    return f"{what.replace('`', '')} ({line.measure.unit})"


def main() -> None:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES
    run = json.loads(file.read_text())
    draw([line for line in Run(run, ROWS).lines() if line.peers], CHART)
    PAGE.write_text(written(PAGE.read_text(), run))
    README.write_text(brief(README.read_text(), run))


if __name__ == "__main__":
    main()
