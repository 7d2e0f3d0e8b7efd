"""Offsets in files and in SQLite."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from kafkaio import FileOffsetStore, OffsetStore, OffsetStoreError, SQLiteOffsetStore
from kafkaio._consumer.stores.blocking import ThreadedStore
from kafkaio.errors import UsageError
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset)


def load(
    store: OffsetStore, *partitions: TopicPartition, group: str = "g"
) -> Mapping[TopicPartition, OffsetAndMetadata]:
    # The loop of the tests here jumps over time, and knows nothing of threads.
    return asyncio.run(store.load(GroupMetadata(group_id=group), partitions))


def commit(
    store: OffsetStore,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    group: str = "g",
) -> None:
    asyncio.run(store.commit(GroupMetadata(group_id=group), offsets))


@pytest.fixture(params=[FileOffsetStore, SQLiteOffsetStore])
def make_store(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[], OffsetStore]:
    return lambda: request.param(tmp_path / "offsets")


def test_what_is_committed_is_there_for_whoever_comes_next(
    make_store: Callable[[], OffsetStore],
) -> None:
    offsets = {A: OffsetAndMetadata(7, "é ☃", 3), B: at(2**40)}
    assert load(make_store(), A, B) == {}
    commit(make_store(), offsets)
    assert load(make_store(), A, B, C) == offsets
    commit(make_store(), {A: at(5)})
    assert load(make_store(), A, B) == offsets | {A: at(5)}
    assert load(make_store(), A, group="other") == {}
    assert "offsets" in repr(make_store())


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../g", "x" * 60, "é %"])
def test_any_name_of_a_group_is_a_directory_of_its_own(
    name: str, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    store = FileOffsetStore(root)
    commit(store, {A: at(1)}, group=name)
    assert load(store, A, group=name) == {A: at(1)}
    assert load(store, A) == {}
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    (group,) = root.iterdir()
    (file,) = group.rglob("*0")
    assert file.relative_to(group) == Path("t/0")


def test_a_file_is_replaced_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileOffsetStore(tmp_path)
    commit(store, {A: at(1)})

    def fail(*paths: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            commit(store, {A: at(2)})
    assert load(store, A) == {A: at(1)}
    assert [path.name for path in (tmp_path / "g" / "t").iterdir()] == ["0"]


@pytest.mark.parametrize("text", ["", "5", '{"offset": "x"}', "\xff"])
def test_a_file_that_holds_something_else(tmp_path: Path, text: str) -> None:
    file = tmp_path / "g" / "t" / "0"
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(OffsetStoreError, match=r"g.t.0 holds no offset"):
        load(FileOffsetStore(tmp_path), A)


def test_results_and_offsets_in_one_transaction(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    store = SQLiteOffsetStore(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE result (value TEXT)")
        for value, keep in (("a", True), ("b", False)):
            connection.execute("INSERT INTO result VALUES (?)", (value,))
            SQLiteOffsetStore.put(connection, "g", {A: at(1 if keep else 2)})
            if keep:
                connection.commit()
            else:
                connection.rollback()
        assert connection.execute("SELECT value FROM result").fetchall() == [("a",)]
    assert load(store, A) == {A: at(1)}


def test_a_commit_to_sqlite_is_all_or_nothing(tmp_path: Path) -> None:
    store = SQLiteOffsetStore(tmp_path / "offsets", busy_timeout=0)
    commit(store, {A: at(1), B: at(1)})
    with pytest.raises(sqlite3.Error):
        commit(store, {A: at(2), B: OffsetAndMetadata(2, None)})  # type: ignore[arg-type]  # on purpose
    with closing(sqlite3.connect(tmp_path / "offsets")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            commit(store, {A: at(3)})
    assert load(store, A, B) == {A: at(1), B: at(1)}


def test_a_write_that_nobody_waits_for_does_not_undo_a_later_one() -> None:
    written: list[tuple[str, dict[TopicPartition, OffsetAndMetadata]]] = []
    store = ThreadedStore(
        lambda *_: {}, lambda group, offsets: written.append((group, offsets))
    )
    # Threads may get the lock in another order than that of the calls.
    store._write_newer(2, "g", {A: at(2)})
    store._write_newer(1, "g", {A: at(1), B: at(1)})
    store._write_newer(1, "other", {A: at(1)})
    assert written == [("g", {A: at(2)}), ("g", {B: at(1)}), ("other", {A: at(1)})]


def test_offsets_in_memory_are_none() -> None:
    with pytest.raises(UsageError, match="memory"):
        SQLiteOffsetStore(":memory:")
