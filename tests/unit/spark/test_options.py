"""Every option: its values, its refusals, and what is never shown."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pytest

from kafkaio._config import ConsumerConfig
from kafkaio._config.login_properties import TokenRequest
from kafkaio._config.msk import MskFacts
from kafkaio.errors import ConfigurationError
from kafkaio.spark._bounds import AtOffsets, AtTime, AtTimes, ReadTopics
from kafkaio.spark._declaration import SparkOption
from kafkaio.spark._kafka_properties import KafkaProperties
from kafkaio.spark._options import (
    ReadOptions,
    WriteOptions,
    every_option,
    includes_headers,
)
from kafkaio.types import TopicPartition

SERVERS = {"kafka.bootstrap.servers": "host:9092"}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(**options: str) -> ReadOptions:
    return ReadOptions.of({**SERVERS, "subscribe": "t", **options}, is_stream=False)


def stream(**options: str) -> ReadOptions:
    return ReadOptions.of({**SERVERS, "subscribe": "t", **options}, is_stream=True)


def batch_write(**options: str) -> WriteOptions:
    return WriteOptions.of({**SERVERS, **options}, is_stream=False)


def stream_write(**options: str) -> WriteOptions:
    return WriteOptions.of({**SERVERS, **options}, is_stream=True)


def kafka(name: str, value: str) -> dict[str, str]:
    return {f"kafka.{name}": value}


# ---- what is read --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "topics"),
    [
        ("subscribe", " b , a,b,", ReadTopics(names=("b", "a"))),
        ("subscribePattern", " t-.* ", ReadTopics(pattern="t-.*")),
        ("assign", '{"t":[1,0,1]}', ReadTopics(partitions=(T0, T1))),
    ],
)
def test_what_is_read(name: str, value: str, topics: ReadTopics) -> None:
    for given in (name, name.lower(), name.upper()):
        found = ReadOptions.of({**SERVERS, given: value}, is_stream=False)
        assert found.topics == topics


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of subscribe, subscribePattern and assign is needed: none"),
        ({"subscribe": "a", "assign": "{}"}, "subscribe and assign were given"),
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribePattern": " "}, "subscribePattern is empty"),
        ({"subscribePattern": "["}, "is not a valid regular expression of Python"),
        ({"assign": "t"}, 'JSON such as {"orders":'),
        ({"assign": '{"t":0}'}, 'JSON such as {"orders":'),
        ({"assign": '{"t":[-1]}'}, 'JSON such as {"orders":'),
        ({"assign": '{"t":[]}'}, "names no partition"),
    ],
)
def test_what_cannot_be_read(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ReadOptions.of({**SERVERS, **options}, is_stream=False)
    assert message in str(caught.value)


# ---- bounds --------------------------------------------------------------------------


def test_the_default_bounds() -> None:
    assert (batch().starting, batch().ending) == ("earliest", "latest")
    assert (stream().starting, stream().ending) == ("latest", "latest")


def test_which_bound_wins() -> None:
    offsets = {"startingOffsets": '{"t":{"0":5,"1":-2}}'}
    times = {**offsets, "startingOffsetsByTimestamp": '{"t":{"0":7}}'}
    time = {**times, "startingTimestamp": "9"}
    assert batch(**offsets).starting == AtOffsets({T0: 5, T1: -2})
    assert stream(**times).starting == AtTimes({T0: 7})
    assert stream(**time).starting == AtTime(9)
    ends = {"endingOffsets": '{"t":{"0":5,"1":-1}}'}
    end_times = {**ends, "endingOffsetsByTimestamp": '{"t":{"0":7}}'}
    assert batch(**ends).ending == AtOffsets({T0: 5, T1: -1})
    assert batch(**end_times).ending == AtTimes({T0: 7})
    assert batch(**end_times, endingTimestamp="9").ending == AtTime(9)


def test_words_for_bounds() -> None:
    assert stream(startingOffsets=" EARLIEST ").starting == "earliest"
    assert stream(startingOffsets="Latest").starting == "latest"
    assert batch(startingOffsetsByTimestampStrategy="LATEST").latest_if_no_timestamp
    assert not batch(startingOffsetsByTimestampStrategy="error").latest_if_no_timestamp


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffsets": "latest"}, "cannot start at the latest"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "-1 for t-0 is the latest"),
        ({"endingOffsets": "earliest"}, "cannot end at the earliest"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "-2 for t-0 is the earliest"),
        ({"startingOffsets": '{"t":{"0":-3}}'}, "-3 for t-0 is not between -2"),
        ({"startingOffsets": '{"t":{"x":1}}'}, "JSON such as earliest, latest or"),
        ({"startingOffsets": '{"t":{"0":true}}'}, "JSON such as"),
        ({"startingOffsets": '{"t":[0]}'}, "JSON such as"),
        ({"startingOffsets": "{}"}, "JSON such as"),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":-1}}'},
            "-1 for t-0 is not between 0",
        ),
        ({"startingTimestamp": "noon"}, "startingTimestamp='noon' is not an integer"),
        (
            {"startingOffsetsByTimestampStrategy": "x"},
            "is not one of 'error', 'latest'",
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"1":5}}'},
            "name different partitions: only one of them has t-0, t-1",
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
            "t-0: the starting offset 5 is after the ending offset 4",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"t":{"0":5}}',
                "endingOffsetsByTimestamp": '{"t":{"0":4}}',
            },
            "t-0: the starting timestamp 5 is after the ending timestamp 4",
        ),
    ],
)
def test_bounds_that_are_not_possible(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        batch(**options)
    assert message in str(caught.value)


def test_ends_of_one_kind_alone_are_compared() -> None:
    found = batch(
        startingOffsets='{"t":{"0":5}}', endingOffsetsByTimestamp='{"t":{"0":4}}'
    )
    assert found.starting == AtOffsets({T0: 5})
    open_end = batch(startingOffsets='{"t":{"0":5}}', endingOffsets='{"t":{"0":-1}}')
    assert open_end.ending == AtOffsets({T0: -1})


@pytest.mark.parametrize(
    "name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"]
)
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}: a stream has no end"):
        stream(**{name: "latest"})


# ---- the other options of a read -----------------------------------------------------


def test_the_defaults_of_a_read() -> None:
    found = batch()
    assert found.fail_on_data_loss
    assert not found.include_headers
    assert found.min_partitions is None
    assert found.max_records_per_partition is None
    assert found.min_records_per_task == 0
    assert stream().min_records_per_task == 50_000
    assert found.fetch_bytes == 4 * 2**20
    assert stream().max_trigger_delay == 900
    assert found.isolation_level == "read_uncommitted"
    assert found.commit_group_id is None


def test_values_of_a_read() -> None:
    found = stream(
        failOnDataLoss="FALSE",
        includeHeaders="true",
        minPartitions="8",
        maxRecordsPerPartition="100",
        maxOffsetsPerTrigger="1000",
        minOffsetsPerTrigger="10",
        maxTriggerDelay="90s",
        minRecordsPerTask="7",
        fetchBytes="1000",
        commitGroupId="g",
        **{"kafka.isolation.level": "read_committed"},
    )
    assert not found.fail_on_data_loss
    assert found.include_headers
    assert (found.min_partitions, found.max_records_per_partition) == (8, 100)
    assert (found.max_offsets_per_trigger, found.min_offsets_per_trigger) == (1000, 10)
    assert found.max_trigger_delay == 90
    assert (found.min_records_per_task, found.fetch_bytes) == (7, 1000)
    assert found.commit_group_id == "g"
    assert found.isolation_level == "read_committed"


def test_ranges_that_were_split_are_not_bundled() -> None:
    assert stream(minPartitions="8").min_records_per_task == 0
    assert stream(maxRecordsPerPartition="8").min_records_per_task == 0
    found = stream(minPartitions="8", minRecordsPerTask="5")
    assert found.min_records_per_task == 5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("250", 0.25), ("250ms", 0.25), ("15m", 900), ("1min", 60), ("2H", 7200)],
        *[("1d", 86400), ("3 s", None), ("s", None), ("1.5s", None), ("-1s", None)],
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    if seconds is None:
        with pytest.raises(ConfigurationError, match="is not a duration such as"):
            stream(maxTriggerDelay=text)
    else:
        assert stream(maxTriggerDelay=text).max_trigger_delay == seconds


NANOSECONDS = "1735689600000000000"
GREATEST = str(2**63 - 1)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("startingTimestamp", NANOSECONDS, "=1735689600000000000 is a time in nanosec"),
        ("startingTimestamp", NANOSECONDS, "such as 1735689600000 (int(moment.timest"),
        (
            "endingTimestamp",
            NANOSECONDS[:-3],
            "is a time in microseconds, it seems: mi",
        ),
        (
            "endingTimestamp",
            NANOSECONDS[:-3],
            "such as 1735689600000 (int(moment.times",
        ),
        ("startingTimestamp", "2025-02-01", "such as 1738368000000 (int(moment.times"),
        ("startingTimestamp", "2025-02-01 01:00:00+01:00", "such as 1738368000000 ("),
        ("startingTimestamp", "1.5e9", "milliseconds since the Unix epoch are needed"),
        ("startingTimestamp", "-1", "startingTimestamp=-1 is less than 0"),
        (
            "startingOffsetsByTimestamp",
            f'{{"t":{{"0":{NANOSECONDS}}}}}',
            "1735689600000000000 for t-0 is a time in nanoseconds, it seems: milli",
        ),
    ],
)
def test_times_of_another_unit(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        batch(**{name: value})
    assert message in str(caught.value)


def test_times_far_in_the_future() -> None:
    year_9999 = 253_402_300_799_999
    assert batch(endingTimestamp=str(year_9999)).ending == AtTime(year_9999)
    assert batch(endingTimestamp=GREATEST).ending == AtTime(2**63 - 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minPartitions": "0"}, "minPartitions=0 is less than 1"),
        ({"minPartitions": "3000000000"}, "is more than 2147483647"),
        ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition=-1 is less than 1"),
        ({"maxOffsetsPerTrigger": "many"}, "'many' is not an integer"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss='no' is neither true nor false"),
        ({"commitGroupId": " "}, "commitGroupId is empty"),
        (
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            "minOffsetsPerTrigger=5 is more than maxOffsetsPerTrigger=4",
        ),
    ],
)
def test_values_that_are_not_possible(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        stream(**options)
    assert message in str(caught.value)


def test_options_without_effect_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        found = batch(
            maxOffsetsPerTrigger="x", minOffsetsPerTrigger="x", maxTriggerDelay="x"
        )
    assert found.max_offsets_per_trigger is None
    assert len(caplog.records) == 3
    assert "maxOffsetsPerTrigger has no effect in a batch read" in caplog.text


def test_headers_in_a_write_need_no_option(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        assert batch_write(topic="t", includeHeaders="true").topic == "t"
    assert not caplog.records


def test_whether_there_are_headers() -> None:
    assert includes_headers({"INCLUDEHEADERS": "true"})
    assert not includes_headers({})
    with pytest.raises(ConfigurationError, match="includeHeaders='yes' is neither"):
        includes_headers({"includeHeaders": "yes"})


# ---- names ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("startingOffset", "did you mean 'startingOffsets'?"),
        ("bootstrap_servers", "unknown option 'bootstrap_servers' of a read"),
        ("qqq", "unknown option 'qqq' of a read (options of Kafka's own client"),
        ("topic", "topic is an option of a batch write or stream write, not of a"),
        ("exactlyOnce", "exactlyOnce is an option of a batch write or stream write"),
        ("path", "Kafka has topics and no paths"),
        ("partitionLocationAssigner", "prefer an executor"),
        ("spark.kafka.clusters.a.auth.bootstrap.servers", "delegation tokens are not"),
        ("spark.kafka.consumer.cache.capacity", "there is no pool of consumers"),
        ("spark.kafka.producer.cache.timeout", "there is no pool of producers"),
        ("spark.sql.shuffle.partitions", "configuration of the Spark session"),
        ("bootstrap.servers", "use kafka.bootstrap.servers"),
        ("checkpointLocation", "it is an option of writeStream"),
    ],
)
def test_names_that_are_not_options_of_a_batch_read(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        batch(**{name: "1"})
    assert message in str(caught.value)


def test_an_option_of_streams_in_a_write() -> None:
    with pytest.raises(ConfigurationError, match="commitGroupId is an option of a str"):
        stream_write(topic="t", commitGroupId="g")
    with pytest.raises(ConfigurationError, match="did you mean 'transactionalIdPref"):
        stream_write(topic="t", transactionIdPrefix="g")


def test_what_spark_adds_to_a_stream_is_accepted() -> None:
    found = stream_write(topic="t", checkpointLocation="/c", queryName="q")
    assert found.topic == "t"


@pytest.mark.parametrize("option", every_option(), ids=lambda option: option.name)
def test_every_option_is_in_the_guide(option: SparkOption) -> None:
    guide = Path(__file__).parents[3] / "docs" / "guide" / "spark.md"
    assert row(option) in guide.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("option", every_option(), ids=lambda option: option.name)
def test_an_empty_value_is_an_error_that_names_the_option(option: SparkOption) -> None:
    with pytest.raises(ConfigurationError, match=option.name):
        option.read("")


def row(option: SparkOption) -> str:
    """The row of an option in the guide's table."""
    cells = []
    for use in ("read", "write"):
        found = [kind for kind in ("batch", "stream") if f"{kind} {use}" in option.uses]
        cells.append("all" if len(found) == 2 else found[0] if found else "-")
    doc = option.doc.replace("|", r"\|")
    return f"| `{option.name}` | {' | '.join(cells)} | {option.default} | {doc} |"


