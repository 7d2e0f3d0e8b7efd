"""The example as a declarative pipeline, which runs on Spark Connect.

Spark Connect needs packages, pandas among them, that each Python process of Spark then
imports. So it has an environment of its own, and not that of the tests in Spark.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kafkaio
from kafkaio.testing import Broker
from tests.spark_connect.pipelines import spark_pipelines

ROOT = Path(__file__).parents[2]
PIPELINE = ROOT / "examples" / "pipeline"
ORDERS, SEED = 2_000, 11


def example(name: str) -> ModuleType:
    """A module of the example; it imports the others by their names."""
    sys.path.insert(0, str(PIPELINE))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(PIPELINE))


@pytest.mark.timeout(600)
@pytest.mark.nightly
async def test_spark_runs_what_is_declared(tmp_path: Path) -> None:
    run, check, orders = (example(name) for name in ("run", "check", "orders"))
    directory = tmp_path / "pipeline"
    shutil.copytree(PIPELINE, directory)
    spec = directory / "declarative" / "spark-pipeline.yml"
    storage = spec.read_text().replace("/tmp/kafkaio-pipeline", f"{tmp_path}/storage")
    spec.write_text(storage)
    async with Broker() as broker:
        servers = broker.bootstrap_servers
        settings = run.Settings(servers, "local[2]", tmp_path, "d", ORDERS, SEED)
        await run.generate(settings)
        code, output = await spark_pipelines(spec, {"KAFKA": servers, "NAME": "d"})
        assert code == 0, output
        assert "Flow revenue has COMPLETED" in output
        async with kafkaio.Client(servers) as client:
            found = await check.totals(client, "d.revenue")
    made = orders.orders(SEED, ORDERS)
    expected = orders.streamed_revenue(made, orders.regions(SEED))
    assert dict(found) == expected
    assert len(found) == len(expected) > 20
