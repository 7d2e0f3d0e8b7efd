"""The code in docstrings that needs a real Kafka, as it stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from tests.docstrings import blocks, run
from tests.support.java import Toolbox

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.not_embedded("kills nodes, and runs Java against Kafka's own classes"),
]
BLOCKS = dict(blocks())
ECHO = """
import java.util.Scanner;

public class Echo {
    public static void main(String[] args) {
        if (args.length == 1) System.out.println("joined");
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) System.out.println(args[1] + " " + in.nextLine());
    }
}
"""


async def test_a_cluster() -> None:
    code = BLOCKS["kafkaio.testing.kafka._kafka:Kafka"]
    await run(code, {"Kafka": Kafka, "kafkaio": kafkaio})


async def test_a_java_program(
    real_kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests" / "java").mkdir(parents=True)
    (tmp_path / "tests" / "java" / "Echo.java").write_text(ECHO)
    monkeypatch.chdir(tmp_path)
    code = BLOCKS["tests.support.java:JavaProgram"]
    toolbox = Toolbox(real_kafka.options.release)
    await run(code, {"toolbox": toolbox, "kafka": real_kafka, "Path": Path})
