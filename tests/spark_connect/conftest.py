"""A session of Spark Connect, with its server, for every test below here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.sessions import SHORT_LIVED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def remote() -> Iterator[SparkSession]:
    """A session whose server PySpark starts, on two threads."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # A client cannot choose what only the start of a server can.
    settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    chosen = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--driver-java-options '{SHORT_LIVED}' {chosen} pyspark-shell"
    )
    session = SparkSession.builder.remote("local[2]").getOrCreate()
    yield session
    session.stop()
