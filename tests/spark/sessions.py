"""Sessions of Spark for tests and benchmarks, with Spark's own connector beside ours.

A process has one session at a time. `Sessions` keeps it from test to test, and replaces
it when another one is wanted, which takes a second; the first one takes ten.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from py4j.java_gateway import JavaGateway
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kafkaio.testing.kafka._jars import Jar, fetch_jars, pinned
from kafkaio.testing.kafka._java import find_java

ROOT: Final = Path(__file__).parents[2]
#: Two threads, four attempts of each task.
LOCAL: Final = "local[2,4]"
_MINIMUM_JAVA: Final = 17
_SPARK: Final = "org.apache.spark"
#: Spark's own connector, and its Avro, the newest that can be had; they run in Spark
#: 4.3, too.
_CONNECTOR: Final = (
    Jar(
        group=_SPARK,
        artifact="spark-avro_2.13",
        version="4.2.0",
        sha256="4c186cedc03cbe4ee356a94b32232b347ef48611c3209400b3a77e4fe4abff4f",
    ),
    Jar(
        group=_SPARK,
        artifact="spark-sql-kafka-0-10_2.13",
        version="4.2.0",
        sha256="64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        group=_SPARK,
        artifact="spark-token-provider-kafka-0-10_2.13",
        version="4.2.0",
        sha256="641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c",
    ),
    Jar(
        group="org.apache.commons",
        artifact="commons-pool2",
        version="2.12.1",
        sha256="5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
    ),
)
#: The Kafka client that the connector was built with.
_CLIENT_VERSION: Final = "3.9.2"
#: The JVM compiles less, and uses fewer threads: tests end before that would pay.
SHORT_LIVED: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


def connector_jars() -> list[Path]:
    """Return the jars of Spark's own connector and Avro, fetched if need be.

    Raises:
        KafkaNotStarted: one could not be fetched, or is not the pinned one.
    """
    clients = pinned(_CLIENT_VERSION, "broker")
    client = next(jar for jar in clients if jar.artifact == "kafka-clients")
    return fetch_jars([*_CONNECTOR, client])


def environment() -> dict[str, str]:
    """Return what processes of Spark need: a Java, this Python, this checkout."""
    java = find_java(_MINIMUM_JAVA).path.resolve()
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "JAVA_HOME": str(java.parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a session is made with.

    Attributes:
        directory: for all files of the session.
        master: where tasks run.
        memory: heap of the driver.
        java_options: of the driver.
        unix_sockets: whether Python workers are reached by Unix sockets, not by TCP.
        config: further properties of Spark.
    """

    directory: Path
    master: str = LOCAL
    memory: str = "1g"
    java_options: str = SHORT_LIVED
    unix_sockets: bool = False
    config: Mapping[str, str] = field(default_factory=dict)

    def properties(self) -> dict[str, str]:
        """Return the properties of Spark."""
        return {
            "spark.app.name": "kafkaio",
            "spark.master": self.master,
            "spark.driver.memory": self.memory,
            "spark.driver.extraJavaOptions": self.java_options,
            "spark.jars": ",".join(map(str, connector_jars())),
            "spark.local.dir": str(self.directory / "local"),
            "spark.log.level": "ERROR",
            "spark.python.unix.domain.socket.enabled": str(self.unix_sockets).lower(),
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self.directory / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **self.config,
        }

    def open(self) -> SparkSession:
        """Start a session. Heap and options of the driver are those of the first."""
        os.environ.update(environment())
        # Or each process of Spark would compile all of kafkaio anew.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        builder = SparkSession.builder
        # What an earlier session was made with must not come back.
        builder._options.clear()
        return builder.config(map=dict(self.properties())).getOrCreate()


class Sessions:
    """The one session of this process, as a context manager; its end ends the JVM."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._session: SparkSession | None = None

    def __enter__(self) -> Sessions:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        gateway: JavaGateway | None = SparkContext._gateway
        if gateway is not None:
            process = gateway.proc
            gateway.shutdown()
            process.stdin.close()  # at which the JVM ends
            process.wait()
            SparkContext._gateway = SparkContext._jvm = None

    def get(self, settings: Settings) -> SparkSession:
        """Return a session with some settings: the last one if it has the same."""
        if self._session is None or settings != self._settings:
            self.stop()
            self._session, self._settings = settings.open(), settings
        return self._session

    def stop(self) -> None:
        """Stop the session, if there is one, with its queries."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):  # it may have been stopped by a test
                end_queries(session)
            session.stop()


def end_queries(session: SparkSession) -> None:
    """Stop all streaming queries of a session."""
    for query in session.streams.active:
        query.stop()
