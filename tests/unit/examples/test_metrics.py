"""The examples of metrics and traces run as they stand; the dashboard fits."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import yaml

from kafkaio.metrics._gauges import GAUGES
from kafkaio.metrics.prometheus import COUNTERS, HISTOGRAMS, Family

EXAMPLES = Path(__file__).parents[3] / "examples"
DEBUG = "PYTHONASYNCIODEBUG"
GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "metrics.md"
#: Every sample that a scrape can have, without buckets' own labels.
SAMPLES = {
    *(f"kafkaio_{name}_total" for name in COUNTERS),
    *(f"kafkaio_{name}{end}" for name in HISTOGRAMS for end in ("_bucket", "_count")),
    *(f"kafkaio_{name}" for name in GAUGES),
}


async def run(name: str) -> str:
    # In asyncio's debug mode it tells of slow steps.
    env = {key: value for key, value in os.environ.items() if key != DEBUG}
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLES / name, stdout=PIPE, stderr=PIPE, env=env
    )
    output, errors = (each.decode() for each in await process.communicate())
    assert (process.returncode, errors) == (0, "")
    return output


async def test_the_service_with_metrics_shows_its_figures() -> None:
    output = await run("metrics_service.py")
    topic = '{client_id="orders",topic="orders"} 500.0'
    assert f"kafkaio_produced_records_total{topic}" in output
    assert f"kafkaio_consumed_records_total{topic}" in output
    lag = 'kafkaio_consumer_lag{client_id="orders",group="orders",topic="orders"}'
    assert f"{lag} 0.0" in output


async def test_a_trace_goes_through_two_services() -> None:
    output = await run("traced_service.py")
    placed = ["place order", "place order"]
    assert f"process orders; parent None; links {placed}" in output
    parcels = re.findall(
        r"trace (\d+): process parcels; parent process orders; "
        r"links \['process orders'\]",
        output,
    )
    assert len(parcels) == 2
    assert f"trace {parcels[0]}: process orders" in output


def test_the_dashboard_names_metrics_and_labels_that_exist() -> None:
    board = json.loads((EXAMPLES / "grafana" / "kafkaio.json").read_text())
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    texts += [item["query"] for item in board["templating"]["list"]]
    named = {name for text in texts for name in re.findall(r"\bkafkaio_\w+", text)}
    assert named <= SAMPLES
    assert len(named) > 20
    for text in texts:
        found = re.search(r"by \(([\w, ]+)\)", text)
        [metric, *_] = re.findall(r"\bkafkaio_(\w+)", text) or [""]
        if found is None or not metric:
            continue
        base = re.sub(r"_(total|bucket|count)$", "", metric)
        of = COUNTERS.get(base) or HISTOGRAMS.get(base) or GAUGES[metric]
        labels = {*of.labels, "client_id", "le" if isinstance(of, Family) else ""}
        assert set(found[1].split(", ")) <= labels, text


def test_the_alerts_of_the_guide_name_metrics_and_labels_that_exist() -> None:
    (block,) = re.findall(
        r"^```yaml\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    (group,) = yaml.safe_load(block)["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"]) > 5
    for rule in group["rules"]:
        named = re.findall(r"\bkafkaio_(\w+)", rule["expr"])
        assert named
        for name in named:
            assert f"kafkaio_{name}" in SAMPLES
            of = COUNTERS.get(name.removesuffix("_total")) or GAUGES[name]
            for by in re.findall(r"by \(([\w, ]+)\)", rule["expr"]):
                assert set(by.split(", ")) <= {*of.labels}


def test_the_guide_lists_every_metric() -> None:
    text = re.sub(
        r"^```yaml\n.*?^```", "", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL
    )
    listed = set(re.findall(r"`(kafkaio_\w+)`", text))
    assert listed == {
        *(f"kafkaio_{name}_total" for name in COUNTERS),
        *(f"kafkaio_{name}" for name in HISTOGRAMS),
        *(f"kafkaio_{name}" for name in GAUGES),
    }
