"""The outbox of the how-to page, and a consumer that sees each event once."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import pytest

import kafkaio
from kafkaio.testing import Broker
from tests.pages import python_blocks, run_block
from tests.support.patience import HANGS

LOCAL = "localhost:9092"
COUNT = 30


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"orders": 3}) as broker, asyncio.timeout(HANGS):
        yield broker


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as db:
        yield db


async def page(broker: Broker, number: int) -> dict[str, Any]:
    """What a block of the page defines; its program does not run."""
    block = python_blocks("howto/outbox.md", {LOCAL: broker.bootstrap_servers})[number]
    return await run_block(block.replace("def main()", "def program()"))


async def shop(broker: Broker, db: sqlite3.Connection) -> dict[str, Any]:
    """The service and its relay, on a database with orders of three customers."""
    names = await page(broker, 0) | await page(broker, 1)
    db.executescript(names["SCHEMA"])
    for n in range(COUNT):
        names["place_order"](db, f"order-{n}", n)
    return names


async def sent(broker: Broker, count: int) -> list[kafkaio.Record]:
    async with kafkaio.Consumer(
        broker.bootstrap_servers, topics="orders", auto_offset_reset="earliest"
    ) as consumer:
        return [await anext(consumer) for _ in range(count)]


def left(db: sqlite3.Connection) -> int:
    (count,) = db.execute("SELECT count(*) FROM outbox").fetchone()
    assert isinstance(count, int)
    return count


async def test_rows_become_records_in_their_order(
    broker: Broker, db: sqlite3.Connection
) -> None:
    names = await shop(broker, db)
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        assert await names["relay_some"](db, producer) == COUNT
        assert await names["relay_some"](db, producer) == 0
    assert left(db) == 0
    records = await sent(broker, COUNT)
    assert sorted(int(record.value or b"") for record in records) == [*range(COUNT)]
    for partition in range(3):
        values = [int(r.value or b"") for r in records if r.partition == partition]
        assert values == sorted(values)


async def test_an_order_that_is_not_stored_is_not_sent(
    broker: Broker, db: sqlite3.Connection
) -> None:
    names = await shop(broker, db)
    with pytest.raises(sqlite3.IntegrityError):
        names["place_order"](db, "order-0", 100)
    assert left(db) == COUNT


async def test_from_the_row_that_failed_on_all_is_sent_again(
    broker: Broker, db: sqlite3.Connection
) -> None:
    names = await shop(broker, db)
    with db:
        db.execute("UPDATE outbox SET value = zeroblob(2000000) WHERE id = 11")
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        for remaining in (COUNT - 10, COUNT - 10):
            with pytest.raises(kafkaio.RecordTooLarge):
                await names["relay_some"](db, producer)
            assert left(db) == remaining


async def test_the_relay_goes_on_after_an_error(
    broker: Broker, db: sqlite3.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    names = await shop(broker, db)
    with db:
        db.execute("UPDATE outbox SET value = zeroblob(2000000) WHERE id = 11")
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        task = asyncio.create_task(names["relay"](db, producer))
        output = ""
        while "will be sent again" not in output:
            await asyncio.sleep(0.01)
            output += capsys.readouterr().out
        with db:
            db.execute("UPDATE outbox SET value = ? WHERE id = 11", (b"10",))
        while left(db):
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])


async def test_what_is_sent_twice_is_done_once(
    broker: Broker, db: sqlite3.Connection
) -> None:
    names = await shop(broker, db)

    def no_deletes(action: int, *more: object) -> int:
        denied = action == sqlite3.SQLITE_DELETE
        return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK

    # The relay dies between the acknowledgements and its DELETE, and starts again.
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        db.set_authorizer(no_deletes)
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            await names["relay_some"](db, producer)
        db.set_authorizer(None)
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        assert await names["relay_some"](db, producer) == COUNT
    records = await sent(broker, 2 * COUNT)
    billing = await page(broker, 2)
    db.executescript(billing["SCHEMA"])
    with db:
        db.execute("INSERT INTO turnover VALUES (0)")
    done = [billing["bill"](db, record) for record in records]
    assert done.count(True) == done.count(False) == COUNT
    (total,) = db.execute("SELECT total FROM turnover").fetchone()
    assert total == sum(range(COUNT))


async def test_the_programs_of_the_page(
    broker: Broker,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The relay and the consumer as they stand there, each on its own database."""
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as db:
        await shop(broker, db)
        with closing(sqlite3.connect("billing.db")) as bills:
            bills.executescript((await page(broker, 2))["SCHEMA"])
            with bills:
                bills.execute("INSERT INTO turnover VALUES (0)")
            blocks = python_blocks("howto/outbox.md", {LOCAL: broker.bootstrap_servers})
            tasks = [asyncio.create_task(run_block(each)) for each in blocks[1:]]
            total = 0
            while total != sum(range(COUNT)):
                assert not any(task.done() for task in tasks)
                await asyncio.sleep(0.01)
                (total,) = bills.execute("SELECT total FROM turnover").fetchone()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        assert left(db) == 0
    assert capsys.readouterr().out == ""
