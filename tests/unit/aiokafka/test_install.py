"""`install`, and ``python -m kafkaio.aiokafka``, each in a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

import kafkaio.aiokafka
from kafkaio.aiokafka.__main__ import main
from kafkaio.testing import Broker


def run(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def printed(code: str, folder: Path) -> str:
    done = run(["-c", textwrap.dedent(code)], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_module_has_two_names_and_one_object(tmp_path: Path) -> None:
    printed(
        """
        import kafkaio.aiokafka
        kafkaio.aiokafka.install()
        kafkaio.aiokafka.install()   # a second time is harmless

        import aiokafka, aiokafka.errors, aiokafka.admin.client
        from aiokafka.structs import TopicPartition
        from aiokafka.producer.producer import _missing
        from aiokafka.coordinator.assignors.roundrobin import (
            RoundRobinPartitionAssignor as assignor,
        )
        import sys

        assert aiokafka is kafkaio.aiokafka
        assert aiokafka.errors is kafkaio.aiokafka.errors
        assert sys.modules["aiokafka.admin.client"] is sys.modules[
            "kafkaio.aiokafka.admin.client"
        ]
        assert TopicPartition is kafkaio.TopicPartition
        assert assignor.__module__.startswith("kafkaio.aiokafka.")
        for name, module in list(sys.modules.items()):
            if name.startswith("aiokafka."):
                assert module is sys.modules["kafkaio." + name], name
                # It still says where it stands.
                assert module.__spec__.name == "kafkaio." + name, name
        """,
        tmp_path,
    )


def test_imports_of_what_is_not_there(tmp_path: Path) -> None:
    printed(
        """
        import kafkaio.aiokafka
        kafkaio.aiokafka.install()
        for name in ("aiokafka.conn", "aiokafka.protocol.admin"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                assert error.name in name and "kafkaio.aiokafka" in str(error)
            else:
                raise AssertionError(name)
        import importlib
        importlib.invalidate_caches()
        """,
        tmp_path,
    )


def test_another_aiokafka_is_imported_already(tmp_path: Path) -> None:
    package = tmp_path / "aiokafka"
    package.mkdir()
    (package / "__init__.py").write_text("")
    done = run(
        [
            "-c",
            "import sys; sys.path.insert(0, '.'); import aiokafka, kafkaio.aiokafka\n"
            "kafkaio.aiokafka.install()",
        ],
        tmp_path,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("kafkaio.UsageError: aiokafka is imported already (")
    assert "python -m kafkaio.aiokafka" in last


def test_uninstall(tmp_path: Path) -> None:
    package = tmp_path / "aiokafka"
    package.mkdir()
    (package / "__init__.py").write_text("ours = False")
    printed(
        """
        import sys
        sys.path.insert(0, ".")
        import kafkaio.aiokafka
        kafkaio.aiokafka.uninstall()   # nothing to undo
        kafkaio.aiokafka.install()
        import aiokafka.errors
        kafkaio.aiokafka.uninstall()
        assert not [name for name in sys.modules if name.startswith("aiokafka")]
        import aiokafka
        assert aiokafka.ours is False
        """,
        tmp_path,
    )


DISTRIBUTIONS = """
    import sys
    from importlib import metadata
    {hide}
    import kafkaio.aiokafka
    kafkaio.aiokafka.install()
    print(metadata.version("aiokafka"))
    found = [each for each in metadata.distributions() if each.name == "aiokafka"]
    assert len(found) == 1, found
    assert "aiokafka" in metadata.packages_distributions()
    assert not list(metadata.distributions(path=["."]))
    kafkaio.aiokafka.uninstall()
    {after}
"""
#: An environment without aiokafka: its folder of installed packages is hidden.
HIDE = """
    real = metadata.MetadataPathFinder.find_distributions
    def without(context=metadata.DistributionFinder.Context()):
        return (each for each in real(context) if each.name != "aiokafka")
    metadata.MetadataPathFinder.find_distributions = staticmethod(without)
    for finder in sys.meta_path:
        if getattr(finder, "__name__", "") == "PathFinder":
            finder.find_distributions = staticmethod(without)
"""


def test_a_distribution_where_none_is_installed(tmp_path: Path) -> None:
    code = DISTRIBUTIONS.format(
        hide=HIDE,
        after="""
    try:
        metadata.version("aiokafka")
    except metadata.PackageNotFoundError:
        print("gone")
    """,
    )
    assert printed(code, tmp_path).split() == ["0.14.0", "gone"]


def test_a_distribution_that_is_installed_is_found(tmp_path: Path) -> None:
    installed = pytest.importorskip("aiokafka").__version__
    code = DISTRIBUTIONS.format(hide="", after='print(metadata.version("aiokafka"))')
    assert printed(code, tmp_path).split() == [installed, installed]


# ---- python -m kafkaio.aiokafka ------------------------------------------------------

PROGRAM = """
import os, sys
import aiokafka
from beside import VALUE
import __main__
print(aiokafka.__name__, __name__, sys.argv, VALUE, __main__.__dict__ is globals())
if __name__ == "__main__" and sys.argv[1:] == ["fail"]:
    sys.exit(3)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "beside.py").write_text("VALUE = 7")
    return folder


