"""Java and kafkaio read the same texts for sasl.jaas.config, and in the same way."""

from __future__ import annotations

import random
from base64 import b64encode
from pathlib import Path

import pytest

from kafkaio._config.jaas import parse_jaas
from kafkaio.errors import ConfigurationError
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import Toolbox

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("no broker is needed"),
]

TOOLS = Toolbox(find_release())
SOURCE = Path("tests/java/security/ReadJaas.java")
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
COUNT = 5_000
PIECES = [*"ab1=;\"'\\ \n/*.-_$é€7n#", "/*", "*/", "//"]


def texts() -> list[str]:
    dice = random.Random(1)
    found = [
        "",
        MODULE,
        f"{MODULE} REQUIRED;",
        f'{MODULE} required username="a;b" password="q\\"x\\\\y";',
        f"{MODULE} required password=123;",
        f'{MODULE} required a="b"; {MODULE} required c="d";',
    ]
    for _ in range(COUNT):
        some = "".join(dice.choices(PIECES, k=dice.randint(1, 12)))
        found += [f"{MODULE} required {some};", f'{MODULE} required a="{some}";']
    return found


def word(text: str) -> str:
    return f".{b64encode(text.encode()).decode()}"


def ours(text: str) -> str:
    try:
        module = parse_jaas(text)
    except ConfigurationError:
        return ""
    pairs = [word(each) for pair in sorted(module.options.items()) for each in pair]
    return " ".join([word(module.name), *pairs])


async def test_java_reads_the_same() -> None:
    asked = texts()
    lines = "".join(f"{b64encode(text.encode()).decode()}\n" for text in asked)
    done = await TOOLS.program(SOURCE).run(stdin=lines)
    assert done.returncode == 0, done.stderr
    java = done.stdout.split("\n")[: len(asked)]
    assert sum(map(bool, java)) > COUNT / 3
    for text, found in zip(asked, java, strict=True):
        assert ours(text) == found, text
