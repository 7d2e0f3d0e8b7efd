"""A driver in a process of its own: a stream from files to a topic, in a cluster.

``python -m tests.spark.torture_job MASTER DIRECTORY OPTIONS`` runs the query of
`tests.spark.torture_sink` until its input is done, and ends with 0, or with 1 if the
query has failed. The options of the write are JSON; the files are in ``in`` below the
directory. `Job` starts it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from pyspark.errors import StreamingQueryException

from tests.spark.sessions import Settings, environment
from tests.spark.torture_sink import FaultySource, stream_of

__all__ = ["Job"]

_SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
}
#: The first attempt that takes half as long again as most others gets a second one.
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "200ms",
}
_SCHEDULER = "org.apache.spark.scheduler.TaskSetManager"


class Job:
    """A running driver; ``with`` ends it.

    Args:
        master: the cluster's address.
        directory: has the input, and gets the checkpoint, events and log.
        speculates: whether Spark may start second attempts.
        tasks: number of tasks of a micro-batch.
        options: the options of the write.
    """

    def __init__(
        self,
        master: str,
        directory: Path,
        *,
        speculates: bool = False,
        tasks: int = 4,
        **options: str,
    ) -> None:
        given = json.dumps({**options, "speculates": speculates, "tasks": tasks})
        command = [sys.executable, "-m", __name__, master, str(directory), given]
        self._log = (directory / "driver.log").open("ab")
        self.process = subprocess.Popen(
            command,
            env=os.environ | environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        self._log.close()

    def kill(self) -> None:
        """SIGKILL the driver, its JVM as well."""
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()

    def wait(self, seconds: float) -> int:
        """Return how it ended: 0, 1, or the negative number of a signal."""
        return self.process.wait(seconds)


def _main(master: str, directory: Path, options: dict[str, str]) -> int:
    tasks = int(options.pop("tasks"))
    config = _SETTINGS | (_SPECULATION if options.pop("speculates") else {})
    spark = Settings(directory=directory, master=master, config=config).open()
    log4j = spark._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(_SCHEDULER, log4j.Level.INFO)
    spark.dataSource.register(FaultySource)
    stream = stream_of(spark, directory / "in", tasks)
    writer = stream.writeStream.format("faulty").trigger(availableNow=True)
    own = {
        "test.faults": str(directory),
        "test.driver": str(os.getpid()),
        "checkpointLocation": str(directory / "checkpoint"),
    }
    try:
        writer.options(**own, **options).start().awaitTermination()
    except StreamingQueryException as error:
        sys.stdout.write(f"{str(error)[:2000]}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])))
