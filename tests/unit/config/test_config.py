import inspect
import pickle
import pydoc
import re
import ssl
import tomllib
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Unpack, get_type_hints

import pytest

import kafkaio
from kafkaio import Client, Consumer, FileOffsetStore, Producer, ShareConsumer
from kafkaio._config import (
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    ShareConsumerConfig,
)
from kafkaio._config.configs import parse_servers
from kafkaio._config.declaration import check_value, option_of
from kafkaio._config.options import (
    ClientOptions,
    ConsumerOptions,
    ProducerOptions,
    ShareConsumerOptions,
)
from kafkaio._config.unknown import FOREIGN, SHARE
from kafkaio.errors import ConfigurationError
from kafkaio.serde import String

CONFIGS = [
    (ClientConfig, ClientOptions),
    (ProducerConfig, ProducerOptions),
    (ConsumerConfig, ConsumerOptions),
    (ShareConsumerConfig, ShareConsumerOptions),
]


#: Parameters of their own, for type checkers infer types by them.
SERDES = {
    f"{part}_{what}"
    for part in ("key", "value")
    for what in ("serializer", "deserializer")
}


@pytest.mark.parametrize(("config", "keywords"), CONFIGS)
def test_keyword_types_name_every_option(config: type, keywords: type) -> None:
    names = set(get_type_hints(keywords, localns={"ssl": ssl}))
    assert names == {f.name for f in fields(config)} - {"bootstrap_servers"} - SERDES


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("a", (("a", 9092),)),
        ("a:1,b:2", (("a", 1), ("b", 2))),
        ("a:1, b", (("a", 1), ("b", 9092))),
        ("[::1]:7", (("::1", 7),)),
        ("[fe80::1]", (("fe80::1", 9092),)),
        ("kafka-1.example:9093,b_2:7", (("kafka-1.example", 9093), ("b_2", 7))),
        ("PLAINTEXT://broker:9", (("broker", 9),)),
        ("DOCKER_1://broker:9", (("broker", 9),)),
        (["a:1", "b"], (("a", 1), ("b", 9092))),
    ],
)
def test_servers(text: str, servers: tuple[tuple[str, int], ...]) -> None:
    assert parse_servers(text) == servers


@pytest.mark.parametrize(
    "text",
    ["", " , ", ":1", "a:", "a:0", "a:65536", "a:000001", "a:b", "a b:1", [], [1]],
)
def test_servers_that_make_no_sense(text: str) -> None:
    with pytest.raises(ConfigurationError, match="server"):
        parse_servers(text)


@pytest.mark.parametrize("servers", [None, 5, b"a:1", 1.5, True, object(), ["a", 1]])
@pytest.mark.parametrize("kind", [Client, Producer, Consumer])
def test_servers_of_a_wrong_type(kind: Any, servers: object) -> None:
    with pytest.raises(
        ConfigurationError, match=r"bootstrap_servers.* is not 'host:port'"
    ):
        kind(servers)


@pytest.mark.parametrize("url", ["http://localhost:9092", "kafka://a", "https://a:1/b"])
def test_a_url_is_no_server(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"use host:port.*not a URL"):
        Producer(url)


@pytest.mark.parametrize("kind", [Client, Producer, Consumer])
def test_one_name_for_the_servers_of_all_classes(kind: Any) -> None:
    for made in (kind("a:1"), kind(bootstrap_servers="a:1")):
        assert made.__class__.__name__ == kind.__name__
    with pytest.raises(ConfigurationError, match="use bootstrap_servers instead"):
        kind(bootstrap="a:1")


@pytest.mark.parametrize("kind", [Client, Producer, Consumer])
def test_a_mapping_of_properties_is_for_from_properties(kind: Any) -> None:
    properties = {"bootstrap.servers": "a:1"}
    message = rf"pass it to {kind.__name__}\.from_properties"
    with pytest.raises(ConfigurationError, match=message):
        kind(properties)
    assert kind.from_properties(properties)
    with pytest.raises(
        ConfigurationError, match="properties must be a mapping, not str"
    ):
        kind.from_properties("a:1")


