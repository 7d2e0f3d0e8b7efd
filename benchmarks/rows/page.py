"""The tables of docs/performance.md, between markers, from the JSON of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from benchmarks.rows.compare import Line, Run
from benchmarks.rows.model import CPU
from benchmarks.rows.table import AIOKAFKA, CONFLUENT, FRANZ, ROWS

PEERS = (FRANZ, CONFLUENT, AIOKAFKA)
HEAD = (
    f"| work | unit | kafkaio | {' | '.join(PEERS)} | ratio |",
    "|---|---|--:|--:|--:|--:|--:|",
)
#: The lines of the README: some where kafkaio is ahead, and some where it is not.
BRIEF = (
    "produce-100/cpu/enqueue_nowait",
    "consume-100/cpu/async-for",
    "await-64/cpu/await-send",
    "await/cpu/await-send",
    "far-50/rate/enqueue_nowait",
    "first-ack/process",
    "commit-each/cpu",
)
#: What a record costs by its shape: rows of producing and of consuming, and the ways.
SHAPES = (
    ("100 B", "produce-100", "consume-100"),
    ("100 B, key and two headers", "produce-100-keyed", "consume-100-keyed"),
    ("1 KiB", "produce-1k", "consume-1k"),
    ("1 KiB, lz4", "produce-1k-lz4", "consume-1k-lz4"),
    ("1 KiB, zstd", "produce-1k-zstd", "consume-1k-zstd"),
    ("1 KiB over TLS", "produce-1k-tls", ""),
    ("10 KiB", "produce-10k", "consume-10k"),
    ("100 B, 10 partitions, no keys", "keyless-10", ""),
    ("100 B, 512 partitions", "", "consume-512"),
    ("100 B, 1,000 partitions, no keys", "keyless-1000", ""),
    ("100 B, 10,000 partitions, no keys", "keyless-10000", ""),
)
WRITING = ("`enqueue_nowait`", "`send_many`")
READING = ("`async for`", "`batches()`")


def written(page: str, run: Mapping[str, object]) -> str:
    """Return a page with the tables of a run."""
    found = Run(run, ROWS)
    page = between(page, "rows", [*table(found), "", about(run)])
    return between(page, "shapes", shapes(found))


def brief(page: str, run: Mapping[str, object]) -> str:
    """Return the README with some rows of a run."""
    found = Run(run, ROWS)
    lines = {line.key: line for line in found.lines()}
    chosen = [row(lines[key]) for key in BRIEF if key in lines]
    return between(page, "figures", [*HEAD, *chosen, "", about(run)])


def between(page: str, name: str, lines: Iterable[str]) -> str:
    """Replace what stands between the two markers of a name."""
    begin = f"<!-- {name}: written by `python -m benchmarks.plot` -->"
    end = f"<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    _, ends, after = rest.partition(end)
    if not found or not ends:
        raise ValueError(f"the page has no markers of {name}")
    text = "\n".join(lines)
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def shapes(run: Run) -> Iterator[str]:
    """Yield the table of what a record costs by its shape."""
    yield f"| µs of CPU per record | {' | '.join((*WRITING, *READING))} |"  # noqa: RUF001
    yield "|---|--:|--:|--:|--:|"
    for title, producing, consuming in SHAPES:
        cells = [
            number(run.figure(row, f"kafkaio {way}", CPU))
            for row, ways in ((producing, WRITING), (consuming, READING))
            for way in ways
        ]
        yield f"| {title} | {' | '.join(cells)} |"


def table(run: Run) -> Iterator[str]:
    yield from HEAD
    section = ""
    for line in run.lines():
        if line.row.section != section:
            section = line.row.section
            yield f"| **{section}** | | | | | | |"
        yield row(line)


def row(line: Line) -> str:
    title = line.row.title
    if line.way.call:
        title += f": {line.way.call}"
    peers = " | ".join(number(line.peers.get(name)) for name in PEERS)
    ratio = f"{line.ratio:.2f}" if line.peers else ""
    if line.peers and line.ratio > 1:
        ratio = f"**{ratio}**"
    return (
        f"| {title} | {line.measure.unit} | {number(line.figure)} | {peers} | {ratio} |"
    )


def number(figure: float | None) -> str:
    """Return a figure with three digits that count."""
    if figure is None:
        return ""
    if figure >= 1_000:
        return f"{figure:,.0f}"
    for above, digits in ((100, 0), (10, 1), (1, 2)):
        if figure >= above:
            return f"{figure:.{digits}f}"
    return f"{figure:.2g}"


def about(run: Mapping[str, object]) -> str:
    versions, machine = run["versions"], run["machine"]
    assert isinstance(versions, Mapping)
    assert isinstance(machine, Mapping)
    took_part = ", ".join(f"{name} {version}" for name, version in versions.items())
    date = str(run["date"])[:10]
    return (
        f"Measured on {date}: {took_part}; {machine['cpu']}, {machine['cores']} cores,"
        f" {machine['kernel']}; medians of rounds: {run['rounds']},"
        f" while everything else on the machine used {run['other']:.0f} % of a core."
    )
