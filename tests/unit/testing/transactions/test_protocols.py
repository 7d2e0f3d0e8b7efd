"""The two protocols against the embedded broker: what real Kafka was seen to answer."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.testing.broker.calls import started
from tests.unit.testing.transactions.calls import (
    MARKERS,
    Identity,
    Speaker,
    end_offset,
    producers,
    visible,
)

BOTH = pytest.mark.parametrize("bumps", [False, True], ids=["tv1", "tv2"])


@BOTH
async def test_a_commit_and_an_abort(bumps: bool) -> None:
    async with started(topics={"t": 2}) as (broker, caller):
        tx = Speaker(caller, bumps=bumps)
        pid, epoch = await tx.start()
        assert epoch == 0
        for number, (commit, last) in enumerate([(True, 0), (False, 2), (True, 4)]):
            for index in (0, 1):
                sequence = 0 if bumps else number
                assert await tx.send(sequence, index=index) == 0
            assert await end_offset(caller, 1) == last
            assert await end_offset(caller, 0) == last + 1
            assert broker.control.unstable_since(("t", 0)) == {pid: last}
            assert await tx.end(commit=commit) == 0
            await asyncio.sleep(MARKERS)
            assert await end_offset(caller, 1) == last + 2
            expected = number + 1 if bumps else 0
            assert tx.who == Identity(pid, expected)
            (state,) = await producers(caller)
            assert state.current_txn_start_offset == -1
            assert state.producer_epoch == expected
            assert state.last_sequence == (-1 if bumps else number)
        assert await visible(caller) == [b"v", b"v"]
        found = broker.control.transaction("tx")
        assert found is not None
        assert (found.state, found.partitions) == ("CompleteCommit", ())


@BOTH
async def test_markers_are_written_after_the_answer(bumps: bool) -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        broker.control.delay_markers(1.0)
        tx = Speaker(caller, bumps=bumps)
        await tx.start()
        assert await tx.send(0) == 0
        assert await tx.end(commit=True) == 0
        assert await end_offset(caller, 1) == 0
        loop = asyncio.get_running_loop()
        before = loop.time()
        assert await tx.send(0 if bumps else 1) == 51
        waited = loop.time() - before
        assert 0.09 < waited < 0.13 if bumps else waited < 0.01
        await asyncio.sleep(1.0)
        assert await end_offset(caller, 1) == 2
        assert await tx.send(0 if bumps else 1) == 0
        # One that waits for the end of the transaction before is served.
        broker.control.delay_markers(0.05)
        assert await tx.end(commit=True) == 0
        if bumps:
            assert await tx.write(0) == 0