def test_a_client_goes_by_the_name_of_servers() -> None:
    client = Client("a:1", client_id="shared")
    assert Producer(bootstrap_servers=client, linger_ms=1).config.client_id == "shared"
    assert "shared" in repr(Consumer(bootstrap_servers=client))


@pytest.mark.parametrize("kind", [Producer, Consumer])
@pytest.mark.parametrize(
    "options",
    [
        {"security_protocol": "SSL"},  # went out in plain text
        {"ssl_context": ssl.create_default_context()},
        {"request_timeout_ms": 1},
        {"log": False},
    ],
)
def test_options_of_a_shared_client_are_given_to_it(
    kind: Any, options: dict[str, object]
) -> None:
    with pytest.raises(ConfigurationError, match="option of the client"):
        kind(Client("a:1"), **options)


@pytest.mark.parametrize("kind", [Producer, Consumer])
def test_an_observer_is_given_to_the_client_that_is_shared(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match="observer"):
        kind(Client("a:1"), observer=object())


def test_a_tls_context_that_would_not_be_used() -> None:
    with pytest.raises(ConfigurationError, match="without security_protocol='SSL'"):
        Client("a:1", ssl_context=ssl.create_default_context())


@pytest.mark.parametrize("config", [ProducerConfig, ConsumerConfig, ClientConfig])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("transaction_two_phase_commit_enable", "two-phase commit"),
        ("sasl_plain_password", "use sasl_password"),
        ("ssl_ciphers", "make an ssl.SSLContext"),
        ("ssl_cafile", "use ssl_truststore_location"),
        ("ssl_check_hostname", "use ssl_endpoint_identification_algorithm"),
        ("loop", "leave it out"),
        ("api_version", "leave it out"),
        ("consumer_timeout_ms", r"use poll\(timeout"),
        ("max_batch_size", "use batch_size instead"),
        ("rebalance_timeout_ms", "use max_poll_interval_ms instead"),
    ],
)
def test_options_of_other_clients_say_what_to_do(
    config: type[ClientConfig], name: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"unknown option '{name}'; {message}"):
        config.of("a", {name: None})
    dotted = name.replace("_", ".")
    with pytest.raises(ConfigurationError, match=f"option '{dotted}'; {message}"):
        config.from_properties({"bootstrap.servers": "a", dotted: "x"})


def test_what_is_said_of_other_clients_is_true() -> None:
    options = {f.name for kind, _ in CONFIGS for f in fields(kind)}
    aliases = {
        a for kind, _ in CONFIGS for f in fields(kind) for a in option_of(f).other_names
    }
    assert not options & {*FOREIGN, *aliases}
    for name, hint in FOREIGN.items():
        for used in re.findall(r"use (\w+_\w+)(?!\w*\()", hint):
            assert used in options or hasattr(Consumer, used), name


def test_what_a_share_consumer_cannot_have() -> None:
    own = {f.name for f in fields(ShareConsumerConfig)}
    assert not own & SHARE.keys()
    # Every option of a consumer that a share consumer does not have is explained.
    of_consumers = {f.name for f in fields(ConsumerConfig)}
    assert of_consumers - own <= SHARE.keys()
    for name, hint in SHARE.items():
        for used in re.findall(r"use (\w+_\w+)", hint):
            assert used in own, name
        match = f"'?{name}'? is not an option of ShareConsumer: {re.escape(hint)}"
        with pytest.raises(ConfigurationError, match=match):
            ShareConsumer("a", group_id="g", **{name: 1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "auto.offset.reset",
            r"set the config share\.auto\.offset\.reset of the group",
        ),
        ("isolation.level", r"set the config share\.isolation\.level of the group"),
        ("session.timeout.ms", r"set the config share\.session\.timeout\.ms of"),
        ("enable.auto.commit", "acknowledge each record"),
        ("group.instance.id", "no static members"),
        ("share.record.lock.duration.ms", "at the brokers"),
    ],
)
def test_properties_that_belong_to_the_group(name: str, message: str) -> None:
    given = {"bootstrap.servers": "a", "group.id": "g", name: "x"}
    with pytest.raises(ConfigurationError, match=message):
        ShareConsumer.from_properties(given)


