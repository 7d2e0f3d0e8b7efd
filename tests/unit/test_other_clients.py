"""Names and arguments of other clients say what kafkaio has instead."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable
from unittest import mock

import aiokafka
import aiokafka.admin
import aiokafka.client
import aiokafka.structs
import confluent_kafka
import confluent_kafka.admin
import confluent_kafka.aio
import pytest

import kafkaio
from kafkaio import _other_clients as other_clients
from kafkaio._public import PropertySet, knows_other_clients
from kafkaio.errors import ArgumentTypeError

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.producer.future import RecordMetadata as KafkaPythonMetadata

#: The public methods of Java's clients, Kafka 4.4, in snake_case.
JAVA = {
    kafkaio.Producer: """init_transactions begin_transaction send_offsets_to_transaction
        prepare_transaction commit_transaction abort_transaction complete_transaction
        send flush partitions_for metrics client_instance_id close
        register_metric_for_subscription unregister_metric_from_subscription""",
    kafkaio.Consumer: """assignment subscription subscribe assign unsubscribe poll
        commit_sync commit_async seek seek_to_beginning seek_to_end position committed
        metrics partitions_for list_topics paused pause resume offsets_for_times
        beginning_offsets end_offsets current_lag group_metadata enforce_rebalance close
        wakeup client_instance_id register_metric_for_subscription
        unregister_metric_from_subscription""",
    kafkaio.ShareConsumer: """subscription subscribe unsubscribe poll acknowledge
        commit_sync commit_async set_acknowledgement_commit_callback metrics close
        acquisition_lock_timeout_ms wakeup client_instance_id
        register_metric_for_subscription unregister_metric_from_subscription""",
    kafkaio.Admin: """create close create_topics delete_topics list_topics
        describe_topics describe_cluster describe_acls create_acls delete_acls
        describe_configs alter_configs incremental_alter_configs
        alter_replica_log_dirs describe_log_dirs describe_replica_log_dirs
        create_partitions delete_records create_delegation_token renew_delegation_token
        expire_delegation_token describe_delegation_token describe_consumer_groups
        list_consumer_groups list_consumer_group_offsets delete_consumer_groups
        delete_consumer_group_offsets elect_leaders alter_partition_reassignments
        list_partition_reassignments remove_members_from_consumer_group
        alter_consumer_group_offsets list_offsets describe_client_quotas
        alter_client_quotas describe_user_scram_credentials
        alter_user_scram_credentials describe_features update_features
        describe_metadata_quorum unregister_broker describe_producers
        describe_transactions abort_transaction list_transactions fence_producers
        list_config_resources list_client_metrics_resources client_instance_id
        add_raft_voter remove_raft_voter describe_share_groups
        list_share_group_offsets describe_classic_groups describe_streams_groups
        delete_share_groups delete_streams_groups list_groups metrics
        force_terminate_transaction register_metric_for_subscription
        unregister_metric_from_subscription""",
}
#: kafkaio's classes, and those of the other clients that have the same task.
CLASSES: list[tuple[type, list[type]]] = [
    (
        kafkaio.Producer,
        [
            aiokafka.AIOKafkaProducer,
            confluent_kafka.Producer,
            confluent_kafka.SerializingProducer,
            confluent_kafka.aio.AIOProducer,
            kafka.KafkaProducer,
        ],
    ),
    (
        kafkaio.Consumer,
        [
            aiokafka.AIOKafkaConsumer,
            confluent_kafka.Consumer,
            confluent_kafka.DeserializingConsumer,
            confluent_kafka.aio.AIOConsumer,
            kafka.KafkaConsumer,
        ],
    ),
    (kafkaio.ShareConsumer, [confluent_kafka.ShareConsumer]),
    (
        kafkaio.Admin,
        [
            aiokafka.admin.AIOKafkaAdminClient,
            confluent_kafka.admin.AdminClient,
            kafka.KafkaAdminClient,
        ],
    ),
    (kafkaio.Client, [aiokafka.client.AIOKafkaClient]),
    (
        kafkaio.RecordMetadata,
        [aiokafka.structs.RecordMetadata, KafkaPythonMetadata],
    ),
    (kafkaio.Poll, [confluent_kafka.Message]),
]
#: What those classes inherit of a tuple or set by hand on a message.
NOT_THEIRS = {"deserialized_key", "deserialized_value"}
TP = kafkaio.TopicPartition("orders", 0)
ANSWERS_ON_311 = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="only without a cost from Python 3.12 on"
)


def public_names(kind: type) -> set[str]:
    """Return the public names of a class of another client."""
    return {name for name in dir(kind) if not name.startswith("_")}


def made(kind: type) -> Any:
    """Return an object of a class of kafkaio."""
    if kind is kafkaio.ShareConsumer:
        return kafkaio.ShareConsumer(group_id="g")
    if kind is kafkaio.Poll:
        return kafkaio.Poll([])
    if kind is kafkaio.RecordMetadata:
        return kafkaio.RecordMetadata("t", 0, 1, 2)
    return kind()


def unanswered(kind: type, names: Iterable[str]) -> list[str]:
    """Return the names that a class neither has nor answers."""
    return [
        name
        for name in sorted(names)
        if not hasattr(kind, name) and not other_clients.attribute_hint(kind, name)
    ]


@pytest.mark.parametrize(("kind", "others"), CLASSES, ids=lambda it: str(it)[:40])
def test_every_public_name_of_the_other_clients_has_an_answer(
    kind: type, others: list[type]
) -> None:
    names = {name for other in others for name in public_names(other)}
    if kind is kafkaio.Poll:
        names = {name for name in names if not name.startswith(("set_", "latency"))}
        names -= {"delivery_count"}
    assert names
    assert not unanswered(kind, names - NOT_THEIRS)


@pytest.mark.parametrize("kind", JAVA)
def test_every_method_of_java_has_an_answer(kind: type) -> None:
    names = JAVA[kind].split()
    assert not unanswered(kind, names)
    camel = [re.sub("_(.)", lambda found: found[1].upper(), name) for name in names]
    assert not unanswered(kind, camel)


def test_no_answer_is_for_a_name_that_is_there() -> None:
    """It would never be read, and may have been true once."""
    for kind in [own for own, _ in CLASSES] + [kafkaio.Transaction]:
        tables = other_clients.NAMES[kind.__name__].values()
        names = [name for table in tables for name in table]
        assert len(names) == len(set(names))
        assert not [name for name in names if hasattr(kind, name)]


def test_every_argument_that_is_answered_is_one_of_a_method_and_not_taken() -> None:
    for method, arguments in other_clients.ARGUMENTS.items():
        if method == "*":
            continue
        owner, name = method.split(".")
        function = getattr(getattr(kafkaio, owner), name)
        taken = inspect.signature(function).parameters
        assert not taken.keys() & arguments.keys(), method


@pytest.mark.parametrize(
    ("kind", "name", "way"),
    [
        (kafkaio.Producer, "send_and_wait", "await producer.send("),
        (kafkaio.Producer, "produce", "producer.enqueue("),
        (kafkaio.Producer, "sendOffsetsToTransaction", "tx.commit_offsets(consumer)"),
        (kafkaio.Producer, "partitionsFor", "in kafkaio: partitions_for"),
        (kafkaio.Consumer, "getmany", "consumer.poll("),
        (kafkaio.Consumer, "commitSync", "await consumer.commit()"),
        (kafkaio.ShareConsumer, "acknowledge", "record.ack()"),
        (kafkaio.Admin, "alter_configs", "incremental_alter_configs"),
        (kafkaio.Client, "coordinator_lookup", "kafkaio.GroupCoordinator("),
        (kafkaio.Poll, "value", "record.value an attribute"),
    ],
)
def test_a_name_of_another_client_says_what_to_write(
    kind: type, name: str, way: str
) -> None:
    thing = made(kind)
    with pytest.raises(AttributeError) as caught:
        getattr(thing, name)
    text = str(caught.value)
    assert text.startswith(f"{kind.__name__!r} object has no attribute {name!r}; ")
    assert way in text
    # Python itself would add its guess, `Did you mean: 'send_many'?`.
    assert "Did you mean" not in "".join(traceback.format_exception(caught.value))
    assert not hasattr(thing, name)
    assert getattr(thing, name, 5) == 5


def test_an_answer_names_the_page_of_its_client() -> None:
    hint = other_clients.attribute_hint
    assert "docs/migration/aiokafka.md" in str(hint(kafkaio.Producer, "stop"))
    assert "docs/migration/confluent-kafka.md" in str(hint(kafkaio.Consumer, "consume"))
    assert "(docs/migration)" in str(hint(kafkaio.Producer, "begin_transaction"))


def test_a_name_that_no_client_has_is_answered_by_python() -> None:
    for kind in (kafkaio.Producer, kafkaio.Consumer):
        thing = made(kind)
        with pytest.raises(AttributeError) as caught:
            thing.nonsense  # noqa: B018
        what = f"{kind.__name__!r} object has no attribute 'nonsense'"
        assert str(caught.value) == what
        assert caught.value.name == "nonsense"
        assert caught.value.obj is thing
        with pytest.raises(AttributeError, match=r"no attribute '_private'$"):
            thing._private  # noqa: B018


def test_a_class_that_is_derived_answers_and_may_have_the_name() -> None:
    class Mine(kafkaio.Producer):
        def stop(self) -> str:
            return "mine"

    producer = Mine()
    assert producer.stop() == "mine"
    with pytest.raises(AttributeError, match=r"'Mine' object .*await producer\.send\("):
        producer.send_and_wait  # type: ignore[attr-defined]  # noqa: B018
    producer.produce = 3  # type: ignore[attr-defined]
    assert producer.produce == 3  # type: ignore[attr-defined]


def test_the_error_of_a_property_is_not_hidden() -> None:
    @knows_other_clients()
    class Consumer:
        @property
        def highwater(self) -> int:
            raise AttributeError("the reason")

        @property
        def deep(self) -> object:
            return self.getmany  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match=r"^the reason$"):
        Consumer().highwater  # noqa: B018
    with pytest.raises(AttributeError, match=r"consumer\.poll"):
        Consumer().deep  # noqa: B018


@pytest.mark.parametrize("kind", [kafkaio.Producer, kafkaio.Consumer, kafkaio.Admin])
def test_names_of_other_clients_are_not_listed(kind: type) -> None:
    thing = made(kind)
    tables = other_clients.NAMES[kind.__name__].values()
    names = {name for table in tables for name in table}
    assert not names & set(dir(kind))
    assert not names & set(dir(thing))
    assert {"start", "close"} <= set(dir(thing))
    assert not [name for name, _ in inspect.getmembers(kind) if name in names]
    double = mock.create_autospec(kind, instance=True)
    for name in names:
        assert not hasattr(double, name), name
    assert isinstance(double.close, mock.AsyncMock)
    with pytest.raises(TypeError):
        double.close(foreign=1)


def test_doubles_of_a_consumer_are_awaited_as_it_is() -> None:
    double = mock.create_autospec(kafkaio.Consumer, instance=True)
    for name in ("poll", "commit", "committed", "position", "end_offsets"):
        assert isinstance(getattr(double, name), mock.AsyncMock), name
    assert not isinstance(double.subscribe, mock.AsyncMock)
    assert inspect.iscoroutinefunction(kafkaio.Consumer.poll)


def test_protocols_do_not_take_a_name_for_a_method() -> None:
    @runtime_checkable
    class Stoppable(Protocol):
        async def stop(self) -> None: ...

    assert not isinstance(kafkaio.Consumer(), Stoppable)
    if sys.version_info >= (3, 12):  # before, the entries of a hot class pass for it
        assert not isinstance(kafkaio.Producer(), Stoppable)


@ANSWERS_ON_311
def test_what_is_made_for_each_record_answers_too() -> None:
    with pytest.raises(AttributeError, match=r"meta\.offset >= 0"):
        made(kafkaio.RecordMetadata).has_offset  # noqa: B018


Call = Callable[[], object]


async def refused(call: Call) -> str:
    """Return the text of the TypeError with which a call, awaited or not, ends."""
    try:
        result = call()
        if inspect.isawaitable(result):
            await result
    except TypeError as error:
        return str(error)
    raise AssertionError("the call was taken")


def wrong_calls() -> dict[str, tuple[Call, str]]:
    consumer: Any = kafkaio.Consumer()
    producer: Any = kafkaio.Producer()
    new: Any = kafkaio.Consumer
    return {
        "a limit in milliseconds": (
            lambda: consumer.poll(timeout_ms=1000),
            "timeout=, in seconds",
        ),
        "confluent's poll": (lambda: consumer.poll(1.0), "poll(timeout=1.0"),
        "a pattern": (
            lambda: consumer.subscribe(pattern="^orders"),
            "re.compile('orders.*')",
        ),
        "a listener": (
            lambda: consumer.subscribe(["orders"], listener=object()),
            "on_assigned=f",
        ),
        "confluent's callback": (
            lambda: consumer.subscribe(["orders"], on_assign=print),
            "on_assigned=f",
        ),
        "asynchronous": (
            lambda: consumer.commit(asynchronous=True),
            "asyncio.create_task(consumer.commit())",
        ),
        "offsets": (lambda: consumer.commit(offsets={TP: 3}), "commit({tp: offset})"),
        "autocommit": (
            lambda: consumer.close(autocommit=False),
            "enable_auto_commit=False",
        ),
        "confluent's seek": (lambda: consumer.seek(TP), "consumer.seek("),
        "one partition": (lambda: consumer.committed(TP), "pass [TopicPartition("),
        "a list": (lambda: consumer.pause([TP]), "several one by one"),
        "topics by position": (
            lambda: new("orders", bootstrap_servers="localhost:9092"),
            "kafkaio.Consumer('host:9092', topics=['orders'])",
        ),
        "several topics by position": (
            lambda: new("orders", "payments"),
            "kafkaio.Consumer('host:9092', topics=['orders'])",
        ),
        "a timestamp": (
            lambda: producer.send("orders", b"v", timestamp_ms=5),
            "it is timestamp=",
        ),
        "a key by position": (
            lambda: producer.send("orders", b"v", b"k"),
            "send(topic, value, key=key",
        ),
        "a report": (
            lambda: producer.send("orders", b"v", on_delivery=print),
            "delivery.add_done_callback(f)",
        ),
        "assignment()": (lambda: consumer.assignment(), "assignment is a property"),
        "subscription()": (
            lambda: consumer.subscription(),
            "subscription is a property",
        ),
        "paused()": (lambda: consumer.paused(), "paused is a property"),
    }


@pytest.mark.parametrize("what", wrong_calls())
async def test_an_argument_of_another_client_says_what_to_write(what: str) -> None:
    call, way = wrong_calls()[what]
    assert way in await refused(call)


async def test_any_other_wrong_argument_is_answered_by_python() -> None:
    consumer: Any = kafkaio.Consumer()
    producer: Any = kafkaio.Producer()
    text = await refused(lambda: consumer.poll(foreign=1))
    assert text == "Consumer.poll() got an unexpected keyword argument 'foreign'"
    text = await refused(lambda: producer.send("t", b"", foreign=1))
    assert text == "Producer.send() got an unexpected keyword argument 'foreign'"


async def test_an_error_of_the_method_itself_is_left_alone() -> None:
    consumer: Any = kafkaio.Consumer()
    with pytest.raises(ArgumentTypeError) as caught:
        consumer.seek("orders", 3)
    assert "in kafkaio" not in str(caught.value)

    @knows_other_clients("poll")
    class Consumer:
        def poll(self, function: Any) -> None:
            function(timeout_ms=5)

    text = await refused(lambda: Consumer().poll(lambda: None))
    assert "in seconds" not in text


def test_wrapped_methods_look_like_themselves() -> None:
    for name in ("poll", "commit", "subscribe", "close"):
        method = getattr(kafkaio.Consumer, name)
        assert method.__qualname__ == f"Consumer.{name}"
        assert method.__doc__
        assert "_others" not in inspect.signature(method).parameters
    send = inspect.signature(kafkaio.Producer.send)
    assert list(send.parameters) == [
        *("self", "topic", "value", "key", "headers", "timestamp", "partition")
    ]


def test_the_set_of_a_property_is_a_frozenset() -> None:
    given = PropertySet("assignment", [TP])
    assert given == frozenset([TP])
    assert hash(given) == hash(frozenset([TP]))
    assert repr(given) == repr(frozenset([TP]))
    assert isinstance(given, frozenset)
    for plain in (
        *(given | {5}, given & {TP}, given - {5}, given ^ {5}),
        *(copy.copy(given), copy.deepcopy(given), given.copy()),
        pickle.loads(pickle.dumps(given)),
    ):
        assert type(plain) is frozenset
    assert copy.deepcopy(given) == given


def test_the_tables_are_loaded_for_mistakes_alone() -> None:
    program = (
        "import sys, kafkaio\n"
        "kafkaio.Consumer(); kafkaio.Admin(); kafkaio.Client()\n"
        "assert 'kafkaio._other_clients' not in sys.modules\n"
        "hasattr(kafkaio.Consumer(), 'getmany')\n"
        "assert 'kafkaio._other_clients' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)
