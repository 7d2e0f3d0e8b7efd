"""Markers in a topic: its making, its strangers, and groups in its place."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kafkaio._client import Client
from kafkaio._producer import Producer
from kafkaio.admin import Admin, NewTopic
from kafkaio.errors import ConfigurationError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark._exactly_once import TaskAttempt, TaskName
from kafkaio.spark._marker_groups import BEYOND, GroupMarkers
from kafkaio.spark._marker_log import (
    MarkerLog,
    MarkerUndecided,
    TopicMarkers,
    TopicRefused,
)
from kafkaio.spark._marker_names import marker_scope, output_scope
from kafkaio.spark._marker_records import (
    MarkerReader,
    begun_record,
    done_record,
    key_of,
    rows_record,
    verified_record,
)
from kafkaio.spark._marker_state import Outcome, RowsMarker, RowSum
from kafkaio.spark._marker_stores import store_of
from kafkaio.spark._markers import delete_markers, list_markers
from kafkaio.testing._broker.faults import error
from kafkaio.types import TopicPartition
from tests.spark.torture_protocol import batches_of
from tests.unit.producer.transactional import until
from tests.unit.spark.test_exactly_once import (
    NAME,
    ROWS,
    VALUES,
    World,
    in_world,
    of_task,
    put,
    run_of,
)

SCOPE = marker_scope("kafkaio", "orders")
ROWS_OF = RowSum(3, 7)
MARKERS = TopicPartition("markers", 0)


@pytest.fixture(autouse=True)
def _forgets_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkaio.spark._marker_stores._warned", set())


# ---- reading -------------------------------------------------------------------------


def test_a_marker_counts_when_its_transaction_is_committed() -> None:
    reader = MarkerReader()
    reader.record(7, *begun_record(SCOPE, 2, 5, "a"), 1)
    reader.record(7, *rows_record(SCOPE, 2, 5, "a", ROWS_OF), 2)
    assert reader.state(SCOPE).tasks == {}
    assert reader.state(SCOPE).open[2].producer_id == 7
    reader.control(7, 1)
    assert reader.state(SCOPE).tasks == {2: RowsMarker(5, "a", ROWS_OF, 2)}
    assert reader.state(SCOPE).open == {}


@pytest.mark.parametrize("kind", [0, 1, None, 5])
def test_what_a_control_batch_does(kind: int | None) -> None:
    reader = MarkerReader()
    reader.record(7, *rows_record(SCOPE, 2, 5, "a", ROWS_OF), 2)
    reader.control(8, 1)
    reader.control(7, kind)
    state = reader.state(SCOPE)
    assert (list(state.tasks), list(state.open)) == (
        [2] if kind == 1 else [],
        [] if kind in {0, 1} else [2],
    )


def test_rows_without_an_end_are_undecided() -> None:
    reader = MarkerReader()
    reader.record(7, *rows_record(SCOPE, 2, 5, "a", ROWS_OF), 2)
    reader.record(7, *begun_record(SCOPE, 2, 6, "b"), 2)
    assert reader.is_undecided(SCOPE, 2)
    assert not reader.is_undecided(SCOPE, 1)
    assert not reader.is_undecided("other", 2)


def test_a_late_done_does_not_take_a_version_back() -> None:
    reader = MarkerReader()
    for version in (3, 5, 4):
        reader.record(-1, *done_record(SCOPE, version, "a", ROWS_OF), version)
    done = reader.state(SCOPE).done
    assert done is not None
    assert done.version == 5


def test_deleted_markers_are_gone() -> None:
    reader = MarkerReader()
    reader.record(-1, *rows_record(SCOPE, 2, 5, "a", ROWS_OF), 0)
    reader.record(-1, *verified_record(SCOPE, 2, 5, "a"), 0)
    reader.record(-1, *done_record(SCOPE, 5, "a", ROWS_OF), 0)
    assert reader.scopes == [SCOPE]
    for key in reader.keys(SCOPE):
        reader.record(-1, key, None, 0)
    assert reader.scopes == []
    reader.record(-1, key_of(SCOPE, "task", 2), None, 0)
    assert reader.strangers == 0


@given(st.none() | st.binary() | st.text().map(str.encode), st.none() | st.binary())
def test_no_record_of_somebody_else_is_a_crash(
    key: bytes | None, value: bytes | None
) -> None:
    reader = MarkerReader()
    reader.record(-1, key, value, 0)
    assert reader.state(SCOPE).tasks == {}


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"7",
        b"[]",
        b"{}",
        b'{"version": "x", "run": ""}',
        b'{"version": 1, "run": 2}',
        b'{"version": -1, "run": "", "rows": 1, "digest": "0", "way": 1}',
        b'{"version": 1, "run": "", "rows": 1}',
        b'{"version": 1, "run": "", "rows": 1, "digest": "x", "way": 1}',
        b'{"version": true, "run": "", "rows": 1, "digest": "0", "way": 1}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_value_that_is_no_marker(value: bytes) -> None:
    reader = MarkerReader()
    reader.record(-1, key_of(SCOPE, "task", 2), value, 0)
    assert reader.strangers == 1
    assert reader.state(SCOPE).tasks == {}


# ---- the topic -----------------------------------------------------------------------


def test_the_topic_is_made_compacted_with_one_partition() -> None:
    async def body(world: World) -> None:
        await world.write()
        client = await world.client()
        assert await client.partitions_for("markers") == {"markers": [0]}
        assert await world.seen() == sorted(VALUES)

    in_world(body, auto_create_topics=False)


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_loses_markers_is_refused(policy: str) -> None:
    async def body(world: World) -> None:
        async with Admin(await world.client()) as admin:
            configs = {"cleanup.policy": policy}
            await admin.create_topics([NewTopic("markers", 1, configs=configs)])
        with pytest.raises(ConfigurationError, match=f"cleanup.policy={policy}"):
            await world.write()
        assert await world.seen() == []

    in_world(body)


def test_records_of_others_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        await world.write()
        client = await world.client()
        async with Producer(client) as producer:
            for value in (b"hello", None, b"{}"):
                await producer.send("markers", value, key=b"[1]", partition=0)
        assert (await world.write()).outcome is Outcome.REPEATED

    in_world(body)
    assert "3 records that are not markers" in caplog.text


def test_what_compaction_leaves_says_the_same() -> None:
    async def body(world: World) -> None:
        for version in range(20):
            name = TaskName(app="orders", version=version, task=3)
            await world.write([f"{version}"], name=name, run=f"run-{version}")
        await until(lambda: not world.broker.control.open_transactions())
        before = await world.state()
        world.broker.control.skip_time(86_400)
        world.broker.control.tidy()
        assert await world.state() == before
        last = TaskName(app="orders", version=19, task=3)
        again = await world.write(["19"], name=last, run="again")
        assert again.outcome is Outcome.VERIFIED

    in_world(body)


def test_a_log_that_is_shorter_than_what_was_read_is_read_anew() -> None:
    async def body(world: World) -> None:
        attempt = await world.attempt()
        await attempt.run(batches_of(ROWS), put)
        await until(lambda: not world.broker.control.open_transactions())
        log = MarkerLog.of(attempt.client, "markers")
        for position in (10, 1_000_000):
            log.reader = MarkerReader()
            log.reader.position = position
            again = TaskAttempt(
                attempt.client,
                NAME,
                marker_topic="out",
                config=attempt.options(),
                run="again",
                markers=attempt.markers,
            )
            result = await again.run(batches_of(ROWS), put)
            assert result.outcome is Outcome.VERIFIED
        log.reader.position = 1_000_000
        await log.read_all(attempt.client)
        assert list(log.reader.state(output_scope(SCOPE, None)).tasks) == [3]

    in_world(body)


def test_an_end_that_is_missing_keeps_a_task_from_writing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(world: World) -> None:
        await world.write()
        # As where the control batch of the marker's partition was lost.
        monkeypatch.setattr(MarkerReader, "control", lambda *_: None)
        with pytest.raises(MarkerUndecided, match="its end is missing in markers-0"):
            await world.write()
        assert await world.seen() == sorted(VALUES)

    in_world(body)


# ---- groups in its place -------------------------------------------------------------


def test_where_the_topic_may_not_be_made_groups_keep_the_markers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(world: World) -> None:
        refusal = error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        rule = world.broker.faults.on("CreateTopics", refusal)
        for task in range(2):
            await attempted(world, task, 2, "one")
        # Somebody makes the topic in the middle of the batch.
        world.broker.faults.remove(rule)
        again = [await attempted(world, task, 2, "two") for task in range(2)]
        assert [each.outcome for each in again] == [Outcome.VERIFIED] * 2
        assert await world.seen() == sorted(VALUES)

    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        in_world(body, auto_create_topics=False)
    (warning,) = [each for each in caplog.messages if "may not be created" in each]
    assert "grant Create" in warning
    assert "groups keep the markers" in warning


async def attempted(world: World, task: int, tasks: int, run: str) -> Any:
    client = await world.client()
    name, rows = of_task(task, tasks)
    made = await world.attempt(name=name, run=run)
    store = await store_of(client, topic="markers", groups_at="out")
    attempt = TaskAttempt(
        client,
        name,
        marker_topic=store.topic,
        config=made.options(),
        run=run,
        markers=store,
    )
    return await attempt.run(batches_of(rows), put)


def test_what_is_written_to_one_topic_says_nothing_of_another() -> None:
    # Two sinks of a query have its id, where they are not named.
    async def body(world: World) -> None:
        client = await world.client()
        outcomes = []
        for output in ("out", "other", "out"):
            store = TopicMarkers(client, "markers", None, output)
            made = await world.attempt()
            attempt = TaskAttempt(
                client,
                NAME,
                marker_topic="out",
                config=made.options(),
                run=output,
                markers=store,
            )
            result = await attempt.run(batches_of(ROWS), put)
            outcomes.append(result.outcome)
            await until(lambda: not world.broker.control.open_transactions())
        assert outcomes[-1] is Outcome.REPEATED
        assert await world.seen() == sorted(VALUES * 2)
        found = await list_markers(client, "kafkaio", "markers")
        assert [(each.app, each.topic) for each in found] == [
            ("orders", "other"),
            ("orders", "out"),
        ]

    in_world(body)


def test_a_topic_that_was_named_is_not_replaced_by_groups() -> None:
    async def body(world: World) -> None:
        refusal = error(ErrorCode.POLICY_VIOLATION)
        world.broker.faults.on("CreateTopics", refusal)
        client = await world.client()
        for _ in range(2):
            with pytest.raises(TopicRefused, match="grant Create, Describe"):
                await store_of(client, topic="markers", groups_at=None)
        asked = [one.api for one in world.broker.requests]
        assert asked.count(ApiKey.CREATE_TOPICS) == 1

    in_world(body, auto_create_topics=False)


def test_a_topic_that_may_not_be_seen_is_replaced_by_groups(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Client.partitions_for

    async def refuse_markers(client: Client, topic: str) -> dict[str, list[int]]:
        if topic == "markers":
            raise broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "describe it")
        return await found(client, topic)

    async def body(world: World) -> None:
        client = await world.client()
        monkeypatch.setattr(Client, "partitions_for", refuse_markers)
        store = await store_of(client, topic="markers", groups_at="out")
        assert isinstance(store, GroupMarkers)

    in_world(body)
    assert "may not be seen" in caplog.text


def test_a_group_of_markers_does_not_lag() -> None:
    async def body(world: World) -> None:
        for version in range(3):
            name = TaskName(app="orders", version=version, task=3)
            await world.write(name=name, run=f"{version}")
        client = await world.client()
        for group in (NAME.transactional_id, f"{SCOPE}-batch"):
            at = TopicPartition("out", 0)
            found = (await client.committed(group, [at]))[at]
            assert found is not None
            assert found.offset == BEYOND

    in_world(body, store="groups")


# ---- what was left behind ------------------------------------------------------------


@pytest.mark.parametrize("store", ["topic", "groups"])
def test_markers_are_listed_and_deleted(store: str) -> None:
    async def body(world: World) -> None:
        results = await run_of(world, "one", 3)
        await world.end(results, "one")
        other = TaskName(app="orders-7", version=1, task=0)
        await world.write(name=other)
        client = await world.client()
        await until(lambda: not world.broker.control.open_transactions())
        found = await list_markers(client, "kafkaio", "markers")
        assert [(each.app, each.version, each.tasks) for each in found] == [
            ("orders", 7, 3),
            ("orders-7", 1, 1),
        ]
        assert {each.store for each in found} == {store}
        deleted = await delete_markers(client, "kafkaio", "orders", "markers")
        assert deleted == [f"{SCOPE}-{task}" for task in range(3)]
        found = await list_markers(client, "kafkaio", "markers")
        assert [each.app for each in found] == ["orders-7"]
        assert await delete_markers(client, "kafkaio", "orders", "markers") == []

    in_world(body, store=store)


def test_stores_are_made_of_what_the_options_say() -> None:
    async def body(world: World) -> None:
        client = await world.client()
        groups = await store_of(client, topic=None, groups_at="out")
        assert isinstance(groups, GroupMarkers)
        topic = await store_of(client, topic="markers", groups_at=None)
        assert isinstance(topic, TopicMarkers)

    in_world(body)