def test_javas_properties_of_share_consumers() -> None:
    config = ShareConsumerConfig.from_properties(
        {
            "bootstrap.servers": "a",
            "group.id": "g",
            "share.acknowledgement.mode": "implicit",
            "share.acquire.mode": "record_limit",
            "max.poll.records": "7",
            "check.crcs": "false",
        }
    )
    assert (config.acknowledgement, config.acquire_mode) == ("implicit", "record_limit")
    assert (config.max_in_flight, config.check_crcs) == (7, False)


@pytest.mark.parametrize("given", [{}, {"group_id": ""}])
def test_a_share_consumer_has_a_group(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="group_id is missing: name the share"):
        ShareConsumer("a", topics="t", **given)


def test_an_option_of_another_class_names_that() -> None:
    with pytest.raises(ConfigurationError, match="of Consumer, not of Producer"):
        Producer("a", group_id="g")  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="of Producer, not of Consumer"):
        Consumer("a", linger_ms=5)  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match=r"group\.id is an option of Consumer"):
        Client.from_properties({"bootstrap.servers": "a", "group.id": "g"})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("lingr_ms", "linger_ms"),
        ("batchsize", "batch_size"),
        ("session_timeout", "session_timeout_ms"),
        ("group", "group_id"),
        ("topic", "topics"),
        ("bootstrap_server", "bootstrap_servers"),
    ],
)
def test_a_near_name_is_suggested(given: str, meant: str) -> None:
    kind = ConsumerConfig if meant in {"group_id", "topics"} else ProducerConfig
    kind = ConsumerConfig if meant == "session_timeout_ms" else kind
    with pytest.raises(ConfigurationError, match=f"did you mean '{meant}'"):
        kind.of("a", {given: 1})


@pytest.mark.parametrize("name", ["foo", "verbose", "color", "xyz_ms", "n", "rackets"])
@pytest.mark.parametrize("config", [ProducerConfig, ConsumerConfig, ClientConfig])
def test_nonsense_has_no_suggestion(config: type[ClientConfig], name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"unknown option '{name}'$"):
        config.of("a", {name: 1})


def test_an_object_of_any_class_that_can_be_called_is_a_serializer() -> None:
    class Codec:
        def __call__(self, value: object) -> bytes:
            return str(value).encode()

    config = ProducerConfig.of("a", {"value_serializer": Codec()})
    assert config.value_serializer is not None
    assert config.value_serializer(5) == b"5"


def test_defaults_are_those_of_the_java_client() -> None:
    producer = ProducerConfig.of("a", {})
    assert producer.required_acks == -1
    assert producer.enable_idempotence is True
    assert producer.linger_ms == 5
    assert producer.batch_size == 1_000_000  # Java has 16,384: ADR 15
    assert producer.delivery_timeout_ms == 120_000
    consumer = ConsumerConfig.of("a", {})
    assert consumer.session_timeout_ms == 45_000
    assert consumer.auto_offset_reset == "latest"


