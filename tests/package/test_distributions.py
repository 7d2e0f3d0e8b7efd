"""What is released: the wheel, the source archive, and the page that an index shows.

Both are built once, the wheel from the source archive. Without KAFKAIO_COMPILED the
codec is left out, which takes seconds.
"""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from email.message import Message
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
IS_COMPILED = bool(os.environ.get("KAFKAIO_COMPILED"))
#: What a wheel unpacks to, and what an install has on top: the bytecode.
WHEEL_BYTES = 7_900_000
INSTALLED_BYTES = 19_300_000
#: Of the compiled module: six times as large with debug information.
MODULE_BYTES = 1_000_000
#: Seconds since 1970: when the files of a reproducible build were made.
EPOCH = 1_700_000_000
#: What only a checkout needs.
CHECKOUT_ONLY = {".gitignore", ".pre-commit-config.yaml"}


@dataclass(frozen=True)
class Built:
    wheel: Path
    archive: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    place = tmp_path_factory.mktemp("dist")
    env = dict(os.environ)
    env["SOURCE_DATE_EPOCH"] = str(EPOCH)
    # A sanitizer's or a debugger's flags make another module than a release has.
    env.pop("CFLAGS", None)
    env.pop("KAFKAIO_NO_EXTENSION", None)
    if not IS_COMPILED:
        env["KAFKAIO_NO_EXTENSION"] = "1"
    command = ["uv", "build", "--python", sys.executable, "--out-dir", str(place)]
    done = subprocess.run(
        [*command, str(ROOT)], env=env, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr[-5_000:]
    (wheel,) = place.glob("*.whl")
    (archive,) = place.glob("*.tar.gz")
    return Built(wheel, archive)


@pytest.fixture(scope="module")
def metadata(built: Built) -> Message:
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(wheel.read(name))


def test_a_wheel_has_what_a_program_imports(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        paths = [PurePosixPath(name) for name in wheel.namelist()]
    packages = [path for path in paths if not path.parts[0].endswith(".dist-info")]
    assert {path.parts[0] for path in packages} == {"kafkaio", "pyspark_kafkaio"}
    kinds = {path.suffix for path in packages} - {".so", ".pyd"}
    assert kinds == {".json", ".py", ".pyi", ".typed"}
    assert not [
        path for path in packages if path.name.startswith(("test_", "conftest"))
    ]


def test_every_module_of_the_checkout_is_in_the_wheel(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        there = set(wheel.namelist())
    wanted = {
        path
        for path in tracked()
        if path.startswith(("kafkaio/", "pyspark_kafkaio/"))
        and not path.endswith((".pyx", ".pxi"))
    }
    assert not wanted - there


def test_a_wheel_has_no_servers_of_our_own_tests(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {
            PurePosixPath(name).stem.lstrip("_")
            for name in wheel.namelist()
            if name.startswith("kafkaio/testing/")
        }
    assert not names & {"kdc", "oidc", "sidecars", "tools", "zookeeper"}


def test_the_size_of_an_install(built: Built, tmp_path: Path) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        wheel.extractall(tmp_path)
    assert size(tmp_path) <= WHEEL_BYTES
    # Without the folder's own name, which each file would have in it.
    how = ["-q", "-j", "2", "-s", str(tmp_path)]
    subprocess.run(
        [sys.executable, "-m", "compileall", *how, str(tmp_path)], check=True
    )
    assert size(tmp_path) <= INSTALLED_BYTES


#: Runs on what was unpacked alone: none of it may need the checkout.
PROGRAM = """
import asyncio, sys
import kafkaio, kafkaio.testing

async def main():
    async with kafkaio.testing.Broker() as broker:
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            await producer.send("orders", b"two apples")
        options = {"topics": "orders", "auto_offset_reset": "earliest"}
        async with kafkaio.Consumer(broker.bootstrap_servers, **options) as consumer:
            async for record in consumer:
                return record.value

assert kafkaio.__file__.startswith(sys.argv[1]), kafkaio.__file__
print(kafkaio.accelerated, asyncio.run(main()))
"""


def test_an_install_works_alone(built: Built, tmp_path: Path) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        wheel.extractall(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    env.pop("KAFKAIO_CODEC", None)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    run = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert not run.returncode, run.stderr
    assert run.stdout.strip() == f"{IS_COMPILED} b'two apples'"


@pytest.mark.skipif(not IS_COMPILED, reason="without the compiled codec")
def test_the_compiled_module_has_no_debug_information(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        (module,) = (
            info for info in wheel.infolist() if "/_speedups." in info.filename
        )
        content = wheel.read(module)
    assert module.file_size <= MODULE_BYTES
    if sys.platform == "linux":  # the names of ELF's sections
        assert b"\0.text\0" in content
        assert b"\0.debug_info\0" not in content
        assert b"\0.symtab\0" not in content


def test_the_source_archive_has_all_that_is_tracked(built: Built) -> None:
    with tarfile.open(built.archive) as archive:
        files = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    for wanted in ("CHANGELOG.md", "docs/index.md", "tests/conftest.py", "noxfile.py"):
        assert wanted in files
    assert tracked() - files <= CHECKOUT_ONLY
    made = {"PKG-INFO", "setup.cfg"}
    beside = {name for name in files - tracked() - made if ".egg-info/" not in name}
    assert not beside


def test_the_source_archive_says_nothing_about_its_build(built: Built) -> None:
    with tarfile.open(built.archive) as archive:
        members = archive.getmembers()
    assert {member.mtime for member in members} == {EPOCH}
    assert {(it.uid, it.gid, it.uname, it.gname) for it in members} == {(0, 0, "", "")}
    names = [member.name for member in members]
    assert names == sorted(names)
    assert built.archive.read_bytes()[4:8] == EPOCH.to_bytes(4, "little")  # gzip's own


def test_an_index_shows_where_to_go(metadata: Message) -> None:
    urls = dict(entry.split(", ", 1) for entry in metadata.get_all("Project-URL", []))
    assert urls.keys() >= {"Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith("https://") for url in urls.values())
    assert metadata["Author"]


def test_the_links_of_the_description_lead_to_files(metadata: Message) -> None:
    description = str(metadata.get_payload())
    readme = (ROOT / "README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", description)
    relative = [link for link in links if not re.match(r"https?://|#|mailto:", link)]
    assert links
    assert not relative
    source = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    prefix = f"{source['project']['urls']['Source']}/blob/"
    ours = [link.removeprefix(prefix) for link in links if link.startswith(prefix)]
    # Each begins with a tag or a branch.
    targets = [link.split("/", 1)[1].partition("#")[0] for link in ours]
    assert len(targets) == len(re.findall(r"\]\((?!\w+:|#)", readme))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def tracked() -> set[str]:
    """Return the files that the checkout has, or skip where there is no checkout."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no checkout")
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
