"""Java programs; any program takes their place here, so no Java is needed."""

import signal
import sys
from pathlib import Path

import pytest

from kafkaio.testing.kafka._java import Java
from kafkaio.testing.kafka._releases import KafkaNotStarted, find_release
from tests.support.java import (
    JavaFailed,
    JavaProgram,
    RunningJava,
    Toolbox,
    compiler_of,
)


def python(code: str) -> list[str | Path]:
    return [sys.executable, "-I", "-S", "-u", "-c", code]


async def test_a_running_program_is_read_line_by_line() -> None:
    code = "for line in iter(input, 'end'): print(line * 2)"
    async with RunningJava(python(code)) as running:
        await running.write("ab\ncd\n")
        assert await running.readline() == "abab"
        assert await running.readline() == "cdcd"
        await running.write("end\n")
        with pytest.raises(JavaFailed, match="no further line"):
            await running.readline()
        assert await running.wait() == 0


async def test_a_line_in_parts_waits_for_the_rest() -> None:
    code = "import sys; sys.stdout.write('a'); input(); print('b')"
    async with RunningJava(python(code)) as running:
        with pytest.raises(TimeoutError):
            await running.readline(timeout=0.2)
        await running.write("\n")
        assert await running.readline() == "ab"


async def test_a_running_program_can_be_asked_to_end_or_killed() -> None:
    code = "import time; print('up'); time.sleep(60)"
    async with RunningJava(python(code)) as running:
        await running.readline()
        with pytest.raises(TimeoutError):
            await running.wait(timeout=0.01)
        running.terminate()
        assert await running.wait() == -signal.SIGTERM
    async with RunningJava(python(code)) as running:
        running.kill()
        assert await running.wait() == -signal.SIGKILL


async def test_leaving_the_block_ends_the_program() -> None:
    running = RunningJava(python("import time; print('up'); time.sleep(60)"))
    async with running:
        await running.readline()
    assert await running.wait() == -signal.SIGKILL


async def test_its_errors_can_be_read_while_it_runs() -> None:
    code = "import sys; print('why', file=sys.stderr); print('up'); input()"
    async with RunningJava(python(code)) as running:
        await running.readline()
        assert running.stderr == "why\n"
        await running.close_input()
        assert [line async for line in running] == []


async def test_a_program_not_entered_says_so() -> None:
    running = RunningJava(["true"])
    with pytest.raises(RuntimeError, match="async with"):
        await running.readline()
    with pytest.raises(RuntimeError, match="async with"):
        running.kill()


async def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with RunningJava([tmp_path / "absent"]):
            pytest.fail("started")


FAKE_JAVAC = """#!/bin/sh
while [ "$1" != -d ]; do shift; done
mkdir "$2" && echo compiled >> "$2/../../count" && cp "$3" "$2/"
"""


@pytest.fixture
def toolbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolbox:
    """A toolbox whose compiler copies and whose Java prints its arguments."""
    monkeypatch.setenv("KAFKAIO_CACHE", str(tmp_path / "cache"))
    for name, text in (("javac", FAKE_JAVAC), ("java", '#!/bin/sh\necho "$@"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    found = Toolbox(find_release())
    monkeypatch.setattr(found, "_java", Java(tmp_path / "java", 17))
    monkeypatch.setattr(found, "_classpath", [Path("kafka.jar")])
    return found


async def test_a_tool_runs_on_the_whole_class_path(toolbox: Toolbox) -> None:
    output = await toolbox.run("Main", "x", "y")
    assert output.lines[0].endswith("-cp kafka.jar Main x y")
    async with await toolbox.start("Main") as running:
        assert (await running.readline()).endswith("Main")


async def test_the_classes_of_the_jars_are_archived_once(
    toolbox: Toolbox, tmp_path: Path
) -> None:
    (tmp_path / "java").write_text(
        f"""#!/bin/sh
echo "$@"
case "$1" in -XX:ArchiveClassesAtExit=*)
    echo trained >> {tmp_path}/count; touch "${{1#*=}}";;
esac
"""
    )
    output = await toolbox.run("Main")
    [archive] = (tmp_path / "cache" / "classes").glob("*.jsa")
    assert f"-XX:SharedArchiveFile={archive}" in output.lines[0].split()
    (source := tmp_path / "Echo.java").touch()
    output = await toolbox.program(source).run("a")
    # What is archived is the beginning of the class path.
    programs = tmp_path / "cache" / "programs"
    assert f" -cp kafka.jar:{programs}" in output.lines[0]
    assert (tmp_path / "count").read_text() == "trained\n"


async def test_a_program_is_compiled_once_for_its_sources(
    toolbox: Toolbox, tmp_path: Path
) -> None:
    source = tmp_path / "Echo.java"
    source.write_text("one")
    program = toolbox.program(source)
    for _ in range(2):
        output = await program.run("a")
        assert output.lines[0].endswith("Echo a")
    count = tmp_path / "cache" / "programs" / "count"
    assert count.read_text().count("compiled") == 1
    source.write_text("two")
    async with await program.start("b") as running:
        assert (await running.readline()).endswith("Echo b")
    assert count.read_text().count("compiled") == 2


async def test_a_directory_of_sources_has_a_main(
    toolbox: Toolbox, tmp_path: Path
) -> None:
    sources = tmp_path / "program"
    sources.mkdir()
    (sources / "Main.java").write_text("x")
    assert (await JavaProgram(sources, toolbox).run()).lines[0].endswith(" Main")
    other = JavaProgram(sources, toolbox, "Other")
    assert (await other.run()).lines[0].endswith(" Other")


async def test_a_program_that_does_not_compile_says_why(
    toolbox: Toolbox, tmp_path: Path
) -> None:
    (tmp_path / "javac").write_text("#!/bin/sh\necho 'line 1: no'; exit 1\n")
    source = tmp_path / "Echo.java"
    source.touch()
    with pytest.raises(JavaFailed, match="line 1: no"):
        await toolbox.program(source).run()


def test_the_compiler_lies_beside_the_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    java = Java(tmp_path / "java", 17)
    java.path.touch()
    with pytest.raises(KafkaNotStarted, match="no javac"):
        compiler_of(java)
    beside = java.path.with_name("javac")
    beside.touch()
    assert compiler_of(java) == beside
