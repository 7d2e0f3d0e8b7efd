"""Start an Apache Kafka, and run the benchmarks that compare clients against it.

``KAFKAIO_BENCH_RUNNER`` (or ``--runner``) names the folder of the runner, which has
``bench.py``. The arguments after ``--`` go to the runner::

    python benchmarks/run.py -- --clients kafkaio,aiokafka --scenario p1,c1 --repeat 5

Without a runner, or with ``--serve``, the program starts the broker, prints its
address and waits until Enter is pressed, for profilers and experiments. ``--bootstrap``
measures against a running cluster.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._releases import DEFAULT_VERSION

ADAPTER = Path(__file__).resolve().with_name("adapter.py")
RUNNER_VARIABLE = "KAFKAIO_BENCH_RUNNER"


@contextlib.contextmanager
def broker(args: argparse.Namespace) -> Iterator[str]:
    """Run one broker with Kafka's own timers, threads and buffers; give its address."""
    if args.bootstrap:
        yield args.bootstrap
        return
    with Kafka(version=args.kafka, fast=False, heap=args.heap) as kafka:
        yield kafka.bootstrap_servers


def bench(runner: Path, bootstrap: str, rest: list[str]) -> int:
    """Run the runner, and return its exit status."""
    adapters = [str(ADAPTER), *filter(None, [os.environ.get("BENCH_ADAPTERS")])]
    environment = {**os.environ, "BENCH_ADAPTERS": os.pathsep.join(adapters)}
    command = [sys.executable, str(runner / "bench.py"), "--bootstrap", bootstrap]
    command += rest
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runner",
        type=Path,
        default=os.environ.get(RUNNER_VARIABLE),
        help=f"folder of the runner; ${RUNNER_VARIABLE} by default",
    )
    parser.add_argument("--bootstrap", help="a running cluster: HOST:PORT")
    parser.add_argument(
        "--kafka", default=DEFAULT_VERSION, help="version of the broker"
    )
    parser.add_argument("--heap", default="1g", help="the broker's largest heap")
    parser.add_argument("--serve", action="store_true", help="only run the broker")
    parser.add_argument("rest", nargs="*", help="arguments of the runner, after --")
    args = parser.parse_args()
    if args.runner is not None and not (args.runner / "bench.py").is_file():
        parser.error(f"no bench.py in {args.runner}")
    with broker(args) as bootstrap:
        if args.serve or args.runner is None:
            print(bootstrap, flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                input("Press Enter to stop the broker. ")
            return 0
        return bench(args.runner, bootstrap, args.rest)


if __name__ == "__main__":
    sys.exit(main())
