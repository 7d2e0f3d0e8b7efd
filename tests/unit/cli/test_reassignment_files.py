"""The JSON of kafka-reassign-partitions: what it reads, writes and refuses."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._cli.reassignment.files import (
    BadFile,
    assignment_document,
    read_assignment,
    read_topics,
    throttled_replicas,
)
from kafkaio.types import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_what_the_tool_prints_is_read() -> None:
    printed = (
        '{"version":1,"partitions":[{"topic":"a","partition":1,"replicas":[2,1],'
        '"log_dirs":["any","any"]},{"topic":"a","partition":0,"replicas":[3]}]}'
    )
    assert read_assignment(printed) == {A1: (2, 1), A0: (3,)}


def test_topics_to_plan_for_are_read() -> None:
    text = '{"topics": [{"topic": "b"}, {"topic": "a"}, {"topic": "b"}], "version": 1}'
    assert read_topics(text) == ["b", "a"]


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.builds(TopicPartition, st.sampled_from(["a", "b", "ab"]), st.integers(0, 9)),
        st.lists(st.integers(0, 9), min_size=1, unique=True).map(tuple),
        min_size=1,
    )
)
def test_what_is_written_is_read(
    replicas: dict[TopicPartition, tuple[int, ...]],
) -> None:
    assert read_assignment(json.dumps(assignment_document(replicas))) == replicas


def entry(**fields: object) -> str:
    whole = {"topic": "a", "partition": 0, "replicas": [1]} | fields
    there = {name: value for name, value in whole.items() if value is not None}
    return json.dumps({"partitions": [there]})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON: "),
        ("[]", "it must be a JSON object"),
        ('{"version": 2, "partitions": []}', "version: 2 is unknown, only 1 is known"),
        ("{}", "partitions: a list is missing"),
        ('{"partitions": []}', "partitions: the list is empty"),
        ('{"partitions": [1]}', r"partitions\[0\] must be a JSON object"),
        (entry(topic=None), r"partitions\[0\].topic is missing"),
        (entry(topic=""), r"partitions\[0\].topic must be a name"),
        (entry(partition=-1), r"partitions\[0\].partition must be a number of at le"),
        (entry(partition=True), r"partitions\[0\].partition must be a number"),
        (entry(replicas=[]), r"partitions\[0\].replicas must be a list of node ids"),
        (entry(replicas=["1"]), r"partitions\[0\].replicas must be a list of node ids"),
        (entry(replicas=[1, 1]), r"partitions\[0\].replicas: a broker occurs twice"),
        (entry(log_dirs=[]), r"partitions\[0\].log_dirs must be a list of 1"),
        (entry(log_dirs=["/x"]), r"partitions\[0\].log_dirs: '/x': moves between log"),
        (
            json.dumps({"partitions": json.loads(entry())["partitions"] * 2}),
            r"partitions\[1\]: a-0 occurs twice",
        ),
    ],
)
def test_a_bad_file_names_the_place(text: str, reason: str) -> None:
    with pytest.raises(BadFile, match=reason):
        read_assignment(text)


def test_a_file_without_topics_is_refused() -> None:
    with pytest.raises(BadFile, match="topics: the list is empty"):
        read_topics('{"topics": []}')


def test_throttled_are_the_replicas_that_are_there_and_those_that_come() -> None:
    current = {A0: (1, 2), A1: (2, 3), B0: (1,)}
    wanted = {A0: (2, 3), A1: (3, 1), B0: (1,)}
    assert throttled_replicas(current, wanted) == {"a": ("0:1,0:2,1:2,1:3", "0:3,1:1")}
