"""The README, the index and the installation page are correct."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import signal
import sys
import tomllib
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

import kafkaio
from kafkaio.testing import Broker, SchemaRegistry

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
INDEX = (ROOT / "docs" / "index.md").read_text()
INSTALLATION = (ROOT / "docs" / "guide" / "installation.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def snippets(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


async def first_lines(program: Path, count: int) -> list[str]:
    """Run a program that ends with Ctrl+C, and return what it prints first."""
    async with asyncio.timeout(60):
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-u", str(program)),
            env=os.environ | {"PYTHONPATH": path},
            stdout=PIPE,
            stderr=PIPE,  # has the traceback of KeyboardInterrupt
        )
        assert process.stdout is not None
        lines = [(await process.stdout.readline()).decode() for _ in range(count)]
        process.send_signal(signal.SIGINT)
        rest, errors = await process.communicate()
    assert rest == b""
    assert errors.rstrip().endswith(b"KeyboardInterrupt")
    return lines


async def test_the_twenty_lines(tmp_path: Path) -> None:
    code, _ = snippets(README)
    assert snippets(INDEX) == [code]
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 20
    program = tmp_path / "twenty_lines.py"
    async with Broker() as broker:
        program.write_text(code.replace("localhost:9092", broker.bootstrap_servers))
        lines = await first_lines(program, 2)
    assert lines == ["acknowledged: 0 0\n", "b'customer-7' b'two apples'\n"]


async def test_records_with_types(tmp_path: Path) -> None:
    _, code = snippets(README)
    program = tmp_path / "typed.py"
    async with Broker(topics={"orders": 1}) as broker, SchemaRegistry() as schemas:
        code = code.replace("localhost:9092", broker.bootstrap_servers)
        program.write_text(code.replace("http://localhost:8081", schemas.url))
        assert await first_lines(program, 1) == ["b'customer-7' 1250\n"]
        assert schemas.subjects() == ["orders-value"]


def test_the_extras() -> None:
    section = INSTALLATION.partition("## Extras\n")[2].partition("\n## ")[0]
    extras = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    assert set(extras) == set(PROJECT["optional-dependencies"])
    for name, requirements in PROJECT["optional-dependencies"].items():
        for requirement in requirements:
            package = re.split(r"[>=;\[]", requirement)[0]
            assert package in extras[name], requirement


def test_the_dependencies() -> None:
    for requirement in PROJECT["dependencies"]:
        assert requirement.split(">=")[0] in INSTALLATION


@pytest.mark.parametrize("value", ["auto", "compiled", "python"])
async def test_the_codecs(value: str) -> None:
    assert re.search(rf"^\| `{value}`", INSTALLATION, re.MULTILINE)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import kafkaio; print(kafkaio.accelerated)"),
        cwd=ROOT,
        env=os.environ | {"KAFKAIO_CODEC": value},
        stdout=PIPE,
        stderr=PIPE,
    )
    output, errors = await process.communicate()
    is_built = importlib.util.find_spec("kafkaio._records._speedups") is not None
    if value == "compiled" and not is_built:
        assert b"ConfigurationError" in errors
    else:
        assert output.decode() == f"{is_built and value != 'python'}\n"


@pytest.mark.parametrize("page", [README, INDEX, INSTALLATION])
def test_a_release_changes_these_pages(page: str) -> None:
    is_released = ".dev" not in kafkaio.__version__
    assert is_released != ("no release on PyPI yet" in page)


def test_the_front_pages_lead_to_the_project() -> None:
    for name in ("Source", "Issues", "Changelog"):
        assert f"[{name}]({PROJECT['urls'][name]})" in INDEX
    assert "pip install kafkaio" in INDEX
    configuration = (ROOT / "docs" / "conf.py").read_text()
    assert f'SOURCE = "{PROJECT["urls"]["Source"]}"' in configuration
    assert f'STABLE = "{PROJECT["urls"]["Documentation"]}"' in configuration
    assert f"[documentation]({PROJECT['urls']['Documentation']})" in README


def test_the_index_ends_with_what_is_inside() -> None:
    captions = re.findall(r"^:caption: (.*)$", INDEX, re.MULTILINE)
    assert captions[:3] == ["Start", "In depth", "Spark and operations"]
    assert captions[-1] == "Inside"
    assert "adr/0" not in INDEX  # docs/adr/README.md lists them
