"""What kafkaio has in the place of names and arguments of other clients.

Loaded for mistakes alone (`kafkaio._public.knows_other_clients`); on Python 3.11 by
`Producer`, too. `tests/unit/test_other_clients.py` compares `NAMES` with the public
methods of the clients that are installed, so that none of them is without an answer.

Each table is by class, then by the clients that have the name: ``a`` aiokafka,
``c`` confluent-kafka, ``k`` kafka-python, ``j`` Java, whose names are in snake_case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_PAGES = MappingProxyType(
    {"a": "aiokafka", "c": "confluent-kafka", "k": "kafka-python"}
)

_CLOSE = "await {}.close(), or leave `async with`"
_TRANSACTION = "async with producer.transaction() as tx: ..., which begins and ends it"
_BY_HAND = "by hand: tx = producer.transaction(), await tx.begin(), {}"
_START = "leave it out: {}"
_NUMBERS = "{}.statistics(), or observer=kafkaio.metrics.PrometheusObserver()"
_CREDENTIALS = (
    "make a new {}, or give it sasl_oauth_token_provider=, which may return another "
    "token at any time"
)
_CLUSTER_ID = (
    "client.cluster.cluster_id of a kafkaio.Client, or admin.describe_cluster()"
)
_METRIC = "{}(kafkaio.Metric(name, read))"
_DEFAULTS = "kafkaio.{}Config() has every option with its default"
_RETURNED = "the members of the poll: poll.records is a list; poll.{}"
_ALTER = (
    "await admin.incremental_alter_configs(...), which changes the named configs and "
    "leaves the others as they are"
)

#: What to write instead, by class, clients and name.
NAMES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "Producer": {
        "a": {
            "send_and_wait": "await producer.send(topic, value, key=key)",
            "create_batch": "await producer.send_many(topic, values)",
            "send_batch": "await producer.send_many(topic, values)",
            "stop": _CLOSE.format("producer"),
            "client": "await client.request(...) of a kafkaio.Client, which producers "
            "share: kafkaio.Producer(client)",
        },
        "c": {
            "produce": "delivery = await producer.enqueue(topic, value, key=key), then "
            "await delivery; or await producer.send(topic, value, key=key)",
            "produce_batch": "await producer.send_many(topic, values)",
            "poll": _START.format(
                "deliveries are awaited, and nothing has to be polled"
            ),
            "purge": "await producer.close(timeout=0), which fails what is not "
            "acknowledged",
            "list_topics": "await producer.partitions_for(topic), or "
            "await admin.list_topics()",
            "cluster_id": _CLUSTER_ID,
            "set_sasl_credentials": _CREDENTIALS.format("producer"),
        },
        "k": {
            "bootstrap_connected": "producer.statistics().state == 'running'",
            "max_usable_produce_magic": _START.format("versions are negotiated"),
            "DEFAULT_CONFIG": _DEFAULTS.format("Producer"),
            "DEPRECATED_CONFIGS": _DEFAULTS.format("Producer"),
        },
        "kj": {"metrics": _NUMBERS.format("producer")},
        "ckj": {
            "init_transactions": _START.format(
                "start(), or `async with`, does that for a transactional_id"
            ),
        },
        "ackj": {
            "begin_transaction": _TRANSACTION,
            "commit_transaction": (
                f"{_TRANSACTION}; {_BY_HAND.format('await tx.commit()')}"
            ),
            "abort_transaction": (
                f"{_TRANSACTION}; {_BY_HAND.format('await tx.abort()')}"
            ),
            "send_offsets_to_transaction": "await tx.commit_offsets(consumer), or "
            "kafkaio.exactly_once(consumer, producer, handler)",
        },
        "j": {
            "prepare_transaction": "two-phase commit (KIP-939) is not in kafkaio",
            "complete_transaction": "two-phase commit (KIP-939) is not in kafkaio",
            "register_metric_for_subscription": _METRIC.format(
                "producer.register_metric"
            ),
            "unregister_metric_from_subscription": _METRIC.format(
                "producer.unregister_metric"
            ),
        },
    },
    "Transaction": {
        "a": {"send_and_wait": "await tx.send(topic, value, key=key)"},
        "c": {
            "produce": "await tx.enqueue(topic, value, key=key), or await "
            "tx.send(topic, value, key=key)"
        },
        "ackj": {
            "begin_transaction": "await tx.begin()",
            "commit_transaction": "await tx.commit()",
            "abort_transaction": "await tx.abort()",
            "send_offsets_to_transaction": "await tx.commit_offsets(consumer)",
            "flush": _START.format("the commit writes what was enqueued"),
        },
    },
    "Consumer": {
        "a": {
            "getone": "await anext(consumer)",
            "getmany": "poll = await consumer.poll(timeout=1.0, max_records=500), then "
            "poll.records",
            "stop": _CLOSE.format("consumer"),
            "seek_to_committed": "offset = (await consumer.committed([tp]))[tp], then "
            "consumer.seek(tp, offset)",
            "last_poll_timestamp": "consumer.statistics()",
        },
        "ak": {"highwater": "consumer.high_watermark(tp)"},
        "c": {
            "consume": "poll = await consumer.poll(timeout=1.0, max_records=500), then "
            "poll.records",
            "consumer_group_metadata": "consumer.group_metadata, a property",
            "get_watermark_offsets": "await consumer.beginning_offsets([tp]) and await "
            "consumer.end_offsets([tp]); consumer.high_watermark(tp) is what is known",
            "incremental_assign": _START.format(
                "kafkaio carries out what the group decides, before on_assigned"
            ),
            "incremental_unassign": _START.format(
                "kafkaio carries out what the group decides, after on_revoked"
            ),
            "memberid": "consumer.group_metadata.member_id",
            "store_offsets": "await consumer.commit(record); with enable_auto_commit, "
            "asking for the next record does that",
            "unassign": "consumer.unsubscribe()",
            "cluster_id": _CLUSTER_ID,
            "set_sasl_credentials": _CREDENTIALS.format("consumer"),
        },
        "k": {
            "bootstrap": "await consumer.start(), or `async with`",
            "bootstrap_connected": "consumer.statistics().state == 'running'",
            "DEFAULT_CONFIG": _DEFAULTS.format("Consumer"),
            "DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735": _DEFAULTS.format("Consumer"),
        },
        "cj": {
            "list_topics": "await consumer.topics(), or "
            "await consumer.partitions_for_topic(topic)"
        },
        "kj": {
            "metrics": _NUMBERS.format("consumer"),
            "commit_async": "asyncio.create_task(consumer.commit())",
        },
        "j": {
            "commit_sync": "await consumer.commit()",
            "partitions_for": "await consumer.partitions_for_topic(topic)",
            "wakeup": "cancel the task that reads",
            "register_metric_for_subscription": _METRIC.format(
                "consumer.register_metric"
            ),
            "unregister_metric_from_subscription": _METRIC.format(
                "consumer.unregister_metric"
            ),
        },
    },
    "ShareConsumer": {
        "cj": {
            "acknowledge": "record.ack(), record.release() or record.reject()",
            "commit_sync": "await share.commit()",
            "commit_async": _START.format("decisions are sent within ack_linger_ms"),
            "set_acknowledgement_commit_callback": "await record.acked, or an observer "
            "with records_acknowledged and acknowledgement_failed",
        },
        "c": {
            "acknowledge_offset": "keep the record, and call record.ack()",
            "set_sasl_credentials": _CREDENTIALS.format("share consumer"),
        },
        "j": {
            "acquisition_lock_timeout_ms": "record.lock_deadline",
            "metrics": _NUMBERS.format("share"),
            "wakeup": "cancel the task that reads",
            "register_metric_for_subscription": _METRIC.format("share.register_metric"),
            "unregister_metric_from_subscription": _METRIC.format(
                "share.unregister_metric"
            ),
        },
        "a": {
            "getone": "await anext(aiter(share))",
            "getmany": "await share.poll(timeout=1.0)",
            "stop": _CLOSE.format("share"),
        },
    },
    "Poll": {
        "ak": {
            "items": "for record in poll.records, or consumer.batches() for a list of "
            "each partition",
            "keys": "{record.topic_partition for record in poll.records}",
            "values": "poll.records, one list of all partitions",
            "get": "[r for r in poll.records if r.topic_partition == tp]",
        },
        "c": {
            "error": "leave it out: what is wrong is raised",
            "topic": "poll.records is a list, and record.topic an attribute",
            "partition": "poll.records is a list, and record.partition an attribute",
            "offset": "poll.records is a list, and record.offset an attribute",
            "key": "poll.records is a list, and record.key an attribute",
            "value": "poll.records is a list, and record.value an attribute; poll("
            "max_records=1) returns at most one",
            "headers": "poll.records is a list, and record.headers an attribute",
            "timestamp": "poll.records is a list; record.timestamp_type and "
            "record.timestamp are attributes",
            "leader_epoch": "poll.records is a list, and record.leader_epoch an "
            "attribute",
        },
        "j": {
            "count": "len(poll.records)",
            "is_empty": "not poll.records",
            "partitions": "{record.topic_partition for record in poll.records}",
        },
    },
    "RecordMetadata": {
        "a": {
            "timestamp_type": "none: timestamp is the one that the record has",
            "log_start_offset": "await consumer.beginning_offsets([tp])",
        },
        "k": {
            "count": "one metadata for each record: send_many returns a list",
            "index": "one metadata for each record: send_many returns a list",
        },
        "kj": {
            "serialized_key_size": "len(key)",
            "serialized_value_size": "len(value)",
            "serialized_header_size": "len(name) and len(value) of each header",
            "checksum": "none: a batch has one, and brokers and consumers check it",
        },
        "j": {
            "has_offset": "meta.offset >= 0",
            "has_timestamp": "meta.timestamp >= 0",
        },
    },
    "Admin": {
        "a": {
            "find_coordinator": "await client.request(messages."
            "FindCoordinatorRequest(...)) of a kafkaio.Client",
            "stop": _CLOSE.format("admin"),
        },
        "ackj": {
            "alter_configs": _ALTER,
            "list_consumer_groups": "await admin.list_groups()",
        },
        "c": {
            "poll": _START.format("results are awaited"),
            "cluster_id": _CLUSTER_ID,
            "set_sasl_credentials": _CREDENTIALS.format("admin client"),
        },
        "k": {
            "DEFAULT_CONFIG": _DEFAULTS.format("Client"),
            "alter_group_offsets": "await admin.alter_consumer_group_offsets(...)",
            "api_versions": "await client.request(messages.ApiVersionsRequest()) of a "
            "kafkaio.Client",
            "delete_group_offsets": "await admin.delete_consumer_group_offsets(...)",
            "delete_groups": "await admin.delete_consumer_groups(groups)",
            "describe_groups": "await admin.describe_consumer_groups(groups)",
            "describe_topic_partitions": "await admin.describe_topics(topics)",
            "get_broker_version_data": "await admin.describe_features()",
            "list_group_offsets": "await admin.list_consumer_group_offsets(...)",
            "list_partition_offsets": "await admin.list_offsets(...)",
            "remove_group_members": "await "
            "admin.remove_members_from_consumer_group(...)",
            "reset_configs": "await admin.incremental_alter_configs(...) with a "
            "deletion, which restores the default",
            "reset_group_offsets": "await admin.reset_offsets(...)",
        },
        "j": {
            "create": "kafkaio.Admin('host:9092'), or Admin.from_properties({...})",
            "metrics": _NUMBERS.format("admin"),
            "list_client_metrics_resources": "await admin.list_config_resources(...)",
            "delete_acl": "await admin.delete_acls([...])",
            "register_metric_for_subscription": _METRIC.format("admin.register_metric"),
            "unregister_metric_from_subscription": _METRIC.format(
                "admin.unregister_metric"
            ),
        },
    },
    "Client": {
        "a": {
            "bootstrap": "await client.start(), or `async with`",
            "send": "await client.request(request, to=kafkaio.Broker(3))",
            "ready": "await client.request(request, to=kafkaio.Broker(3)), which "
            "connects",
            "add_topic": "await client.partitions_for([topic])",
            "set_topics": "await client.partitions_for(topics)",
            "hosts": "client.config.bootstrap_servers",
            "coordinator_lookup": "to=kafkaio.GroupCoordinator('group') of "
            "client.request()",
            "fetch_all_metadata": "await client.find_topics(...), and client.cluster",
            "force_metadata_update": "await client.partitions_for(topics)",
            "get_random_node": "to=kafkaio.ANY of client.request()",
            "stop": _CLOSE.format("client"),
        },
    },
}

#: What to write instead of an argument, by method and keyword. ``*`` stands for
#: arguments by position that are too many, or of the wrong kind.
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "*": {
        "timeout_ms": "the limit is timeout=, in seconds",
    },
    "Producer.__init__": {
        "*": "the first argument is the servers, and options are keywords: "
        "kafkaio.Producer('host:9092', acks='all')",
    },
    "Producer.send": {
        "*": "all but topic and value are keywords: send(topic, value, key=key, "
        "partition=0)",
        "timestamp_ms": "it is timestamp=, in milliseconds",
        "on_delivery": "await the call; or delivery = await producer.enqueue(topic, "
        "value), then delivery.add_done_callback(f)",
        "callback": "await the call; or delivery = await producer.enqueue(topic, "
        "value), then delivery.add_done_callback(f)",
    },
    "Producer.close": {
        "null_logger": "leave it out: kafkaio.Producer(..., log=False) logs nothing",
    },
    "Consumer.__init__": {
        "*": "the first argument is the servers, and topics are a keyword: "
        "kafkaio.Consumer('host:9092', topics=['orders'])",
    },
    "Consumer.poll": {
        "*": "arguments are keywords: poll(timeout=1.0, max_records=500); it returns a "
        "Poll, whose records are a list",
        "update_offsets": "leave it out: what is handed out moves the position",
        "num_messages": "it is max_records=",
    },
    "Consumer.subscribe": {
        "*": "pass functions to the constructor: kafkaio.Consumer(..., on_assigned=f, "
        "on_revoked=g, on_lost=h)",
        "pattern": "pass a compiled pattern, which matches whole names: "
        "subscribe(re.compile('orders.*'))",
        "listener": "pass functions to the constructor: kafkaio.Consumer(..., "
        "on_assigned=f, on_revoked=g, on_lost=h), or read consumer.rebalances()",
        "on_assign": "it is on_assigned= of the constructor: kafkaio.Consumer(..., "
        "on_assigned=f)",
        "on_revoke": "it is on_revoked= of the constructor: kafkaio.Consumer(..., "
        "on_revoked=f)",
        "on_lost": "it is on_lost= of the constructor: kafkaio.Consumer(..., "
        "on_lost=f)",
    },
    "Consumer.commit": {
        "*": "commit(what, timeout): what is None, a record, a batch, partitions, or "
        "offsets by partition",
        "asynchronous": "await consumer.commit() waits; "
        "asyncio.create_task(consumer.commit()) does not",
        "message": "commit(record), by position",
        "offsets": "commit({tp: offset}), by position",
        "callback": "await consumer.commit(), which raises what failed",
    },
    "Consumer.committed": {
        "*": "it takes a collection: (await consumer.committed([tp]))[tp]",
        "partition": "it takes a collection: (await consumer.committed([tp]))[tp]",
        "metadata": "it returns OffsetAndMetadata, or None, for each partition",
    },
    "Consumer.position": {
        "partitions": "it takes one partition: await consumer.position(tp)",
    },
    "Consumer.seek": {
        "*": "it takes a partition and an offset: "
        "consumer.seek(kafkaio.TopicPartition('orders', 0), 17)",
    },
    "Consumer.offsets_for_times": {
        "timestamps": "it is times=: offsets_for_times({tp: milliseconds})",
        "partitions": "offsets_for_times({tp: milliseconds})",
    },
    "Consumer.close": {
        "autocommit": "leave it out: with enable_auto_commit, finished records are "
        "committed; enable_auto_commit=False commits nothing",
        "leave_group": "leave it out: a member with a group_instance_id keeps its "
        "partitions, any other leaves",
    },
    "ShareConsumer.__init__": {
        "*": "the first argument is the servers, and topics are a keyword: "
        "kafkaio.ShareConsumer('host:9092', topics=['jobs'], group_id='workers')",
    },
    "ShareConsumer.poll": {
        "*": "arguments are keywords: poll(timeout=1.0)",
    },
    "Admin.__init__": {
        "*": "the first argument is the servers, and options are keywords: "
        "kafkaio.Admin('host:9092', client_id='tool')",
    },
    "Client.__init__": {
        "*": "the first argument is the servers, and options are keywords: "
        "kafkaio.Client('host:9092', client_id='tool')",
    },
}
#: Texts of Python about arguments that are too many, too few or there twice.
_BY_POSITION = r"positional argument|multiple values|missing \d+ required"
_HUMP = r"(?<=[a-z0-9])(?=[A-Z])"


def names_of(kind: type) -> list[str]:
    """Return the names of other clients that a class has an answer for.

    Java's names are among them in camelCase, too, also those that kafkaio has.
    """
    known = [name for names in _tables(kind).values() for name in names]
    own = [name for name in dir(kind) if not name.startswith("_")]
    camel = {_camel(name) for name in (*known, *own)}
    return [*known, *(name for name in camel if not hasattr(kind, name))]


def attribute_hint(kind: type, name: str) -> str | None:
    """Return what to write instead of an attribute; None if no client has it.

    Args:
        kind: the class without that attribute, or one that is derived from it.
        name: the attribute.
    """
    snake = re.sub(_HUMP, "_", name).lower()
    for clients, names in _tables(kind).items():
        for spelling in (name, snake):
            if spelling in names:
                return f"in kafkaio: {names[spelling]} ({_page(clients)})"
    if snake != name and not snake.startswith("_") and hasattr(kind, snake):
        return f"in kafkaio: {snake}"
    return None


def argument_hint(method: str, given: Mapping[str, object], text: str) -> str | None:
    """Return what to write instead of arguments that a method does not take.

    Args:
        method: its qualified name, such as ``Consumer.poll``.
        given: the arguments that were passed by keyword.
        text: what Python says about the call.
    """
    known = ARGUMENTS.get(method, {})
    general = ARGUMENTS["*"]
    if re.search(_BY_POSITION, text) and "*" in known:
        return f"{known['*']} ({_page('')})"
    for name in given:
        hint = known.get(name) or general.get(name)
        if hint is not None and f"'{name}'" in text:
            return f"{hint} ({_page('')})"
    return None


def _tables(kind: type) -> Mapping[str, Mapping[str, str]]:
    # By the bases, too: users derive classes of their own.
    for base in kind.__mro__:
        if base.__name__ in NAMES:
            return NAMES[base.__name__]
    return {}


def _page(clients: str) -> str:
    page = _PAGES.get(clients)
    return f"docs/migration/{page}.md" if page else "docs/migration"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))