# ---- kafka.* -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("auto.offset.reset", "use startingOffsets"),
        ("key.deserializer", "keys are bytes"),
        ("value.deserializer", "values are bytes"),
        ("enable.auto.commit", "Spark keeps the offsets"),
        ("interceptor.classes", "operations on the DataFrame"),
        ("group.idd", "did you mean 'group.id'?"),
        ("batch.size", "batch.size is an option of Producer, not of Consumer"),
        ("sasl.jaas.config", "kafka.*: sasl.jaas.config: required, or another"),
        ("sasl.password", "sasl_password is not used without security_protocol"),
        ("sasl.oauthbearer.scope", "sasl.oauthbearer.scope has no meaning here"),
    ],
)
def test_options_of_kafka_that_a_read_refuses(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        batch(**kafka(name, "secret"))
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("key.serializer", "cast the column key"),
        ("value.serializer", "cast the column value"),
        ("partitioner.class", "write a column partition"),
        ("transactional.id", "use exactlyOnce=true"),
        ("interceptor.classes", "operations on the DataFrame"),
        ("group.id", "group.id is an option of Consumer, not of Producer"),
    ],
)
def test_options_of_kafka_that_a_write_refuses(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        batch_write(topic="t", **kafka(name, "1"))
    assert message in str(caught.value)


def test_servers_are_needed() -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.bootstrap\.servers is miss"):
        ReadOptions.of({"subscribe": "t"}, is_stream=False)
    with pytest.raises(ConfigurationError, match=r"kafka\.bootstrap\.servers is miss"):
        WriteOptions.of({"topic": "t"}, is_stream=False)


def test_a_value_is_checked_where_the_option_is_given() -> None:
    with pytest.raises(ConfigurationError, match="request_timeout_ms='soon'"):
        batch(**kafka("request.timeout.ms", "soon"))


def test_the_client_of_a_read() -> None:
    options = batch(
        **kafka("request.timeout.ms", "5000"), **kafka("max.poll.records", "7")
    )
    config = options.client_config(in_task=False)
    assert config.bootstrap_servers == (("host", 9092),)
    assert config.client_id == "kafkaio-spark"
    # No call takes longer than a request may, unless the option for calls is set.
    assert config.default_api_timeout_ms == 5000
    assert options.client_config(in_task=True) == config
    assert hash(config) == hash(options.client_config(in_task=True))


def test_time_limits_of_tasks() -> None:
    poll = {"kafkaConsumer.pollTimeoutMs": "700"}
    options = batch(**poll)
    assert options.client_config(in_task=True).default_api_timeout_ms == 700
    assert options.client_config(in_task=False).default_api_timeout_ms == 30_000
    both = batch(**poll, **kafka("default.api.timeout.ms", "900"))
    assert both.client_config(in_task=True).default_api_timeout_ms == 900
    assert both.client_config(in_task=False).default_api_timeout_ms == 900


def test_retries_of_planning() -> None:
    options = batch(
        **{"fetchOffset.numRetries": "4", "fetchOffset.retryIntervalMs": "20"}
    )
    assert (options.offset_retries, options.offset_retry_interval_ms) == (4, 20)


def test_the_name_of_a_client() -> None:
    named = [
        (batch(groupIdPrefix="p"), "p"),
        (batch(groupIdPrefix="p", **kafka("group.id", "g")), "g"),
        (batch(**kafka("group.id", "g"), **kafka("client.id", "c")), "c"),
    ]
    for options, name in named:
        assert options.client_config(in_task=True).client_id == name


def test_fetch_bytes_as_the_connector_was_tuned() -> None:
    tuned = kafka("max.partition.fetch.bytes", "8388608")
    assert batch(**tuned).fetch_bytes == 8388608
    assert batch(**tuned, fetchBytes="5").fetch_bytes == 5


# ---- secrets -------------------------------------------------------------------------


def test_references_stay_references(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKAIO_TEST_NAME", "hunter2")
    options = batch(**kafka("client.id", "a-${env:KAFKAIO_TEST_NAME}"))
    copy = pickle.loads(pickle.dumps(options))
    assert copy == options
    assert b"hunter2" not in pickle.dumps(options)
    assert "hunter2" not in repr(options)
    assert "${env" not in repr(options)
    assert copy.client_config(in_task=True).client_id == "a-hunter2"


def test_a_reference_in_the_name_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKAIO_TEST_NAME", "hunter2")
    options = batch(**kafka("group.id", "${env:KAFKAIO_TEST_NAME}"))
    assert options.client_config(in_task=True).client_id == "kafkaio-spark"


def test_references_are_not_resolved_to_be_checked() -> None:
    given = {"kafka.bootstrap.servers": "${env:KAFKAIO_TEST_NONE}", "subscribe": "t"}
    options = ReadOptions.of(given, is_stream=False)
    with pytest.raises(ConfigurationError) as caught:
        options.client_config(in_task=True)
    assert "no variable 'KAFKAIO_TEST_NONE'" in str(caught.value)
    assert "on the driver and on every executor" in str(caught.value)
    with pytest.raises(ConfigurationError, match="unknown option"):
        batch(**kafka("nonsense", "${env:X}"))
    assert batch(**kafka("broker.rack", "${env:X}")).topics.names == ("t",)
    tuned = batch(**kafka("max.partition.fetch.bytes", "${env:X}"))
    assert tuned.fetch_bytes == 4 * 2**20


def test_what_a_reference_stands_for_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKAIO_TEST_NAME", "hidden value")
    options = batch(**kafka("request.timeout.ms", "${env:KAFKAIO_TEST_NAME}"))
    with pytest.raises(ConfigurationError) as caught:
        options.client_config(in_task=True)
    assert "hidden value" not in str(caught.value)
    assert "one of kafka.request.timeout.ms" in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECURED = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.ssl.truststore.location": "${env:KAFKAIO_TEST_TRUST}",
}


def test_a_login_module_with_references(monkeypatch: pytest.MonkeyPatch) -> None:
    jaas = f'{SCRAM} required username="alice" password="${{env:KAFKAIO_TEST_WORD}}";'
    options = batch(**SECURED, **kafka("sasl.jaas.config", jaas))
    # A password may have what ends a value or the text.
    monkeypatch.setenv("KAFKAIO_TEST_WORD", 'alice-secret"; x\\')
    monkeypatch.setenv("KAFKAIO_TEST_TRUST", "/trust.pem")
    copy = pickle.loads(pickle.dumps(options))
    for config in (
        copy.client_config(in_task=True),
        batch_write(
            topic="t", **SECURED, **kafka("sasl.jaas.config", jaas)
        ).producer_config(),
    ):
        assert config.sasl_username == "alice"
        assert config.sasl_password == 'alice-secret"; x\\'
        assert config.ssl_truststore_location == "/trust.pem"
        assert "alice-secret" not in repr(config)
    assert b"alice-secret" not in pickle.dumps(options)


@pytest.mark.parametrize(
    "mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]
)
def test_a_login_module_that_is_one_reference(
    mechanism: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    modules = {
        "PLAIN": "a.PlainLoginModule required username=u password=p;",
        "OAUTHBEARER": (
            "a.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=u;"
        ),
        "GSSAPI": "a.Krb5LoginModule required useTicketCache=true;",
    }
    text = modules.get(mechanism, "a.ScramLoginModule required username=u password=p;")
    (tmp_path / "jaas").write_text(text)
    given = SECURED | {
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f"${{dir:{tmp_path}:jaas}}",
    }
    options = batch(**given)
    monkeypatch.setenv("KAFKAIO_TEST_TRUST", "/trust.pem")
    assert options.client_config(in_task=True).sasl_mechanism == mechanism


def test_user_and_password_by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    given = SECURED | {
        "kafka.sasl.username": "${env:KAFKAIO_TEST_NAME}",
        "kafka.sasl.password": "${env:KAFKAIO_TEST_WORD}",
    }
    options = batch(**given)
    for name, value in (("NAME", "alice"), ("WORD", "alice-secret"), ("TRUST", "/t")):
        monkeypatch.setenv(f"KAFKAIO_TEST_{name}", value)
    config = options.client_config(in_task=True)
    assert (config.sasl_username, config.sasl_password) == ("alice", "alice-secret")


def test_key_stores_of_java() -> None:
    with pytest.raises(ConfigurationError, match="keytool -importkeystore"):
        batch(**{**SECURED, "kafka.ssl.truststore.type": "JKS"})


def test_properties_are_values() -> None:
    one, same = (
        KafkaProperties({"a": "1", "b": "2"}),
        KafkaProperties({"b": "2", "a": "1"}),
    )
    assert one == same
    assert hash(one) == hash(same)
    assert one != KafkaProperties({"a": "1"})
    assert one != {"a": "1", "b": "2"}
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "<kafka.*: a, b>"
    with pytest.raises(ConfigurationError, match="unknown option 'a'"):
        one.resolved(ConsumerConfig, {"bootstrap.servers": "host"})


MSK = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "AWS_MSK_IAM",
    "kafka.sasl.client.callback.handler.class": (
        "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
    ),
}
IAM = "software.amazon.msk.auth.iam.IAMLoginModule required"


@pytest.mark.parametrize("is_whole", [False, True])
def test_msk_in_texts(
    is_whole: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Checked in the driver without the variables, made in each process."""
    jaas = f'{IAM} awsRoleArn="arn" awsRoleExternalId="${{env:KAFKAIO_TEST_WORD}}";'
    if is_whole:
        (tmp_path / "jaas").write_text(jaas.replace("${env:KAFKAIO_TEST_WORD}", "a1"))
        jaas = f"${{dir:{tmp_path}:jaas}}"
    servers = {"kafka.bootstrap.servers": "${env:KAFKAIO_TEST_SERVERS}"}
    given = {**servers, **MSK, "kafka.sasl.jaas.config": jaas}
    read = ReadOptions.of({**given, "subscribe": "t"}, is_stream=True)
    write = WriteOptions.of({**given, "topic": "t"}, is_stream=False)
    monkeypatch.setenv("KAFKAIO_TEST_WORD", "a1")
    host = "b-1.x.kafka.eu-west-1.amazonaws.com:9098"
    monkeypatch.setenv("KAFKAIO_TEST_SERVERS", host)
    for config in (
        pickle.loads(pickle.dumps(read)).client_config(in_task=True),
        pickle.loads(pickle.dumps(write)).producer_config(),
        pickle.loads(pickle.dumps(write)).client_config(),
    ):
        request = config.sasl_oauth_token_provider
        assert isinstance(request, TokenRequest)
        assert request.msk == MskFacts(
            region="eu-west-1", role_arn="arn", role_external_id="a1"
        )


def test_an_unknown_provider() -> None:
    given = {
        **MSK,
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.login.callback.handler.class": "com.azure.Token",
    }
    del given["kafka.sasl.client.callback.handler.class"]
    with pytest.raises(ConfigurationError, match="it has ClientAssertion, ClientCred"):
        batch(**given)


# ---- writing -------------------------------------------------------------------------


def test_the_defaults_of_a_write() -> None:
    found = batch_write(topic=" t ")
    assert found.topic == "t"
    assert found.marker_topic is None
    assert not found.exactly_once
    assert found.transactional_id_prefix == "kafkaio"
    assert found.fails_on_mismatch
    config = found.producer_config()
    assert config.enable_idempotence
    assert config.transactional_id is None
    assert config.client_id == "kafkaio-spark"
    assert found.client_config().bootstrap_servers == config.bootstrap_servers
    assert stream_write().topic is None


def test_exactly_once_in_a_stream() -> None:
    found = stream_write(
        exactlyOnce="true",
        markerTopic="m",
        txnAppId="app",
        transactionalIdPrefix="p",
        onReplayMismatch="WARN",
    )
    assert (found.exactly_once, found.marker_topic, found.app) == (True, "m", "app")
    assert (found.transactional_id_prefix, found.fails_on_mismatch) == ("p", False)
    config = found.producer_config("p-app-0")
    assert config.transactional_id == "p-app-0"
    assert config.transaction_timeout_ms == 300_000
    longer = stream_write(
        topic="t", exactlyOnce="true", **kafka("transaction.timeout.ms", "60000")
    )
    assert longer.producer_config("x").transaction_timeout_ms == 60_000


@pytest.mark.parametrize(
    ("options", "topic", "groups_at"),
    [
        ({"topic": "t"}, "kafkaio-markers", "t"),
        ({}, "kafkaio-markers", None),
        ({"transactionalIdPrefix": "p", "topic": "t"}, "p-markers", "t"),
        ({"topic": "t", "markerTopic": "m"}, "m", None),
        ({"topic": "t", "markerStore": "groups"}, "t", "t"),
        ({"topic": "t", "markerStore": "groups", "markerTopic": "m"}, "m", "m"),
        ({"topic": "m", "markerStore": "groups", "markerTopic": "m"}, "m", "m"),
    ],
)
def test_where_markers_are_kept(
    options: dict[str, str], topic: str, groups_at: str | None
) -> None:
    found = stream_write(exactlyOnce="true", **options)
    assert (found.marker_topic, found.groups_at) == (topic, groups_at)


def test_exactly_once_in_a_batch() -> None:
    found = batch_write(topic="t", exactlyOnce="true", txnAppId="app", txnVersion="7")
    assert (found.app, found.version) == ("app", 7)


@pytest.mark.parametrize(
    ("is_stream", "options", "message"),
    [
        (False, {"txnAppId": "a"}, "txnAppId and txnVersion need exactlyOnce=true"),
        (True, {"txnVersion": "1"}, "txnAppId and txnVersion need exactlyOnce=true"),
        (
            True,
            {"exactlyOnce": "true", "markerStore": "groups"},
            "needs a topic for its markers",
        ),
        (
            True,
            {"exactlyOnce": "true", "topic": "t", "markerTopic": "t"},
            "is the topic that is written to",
        ),
        (
            True,
            {"exactlyOnce": "true", "topic": "t", "txnVersion": "1"},
            "would hide every micro-batch after the first",
        ),
        (
            False,
            {"exactlyOnce": "true", "topic": "t", "txnAppId": "a"},
            "needs txnAppId and txnVersion",
        ),
        (False, {"topic": " "}, "topic is empty"),
        (False, {"onReplayMismatch": "retry"}, "is not one of 'fail', 'warn'"),
        (False, {"kafka.acks": "2"}, "acks"),
        (
            True,
            {"exactlyOnce": "true", "topic": "t", "kafka.acks": "1"},
            "transactional_id needs acks='all'",
        ),
    ],
)
def test_writes_that_are_not_possible(
    is_stream: bool, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        WriteOptions.of({**SERVERS, **options}, is_stream=is_stream)
    assert message in str(caught.value)