@pytest.mark.parametrize(
    ("config", "given", "message"),
    [
        (ProducerConfig, {"lingr_ms": 1}, "unknown option 'lingr_ms'.*'linger_ms'"),
        (ProducerConfig, {"zzz": 1}, "unknown option 'zzz'$"),
        (ProducerConfig, {"linger_ms": -1}, "linger_ms=-1 is less than 0"),
        (ProducerConfig, {"linger_ms": True}, "linger_ms=True has the wrong type"),
        (ProducerConfig, {"linger_ms": "5"}, "wrong type"),
        (ProducerConfig, {"acks": 2}, "acks=2 is none of"),
        (ProducerConfig, {"acks": True}, "acks=True is none of"),
        (ProducerConfig, {"compression_type": "lz"}, "did you mean 'lz4'"),
        (ProducerConfig, {"compression_type": None}, "not one of 'none', 'gzip'"),
        (ProducerConfig, {"compression_type": "q"}, "'lz4', 'zstd'$"),
        (ClientConfig, {"security_protocol": "ssl"}, "did you mean 'SSL'"),
        (ClientConfig, {"ssl_context": True}, "not an ssl.SSLContext"),
        (ClientConfig, {"ssl_context": "ca.pem"}, "not an ssl.SSLContext"),
        (ClientConfig, {"ssl_context": ssl.SSLContext}, "not an ssl.SSLContext"),
        (ClientConfig, {"log": "no"}, "log='no' has the wrong type: bool is needed"),
        (ProducerConfig, {"value_serializer": "json"}, "'json' is not a function that"),
        (ProducerConfig, {"key_serializer": 5}, "key_serializer=5 is not a function"),
        (ProducerConfig, {"key_serializer": String}, r"is a class.*String\(\)$"),
        (ConsumerConfig, {"value_deserializer": String}, r"is a class.*String\(\)$"),
        (ProducerConfig, {"partitioner": "murmur2"}, r"not a function \(topic, key"),
        (ConsumerConfig, {"key_deserializer": "json"}, "not a function that"),
        (ConsumerConfig, {"value_deserializer": 5}, "=5 is not a function that"),
        (ProducerConfig, {"retries": None}, "wrong type: int is needed"),
        (ProducerConfig, {"linger_ms": None}, "wrong type: int or float is needed"),
        (ConsumerConfig, {"group_id": 5}, "str or None is needed"),
        (ProducerConfig, {"compression_lz4_level": "9"}, "wrong type"),
        (ProducerConfig, {"compression_lz4_level": 99}, "is more than 16"),
        (ProducerConfig, {"delivery_timeout_ms": 1}, "less than linger_ms"),
        (ProducerConfig, {"acks": 1, "enable_idempotence": True}, "needs acks='all'"),
        (ProducerConfig, {"retries": 0, "enable_idempotence": True}, "retries > 0"),
        (
            ProducerConfig,
            {"max_in_flight_requests_per_connection": 6, "enable_idempotence": True},
            "<= 5",
        ),
        (ProducerConfig, {"enable_idempotence": 1}, "wrong type"),
        (ConsumerConfig, {"group_id": ""}, "group_id is empty"),
        (ConsumerConfig, {"group_id": 5}, "wrong type"),
        (ConsumerConfig, {"group_instance_id": "a"}, "needs a group_id"),
        (ConsumerConfig, {"auto_offset_reset": "eariest"}, "use latest, earliest"),
        (ConsumerConfig, {"auto_offset_reset": "by_duration:P"}, "ISO 8601"),
        (ConsumerConfig, {"auto_offset_reset": timedelta(seconds=-1)}, "negative"),
        (ConsumerConfig, {"auto_offset_reset": 5}, "str or timedelta is needed"),
        (ConsumerConfig, {"heartbeat_interval_ms": 45_000}, "must be less than"),
        (ConsumerConfig, {"partition_assignment_strategy": ()}, "no assignor"),
        (ConsumerConfig, {"partition_assignment_strategy": ", "}, "no assignor"),
        (ConsumerConfig, {"partition_assignment_strategy": 5}, "no assignor"),
        (ConsumerConfig, {"offset_store": "a.db", "group_id": "g"}, "does not have"),
        (
            ConsumerConfig,
            {"offset_store": FileOffsetStore, "group_id": "g"},
            "does not have the methods of OffsetStore",
        ),
        (ConsumerConfig, {"offset_store": FileOffsetStore("a")}, "give group_id"),
        (
            ConsumerConfig,
            {"group_protocol": "classic", "group_remote_assignor": "range"},
            "no meaning with group_protocol='classic'",
        ),
        (
            ConsumerConfig,
            {"group_protocol": "consumer", "session_timeout_ms": 6000},
            "session_timeout_ms has no meaning with group_protocol='consumer'",
        ),
        (
            ConsumerConfig,
            {
                "group_remote_assignor": "range",
                "partition_assignment_strategy": "range",
            },
            "give one of them",
        ),
        (ClientConfig, {"security_protocol": "SASL"}, "is not one of"),
    ],
)
def test_impossible_options(
    config: type[ClientConfig], given: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        config.of("a", given)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "given",
    [
        {"acks": 1},
        {"acks": 0},
        {"retries": 0},
        {"max_in_flight_requests_per_connection": 6},
    ],
)
def test_idempotence_gives_way_unless_it_was_asked_for(
    given: dict[str, object],
) -> None:
    assert ProducerConfig.of("a", given).enable_idempotence is False


