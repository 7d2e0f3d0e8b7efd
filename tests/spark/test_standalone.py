"""The standalone cluster runs a job, in processes that have kafkaio."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.standalone import Standalone

JOB = """
import sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master(sys.argv[1])
    .config("spark.executor.memory", "512m").config("spark.ui.enabled", "false")
    .config("spark.log.level", "ERROR").getOrCreate())
def version(_):
    import kafkaio
    yield kafkaio.__version__
print(set(spark.sparkContext.parallelize(range(4), 4).mapPartitions(version).collect()))
spark.stop()
"""


@pytest.mark.timeout(120)
def test_executors_have_kafkaio(standalone: Standalone, tmp_path: Path) -> None:
    import kafkaio

    job = tmp_path / "job.py"
    job.write_text(JOB)
    command = [sys.executable, str(job), standalone.url]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    assert out.stdout.strip() == str({kafkaio.__version__})
