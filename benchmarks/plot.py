"""Draw figures.json, the medians that docs/performance.md quotes, as a bar chart.

Needs matplotlib: ``python benchmarks/plot.py docs/_static/benchmark.svg``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

FIGURES = Path(__file__).with_name("figures.json")
COLOURS = {"kafkaio": "#2962ff", "confluent-kafka": "#9e9e9e", "aiokafka": "#e0a030"}


def draw(target: str) -> None:
    """Write the chart to a file, in the format of its suffix."""
    figures = json.loads(FIGURES.read_text())
    plt.rcParams["svg.hashsalt"] = "kafkaio"  # the same bytes for the same figures
    plt.rcParams["svg.fonttype"] = "none"  # text, not outlines
    plot, axes = plt.subplots(figsize=(8, 4.2))
    places: list[float] = []
    at = 0.0
    for measured in figures["work"].values():
        begin = at
        for client, value in measured.items():
            axes.barh(at, value, color=COLOURS[client])
            axes.text(value + 0.06, at, f"{client} {value:.2f}", va="center", size=8)
            at += 1
        places.append((begin + at - 1) / 2)
        at += 0.7
    axes.set_yticks(places, list(figures["work"]))
    axes.invert_yaxis()
    axes.set_xlim(right=1.2 * max(max(m.values()) for m in figures["work"].values()))
    axes.set_title(figures["what"], size=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    plot.tight_layout()
    plot.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    draw(sys.argv[1])