def test_properties_of_java_and_librdkafka() -> None:
    config = ConsumerConfig.from_properties(
        {
            "bootstrap.servers": "x:1",
            "session.timeout.ms": "6000",
            "enable.auto.commit": "false",
            "group.id": "g",
            "partition.assignment.strategy": "range, roundrobin",
            "auto.offset.reset": "by_duration:P1DT1H30M2.5S",
            "fetch.message.max.bytes": "17",
        }
    )
    assert config.bootstrap_servers == (("x", 1),)
    assert (config.session_timeout_ms, config.enable_auto_commit) == (6000, False)
    assert config.partition_assignment_strategy == ("range", "roundrobin")
    assert config.reset_duration_ms() == ((25 * 60 + 30) * 60) * 1000 + 2500
    assert config.max_partition_fetch_bytes == 17
    producer = ProducerConfig.from_properties(
        {
            "metadata.broker.list": ["x"],
            "acks": "1",
            "linger.ms": "0.5",
            "enable.idempotence": "false",
            "compression.zstd.level": "7",
            "compression.type": "zstd",
        }
    )
    assert (producer.required_acks, producer.linger_ms) == (1, 0.5)
    assert producer.compression_level == 7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"linger.ms": 5}, "bootstrap.servers is missing"),
        ({"bootstrap.servers": "x", "linger.sm": 5}, "did you mean 'linger.ms'"),
        ({"bootstrap.servers": "x", "linger.ms": "soon"}, "linger_ms='soon'"),
        ({"bootstrap.servers": "x", "acks": "most"}, "acks='most'"),
    ],
)
def test_impossible_properties(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ProducerConfig.from_properties(given)


def test_level_of_the_codec_in_use() -> None:
    assert (
        ProducerConfig.of("a", {"compression_gzip_level": 3}).compression_level is None
    )
    given = {"compression_type": "gzip", "compression_gzip_level": 3}
    assert ProducerConfig.of("a", given).compression_level == 3


KINDS = [
    (Client, ClientConfig, ClientOptions),
    (Producer, ProducerConfig, ProducerOptions),
    (Consumer, ConsumerConfig, ConsumerOptions),
    (ShareConsumer, ShareConsumerConfig, ShareConsumerOptions),
]


@pytest.mark.parametrize(("kind", "config", "keywords"), KINDS)
def test_containers_find_the_types_of_constructors(
    kind: Any, config: Any, keywords: Any
) -> None:
    """Dependency injection asks `get_type_hints` what a constructor takes."""
    hints = get_type_hints(kind.__init__)
    assert hints["options"] == Unpack[keywords]
    assert "bootstrap_servers" in hints


@pytest.mark.parametrize(("kind", "config", "keywords"), KINDS)
def test_signatures_show_the_options(kind: Any, config: Any, keywords: Any) -> None:
    shown = inspect.signature(kind).parameters
    types = get_type_hints(keywords, localns={"ssl": ssl})
    for field in fields(config):
        if field.name != "bootstrap_servers":
            parameter = shown[field.name]
            assert parameter.default == field.default
            if field.name not in SERDES:
                assert parameter.annotation == types[field.name]
            assert parameter.kind is parameter.KEYWORD_ONLY
    assert next(iter(shown)) == "bootstrap_servers"
    assert shown["bootstrap_servers"].default == "localhost:9092"
    assert "options" not in shown
    own = {"bootstrap_servers", "observer"}
    if kind is Consumer:
        own |= {"topics", "assign", "on_assigned", "on_revoked", "on_lost"}
    if kind is ShareConsumer:
        own |= {"topics"}
    own |= SERDES & {field.name for field in fields(config)}
    assert shown.keys() == types.keys() | own


def test_signature_of_a_subclass() -> None:
    class Plain(Consumer):
        """With the constructor of its base."""

    class Other(Producer):
        def __init__(
            self, name: str, *, prefix: str = "", **options: Unpack[ProducerOptions]
        ) -> None:
            super().__init__(client_id=prefix + name, **options)

    class Loose(Consumer):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)

    assert inspect.signature(Plain) == inspect.signature(Consumer)
    shown = inspect.signature(Other).parameters
    assert list(shown)[:3] == ["name", "prefix", "client_id"]
    assert shown["linger_ms"].default == 5
    assert list(inspect.signature(Loose).parameters) == ["args", "options"]


