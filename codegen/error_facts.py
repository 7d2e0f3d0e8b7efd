"""``python -m codegen.error_facts``: read Kafka's table of error codes with a JVM.

Codes, names and retriability are code in Kafka, not schema, so they are asked of the
jar once per release and kept in ``errors.json``; ``python -m codegen`` needs no JVM.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from codegen.jar import fetch, kafka_clients

HERE = Path(__file__).parent


def main() -> None:
    """Write ``errors.json``."""
    logging = fetch("org.slf4j", "slf4j-api", "1.7.36")
    path = f"{kafka_clients()}:{logging}"
    command = ["java", "-cp", path, str(HERE / "ErrorFacts.java")]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    (HERE / "errors.json").write_text(run.stdout)


if __name__ == "__main__":
    main()
