"""What people get wrong in their first hour: each mistake is named, and at once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kafkaio.testing import Broker
from tests.support.cli import environment, run, run_beside


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=2, topics={"orders": 3}) as broker:
        with environment(
            KAFKAIO_BOOTSTRAP_SERVERS=broker.bootstrap_servers,
            XDG_CONFIG_HOME="/nonexistent",
        ):
            yield broker


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        # Names of what is not there. Without a look at the brokers these wait for the
        # broker to come, for the whole time of the call.
        ("configs get broker 9", 1, "broker 9 does not exist: the brokers are 0, 1"),
        ("configs get logger 0 9", 1, "broker 9 does not exist: the brokers are 0, 1"),
        ("configs set broker 9 log.retention.ms=1", 1, "broker 9 does not exist"),
        ("configs unset broker 9 log.retention.ms", 1, "broker 9 does not exist"),
        ("transactions hanging --broker 9", 1, "broker 9 does not exist"),
        ("groups offsets nosuch", 1, "group 'nosuch' does not exist"),
        ("groups offsets nosuch --json", 1, "group 'nosuch' does not exist"),
        ("groups reset g --to-latest --topic nosuch", 1, "describe topic nosuch"),
        ("consume ord* -e", 2, "'ord*' is a pattern: name topics"),
        # Values that cannot be.
        ("groups reset g --to-datetime 1960-01-01", 2, "'1960-01-01' is before 1970"),
        ("offsets orders --at 1960-01-01", 2, "'1960-01-01' is before 1970"),
        ("users set bob --iterations 99999999", 2, "'--iterations'"),
    ],
)
async def test_a_mistake_is_named(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, line: str, code: int, message: str
) -> None:
    monkeypatch.setenv("KAFKAIO_NEW_PASSWORD", "x")
    result = (await run_beside(*line.split(), "--timeout", "10")).check(code)
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert "GROUP" not in result.out


async def test_a_shift_by_nothing_is_where_the_group_is(broker: Broker) -> None:
    reset = ("groups", "reset", "g")
    await run_beside(*reset, "--to-earliest", "--topic", "orders", "--execute")
    rows = (await run_beside(*reset, "--shift-by", "0")).check().rows
    assert rows[1:] == [["g", "orders", str(n), "0", "0"] for n in range(3)]


async def test_the_offsets_of_a_group_that_is_there(broker: Broker) -> None:
    reset = ("groups", "reset", "g", "--to-earliest", "--topic", "orders:0")
    (await run_beside(*reset, "--execute")).check()
    some = (await run_beside("groups", "offsets", "g", "nosuch")).check(3)
    assert [row[:4] for row in some.rows[1:]] == [["g", "orders", "0", "0"]]
    assert some.err == "kafkaio groups offsets: group 'nosuch' does not exist\n"


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "1e300"])
def test_no_time_for_a_call(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("topics", "list", "--timeout", text).check(2)
    assert result.err.startswith("kafkaio topics list: Invalid value for '--timeout'")
    monkeypatch.setenv("KAFKAIO_TIMEOUT", text)
    result = run("topics", "list").check(2)
    assert result.err.startswith("kafkaio topics list: KAFKAIO_TIMEOUT: ")


@pytest.mark.parametrize(
    "line",
    ["lag --watch --interval nan", "groups watch g --interval inf"],
)
def test_no_time_between_two_looks(line: str) -> None:
    assert "Invalid value for '--interval'" in run(*line.split()).check(2).err


def test_an_option_without_its_value_is_no_name() -> None:
    assert "behind --" not in run("produce", "orders", "-k").check(2).err
    assert "behind --" in run("topics", "describe", "-b").check(2).err