def test_help_shows_the_options() -> None:
    text = pydoc.plain(pydoc.render_doc(Producer))
    head = text[: text.index("Writes records to Kafka")]
    assert "bootstrap_servers: str | " in head
    assert "acks: Literal['all', -1, 0, 1] = 'all'" in head
    assert "value_serializer: " in head


@pytest.mark.parametrize(
    "name", ["auto_offset_reset", "auto_offset_reset_new_partitions"]
)
@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(0), "by_duration:PT0.000S"),
        (timedelta(hours=1), "by_duration:PT3600.000S"),
        (timedelta(days=400, milliseconds=1), "by_duration:PT34560000.001S"),
    ],
)
def test_a_reset_by_a_timedelta(name: str, ago: timedelta, text: str) -> None:
    config = ConsumerConfig.of("a", {name: ago})
    assert getattr(config, name) == text
    assert ConsumerConfig.of("a", {name: text}) == config
    if name == "auto_offset_reset":
        assert config.reset_duration_ms() == ago // timedelta(milliseconds=1)


def test_one_place_has_the_version() -> None:
    root = Path(__file__).parents[3]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    source = project["tool"]["setuptools"]["dynamic"]["version"]["attr"]
    assert "version" in project["project"]["dynamic"]
    assert resolve_name(source.replace(".__", ":__")) == kafkaio.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", kafkaio.__version__)


PLAIN = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "u",
    "sasl_password": "hidden",
}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sasl_mechanism": None}, "'SASL_SSL' needs sasl_mechanism"),
        ({"sasl_mechanism": "DIGEST"}, "is not one of"),
        ({"sasl_username": None}, "'PLAIN' needs sasl_username"),
        ({"sasl_password": ""}, "'PLAIN' needs sasl_password"),
        ({"security_protocol": "SSL"}, "is not used without security_protocol="),
        ({"sasl_delegation_token": True}, "sasl_delegation_token has no meaning"),
        ({"sasl_oauth_token_provider": print}, "provider has no meaning with"),
        ({"sasl_kerberos_keytab": "k"}, "keytab has no meaning with"),
        ({"sasl_mechanism": "OAUTHBEARER"}, "sasl_password has no meaning with"),
        (
            {
                **dict.fromkeys(("sasl_username", "sasl_password")),
                "sasl_mechanism": "OAUTHBEARER",
            },
            "'OAUTHBEARER' needs sasl_oauth_token_provider",
        ),
        (
            {
                **dict.fromkeys(("sasl_username", "sasl_password")),
                "sasl_mechanism": "GSSAPI",
                "sasl_kerberos_keytab": "k",
            },
            "keytab needs sasl_kerberos_principal",
        ),
        ({"sasl_password": 7}, r"sasl_password \(int\) has the wrong type"),
        ({"sasl_scram_max_iterations": 4}, "is less than 4096"),
    ],
)
def test_impossible_logins(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        ClientConfig.of("a:1", {**PLAIN, **given})
    assert "hidden" not in str(caught.value)


def test_no_secret_is_shown() -> None:
    made = ClientConfig.of("a:1", {**PLAIN, "ssl_key_password": "also hidden"})
    assert made.sasl_password == "hidden"
    assert "hidden" not in repr(made)
    assert "sasl_username='u'" in repr(made)
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    "config", [ClientConfig, ProducerConfig, ConsumerConfig, ShareConsumerConfig]
)
def test_every_default_fits(config: type[ClientConfig]) -> None:
    """Values that are the default are not checked again for each client."""
    for declared in fields(config):
        check_value(declared, declared.default)
