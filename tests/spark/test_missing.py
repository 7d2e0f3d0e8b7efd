"""Executors that lack a package: what the driver is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.spark.reading import FAILURES
from tests.spark.sessions import Sessions, Settings
from tests.spark.standalone import Standalone

#: Runs when Python starts, and hides a package from what is imported afterwards, while
#: there is a file: later sessions of this JVM keep the variable that names its folder.
HIDING = """
import os, sys

class Hiding:
    def find_spec(self, name, path=None, target=None):
        is_on = os.path.exists(os.path.join(os.path.dirname(__file__), "hiding"))
        if is_on and name.partition(".")[0] == "{package}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hiding())
"""


@pytest.mark.nightly
@pytest.mark.parametrize("package", ["kafkaio", "pyarrow"])
def test_a_package_that_executors_lack(
    sessions: Sessions,
    standalone: Standalone,
    real_kafka: Kafka,
    topic: TopicFactory,
    tmp_path: Path,
    package: str,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDING.format(package=package))
    spark = sessions.get(
        Settings(
            directory=tmp_path,
            master=standalone.url,
            config={
                "spark.executor.memory": "512m",
                "spark.executorEnv.PYTHONPATH": str(tmp_path),
                "spark.task.maxFailures": "1",
            },
        )
    )
    name = topic(partitions=1)
    servers = {"kafka.bootstrap.servers": real_kafka.bootstrap_servers}
    rows = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    rows.write.format("kafka").options(**servers, topic=name).save()
    # PySpark itself wants pyarrow before it comes to ours.
    said = r"No module named 'pyarrow'"
    if package == "kafkaio":
        said = (
            r"task \d \(host .*No module named 'kafkaio'; .* needs kafkaio\[spark\]: "
            "install it on every host, or ship"
        )
    (tmp_path / "hiding").touch()
    with pytest.raises(FAILURES, match=said):
        spark.read.format("kafkaio").options(**servers, subscribe=name).load().count()
    with pytest.raises(FAILURES, match=said):
        rows.write.format("kafkaio").options(**servers, topic=name).mode(
            "append"
        ).save()
    (tmp_path / "hiding").unlink()