def expected(name: str, *arguments: str) -> str:
    argv = [name, *arguments]
    return f"kafkaio.aiokafka __main__ {argv} 7 True\n"


def start(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return run(["-m", "kafkaio.aiokafka", *arguments], folder)


def test_a_file(program: Path) -> None:
    name = "folder/program.py"
    done = start([name, "a", "-b"], program.parent)
    assert done.stdout == expected(name, "a", "-b"), done.stderr


def test_a_folder(program: Path) -> None:
    done = start(["folder", "a"], program.parent)
    assert done.stdout == expected("folder", "a"), done.stderr


@pytest.mark.parametrize("given", [["-m", "program"], ["-mprogram"]])
def test_a_module(program: Path, given: list[str]) -> None:
    done = start([*given, "a"], program)
    assert done.stdout == expected(str(program / "program.py"), "a"), done.stderr


@pytest.mark.parametrize("joined", [True, False])
def test_code(program: Path, joined: bool) -> None:
    given = [f"-c{PROGRAM}"] if joined else ["-c", PROGRAM]
    done = start([*given, "a"], program)
    assert done.stdout == expected("-c", "a"), done.stderr


def test_the_status_of_the_program_is_that_of_the_command(program: Path) -> None:
    assert start(["folder/program.py", "fail"], program.parent).returncode == 3


@pytest.mark.parametrize("given", [[], ["-m"], ["-c"], ["--nothing"], ["-x", "y"]])
def test_wrong_arguments(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m kafkaio.aiokafka")
    assert sys.modules.get("aiokafka") is not kafkaio.aiokafka


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage:")


def test_kafkaio_alone_does_not_load_it(tmp_path: Path) -> None:
    printed(
        """
        import sys, kafkaio
        kafkaio.Producer, kafkaio.Consumer, kafkaio.Admin
        assert not [name for name in sys.modules if "aiokafka" in name]
        import kafkaio.aiokafka
        assert "importlib.metadata" not in sys.modules
        """,
        tmp_path,
    )


#: As a program on aiokafka is written, with nothing of kafkaio in it.
SERVICE = """
import asyncio, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code


async def main(servers):
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    answer = await admin.create_topics([NewTopic("orders", 2, 1)])
    assert [code for _, code, _ in answer.topic_errors] == [0]
    answer = await admin.create_topics([NewTopic("orders", 2, 1)])
    assert for_code(answer.topic_errors[0][1]) is TopicAlreadyExistsError
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(10):
            await producer.send_and_wait("orders", b"%d" % number, key=b"key")
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="service",
        auto_offset_reset="earliest",
    )
    await consumer.start()
    found = []
    async for record in consumer:
        assert isinstance(record, ConsumerRecord)
        found.append(record.value)
        if len(found) == 10:
            break
    await consumer.stop()
    print(b" ".join(found).decode(), issubclass(KafkaError, RuntimeError))


asyncio.run(main(sys.argv[1]))
"""


async def test_a_service_of_aiokafka_runs_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(SERVICE)
    async with Broker() as broker:
        done = await asyncio.to_thread(
            start, ["service.py", broker.bootstrap_servers], tmp_path
        )
    assert done.stdout == "0 1 2 3 4 5 6 7 8 9 True\n", done.stderr
    assert done.stderr == ""
