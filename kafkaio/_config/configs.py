"""Options: one frozen object each for a client, a producer and a consumer.

An option has Kafka's own name in snake_case, Kafka's unit (``_ms`` are milliseconds,
``_bytes`` bytes) and the Java client's default. A configuration checks itself once,
when it is made. Every error names the option and says what is needed instead. For an
unknown option the error suggests a similar name, or what kafkaio has in its place.

Every option is declared here and nowhere else: see `kafkaio._config.declaration`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Never, Self, TypeAlias

from kafkaio._config.declaration import (
    check_value,
    documented,
    given,
    option,
    option_of,
    read_property,
    wrong_value,
)
from kafkaio._dataclass import dataclass, fields_of
from kafkaio._public import public
from kafkaio._topic import DeserializerLike, SerializerLike
from kafkaio.errors import ConfigurationError
from kafkaio.types import OffsetStore, Token

if TYPE_CHECKING:
    import ssl

    from kafkaio._config.login_properties import TokenRequest


def with_functions(
    options: Mapping[str, object], functions: Mapping[str, object]
) -> Mapping[str, object]:
    """Return options with the functions that are not None, which go first.

    Args:
        options: what `ClientConfig.of` or ``from_properties`` takes.
        functions: by the same names.
    """
    given = {name: each for name, each in functions.items() if each is not None}
    # What is no mapping is refused where the options are read.
    return {**options, **given} if given and isinstance(options, Mapping) else options


#: What turns a user's key or value into bytes: any of `SerializerLike`.
Serializer: TypeAlias = SerializerLike[Never]
#: What turns bytes into the key or value that a user reads.
Deserializer: TypeAlias = DeserializerLike[object]
#: Returns a token for OAUTHBEARER when it is called and awaited.
TokenProvider = Callable[[], Awaitable[Token]]
#: Patterns of hosts, or a function of host and port.
AllowedHosts = Collection[str] | Callable[[str, int], bool]
#: The highest version to use, by the name of an API; or ``"JoinGroup:5,SyncGroup:3"``.
MaxVersions = Mapping[str, int] | str
#: Chooses a partition: (topic, key bytes, value bytes, number of partitions).
Partitioner = Callable[[str, bytes | None, bytes | None, int], int]

_DEFAULT_PORT = 9092
#: A name has 253 characters at most (RFC 1035); what is longer is a token or a key.
_LONGEST_ADDRESS = 300

#: The servers of a client that was given none.
DEFAULT_SERVERS = f"localhost:{_DEFAULT_PORT}"
#: Requests may grow beyond it where nothing else is set.
DEFAULT_REQUEST_SIZE = 1_048_576
_MAX = 2**31 - 1
_FROM_0: tuple[float, float] = (0, _MAX)
_FROM_1: tuple[float, float] = (1, _MAX)
#: Assignors that Java has as classes, such as ``CooperativeStickyAssignor``.
#: How other clients name the policies of ``auto_offset_reset``.
_RESETS: Mapping[str, str | None] = {
    "latest": "latest",
    "largest": "latest",
    "end": "latest",
    "earliest": "earliest",
    "smallest": "earliest",
    "beginning": "earliest",
    "none": "none",
    "error": "none",
    "by_duration": "by_duration",
}
#: Its type as a keyword. Type checkers do not take ``by_duration:...`` as text: they
#: would take every other text, too.
_RESET = 'Literal["latest", "earliest", "none"] | timedelta'
_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
#: How many batches per producer and partition a broker remembers (KIP-98).
_MAX_IDEMPOTENT_IN_FLIGHT = 5


@public("kafkaio")
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The options that every kind of client needs to reach a cluster."""

    bootstrap_servers: tuple[tuple[str, int], ...] = option(
        (("localhost", _DEFAULT_PORT),),
        "(host, port) pairs to connect to first. As an argument and as a property: "
        '``"host:port,host2:port"`` or a sequence of such addresses.',
        aliases=("metadata.broker.list",),
    )
    client_id: str = option(
        "",
        "Name that brokers see in requests, quotas and logs; it also begins each line "
        "of the client's own log. Empty: a numbered one, such as "
        "``kafkaio-producer-1`` or ``kafkaio-consumer-GROUP-1``.",
    )
    client_rack: str = option(
        "",
        "Rack of this client. A consumer reads from a replica there (KIP-392), a "
        "producer writes there with ``partitioner_rack_aware``.",
        aliases=("broker.rack",),
    )
    request_timeout_ms: int = option(
        30_000,
        "Longest wait for one answer. For a produce request it begins anew with the "
        "answer to the one before it on the connection.",
        bounds=_FROM_1,
        aliases=("socket.timeout.ms",),
    )
    default_api_timeout_ms: int = option(
        60_000, "Longest time for one call, its retries included.", bounds=_FROM_1
    )
    retry_backoff_ms: int = option(
        100,
        "First pause between retries. It doubles each time, with 20 % jitter.",
        bounds=_FROM_0,
    )
    retry_backoff_max_ms: int = option(
        1_000, "Longest pause between retries.", bounds=_FROM_0
    )
    reconnect_backoff_ms: int = option(
        50, "First pause before connecting again.", bounds=_FROM_0
    )
    reconnect_backoff_max_ms: int = option(
        1_000, "Longest pause before connecting again.", bounds=_FROM_0
    )
    socket_connection_setup_timeout_ms: int = option(
        10_000, "Time limit of the first attempt to connect.", bounds=_FROM_1
    )
    socket_connection_setup_timeout_max_ms: int = option(
        30_000,
        "Time limit to which that grows with further attempts.",
        bounds=_FROM_1,
    )
    connections_max_idle_ms: int = option(
        540_000, "An unused connection is closed after this time.", bounds=_FROM_1
    )
    metadata_max_age_ms: int = option(
        300_000,
        "Metadata is fetched again after this time at the latest.",
        bounds=_FROM_1,
    )
    metadata_max_idle_ms: int = option(
        300_000,
        "A producer forgets the metadata of a topic that it did not use for this long.",
        bounds=_FROM_1,
    )
    metadata_recovery_strategy: Literal["rebootstrap", "none"] = option(
        "rebootstrap",
        "``rebootstrap`` starts again from ``bootstrap_servers`` when no known broker "
        "can be reached (KIP-899). ``none`` keeps trying the known brokers.",
        choices=("rebootstrap", "none"),
    )
    metadata_recovery_rebootstrap_trigger_ms: int = option(
        300_000,
        "The client also starts again from ``bootstrap_servers`` after this time "
        "without a successful metadata update (KIP-1102).",
        bounds=_FROM_0,
    )
    bootstrap_resolve_timeout_ms: int = option(
        60_000,
        "How long the client waits at its start while the name of no bootstrap server "
        "can be resolved (KIP-909), because its service is not up yet. 0, the default "
        "of Java's clients: the first look-up decides. Names that can be resolved are "
        "tried until the time limit of ``start``, whatever this says.",
        bounds=_FROM_0,
    )
    metadata_cluster_check_enable: bool = option(
        True,  # noqa: FBT003
        "Every connection to a known broker says which broker of which cluster is "
        "expected there, and one that is not it refuses (KIP-1242; Kafka 4.4). The "
        "client then starts again from ``bootstrap_servers``. Without effect if "
        "``metadata_recovery_strategy`` is ``none``.",
    )
    bootstrap_controllers: tuple[tuple[str, int], ...] = option(
        (),
        "(host, port) pairs of controllers to connect to, in place of brokers "
        "(KIP-919): for what an `Admin` or a `Client` asks of the controllers alone, "
        "although no broker runs. It needs Kafka 3.7, and excludes "
        "``bootstrap_servers``. As an argument and as a property likewise.",
        keyword_type="str | Sequence[str]",
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = (
        option(
            "PLAINTEXT",
            "How connections are secured: by TLS (``SSL``), by a login (``SASL_``), by "
            "both or not at all.",
            choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        )
    )
    ssl_context: ssl.SSLContext | None = option(
        None,
        "TLS settings, in place of all other ``ssl_`` options. It cannot be pickled. "
        "None: the settings that those options describe.",
        is_own=True,
    )
    ssl_truststore_location: str | None = option(
        None,
        "File with the certificates of the authorities to trust, PEM or PKCS12. None: "
        "those that the system trusts.",
        aliases=("ssl.ca.location",),
    )
    ssl_truststore_certificates: str | None = option(
        None,
        "The same as text: certificates in PEM, one after the other.",
        aliases=("ssl.ca.pem",),
    )
    ssl_truststore_type: Literal["PEM", "PKCS12"] | None = option(
        None,
        "Format of ``ssl_truststore_location``. None: by the file's content.",
        choices=(None, "PEM", "PKCS12"),
    )
    ssl_truststore_password: str | None = option(
        None, "Password of a PKCS12 trust store.", is_secret=True
    )
    ssl_keystore_location: str | None = option(
        None,
        "File with the client's private key and its certificate chain, PEM or PKCS12.",
    )
    ssl_keystore_type: Literal["PEM", "PKCS12"] | None = option(
        None,
        "Format of ``ssl_keystore_location``. None: by the file's content.",
        choices=(None, "PEM", "PKCS12"),
    )
    ssl_keystore_password: str | None = option(
        None,
        "Password of a PKCS12 key store.",
        is_secret=True,
    )
    ssl_keystore_certificate_chain: str | None = option(
        None,
        "The client's certificate and those above it, as PEM text.",
        aliases=("ssl.certificate.pem",),
    )
    ssl_keystore_key: str | None = option(
        None,
        "The client's private key, as PEM text.",
        aliases=("ssl.key.pem",),
        is_secret=True,
    )
    ssl_certificate_location: str | None = option(
        None,
        "File with the client's certificate chain in PEM, where the key has a file of "
        "its own.",
        is_own=True,
    )
    ssl_key_location: str | None = option(
        None,
        "File with the client's private key in PEM, beside "
        "``ssl_certificate_location``.",
        is_own=True,
    )
    ssl_key_password: str | None = option(
        None, "Password of an encrypted private key.", is_secret=True
    )
    ssl_endpoint_identification_algorithm: Literal["https", "none", ""] = option(
        "https",
        "``https`` checks that a broker's certificate is valid for the name by which "
        "it is reached. An empty text, or ``none``, does not.",
        choices=("https", "none", ""),
    )
    sasl_mechanism: (
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]
        | None
    ) = option(
        None,
        "How to log in, with a ``SASL_`` protocol.",
        choices=(
            None,
            "PLAIN",
            "SCRAM-SHA-256",
            "SCRAM-SHA-512",
            "OAUTHBEARER",
            "GSSAPI",
        ),
        aliases=("sasl.mechanisms",),
    )
    sasl_username: str | None = option(
        None, "User for PLAIN and SCRAM, or the id of a delegation token.", is_own=True
    )
    sasl_password: str | None = option(
        None,
        "Password for PLAIN and SCRAM, or the HMAC of a delegation token.",
        is_own=True,
        is_secret=True,
    )
    sasl_delegation_token: bool = option(
        False,  # noqa: FBT003
        "``sasl_username`` and ``sasl_password`` are the id and the HMAC of a "
        "delegation token (KIP-48), for SCRAM.",
        is_own=True,
    )
    sasl_oauth_token_provider: TokenProvider | TokenRequest | None = option(
        None,
        "Function that returns a `Token` when it is awaited, for OAUTHBEARER. "
        "``kafkaio.security`` has some; ``from_properties`` reads Kafka's "
        "``sasl.oauthbearer.*`` as one of them.",
        keyword_type="TokenProvider | None",
        is_own=True,
    )
    sasl_kerberos_service_name: str = option(
        "kafka", "Name of the brokers' Kerberos principal, before its host."
    )
    sasl_kerberos_principal: str | None = option(
        None,
        "The client's Kerberos principal. None: that of the credentials cache.",
        is_own=True,
    )
    sasl_kerberos_keytab: str | None = option(
        None,
        "File with the keys of ``sasl_kerberos_principal``. None: the credentials "
        "cache, as ``kinit`` fills it.",
        is_own=True,
    )
    sasl_scram_max_iterations: int = option(
        1_000_000,
        "The most iterations that SCRAM does for a broker. A broker names the number, "
        "and each costs time: a million half a second.",
        bounds=(4_096, _MAX),
        is_own=True,
    )
    max_response_size: int = option(
        104_857_600,
        "Size of the largest answer accepted from a broker, in bytes.",
        bounds=(1_024, _MAX),
        aliases=("receive.message.max.bytes",),
        is_own=True,
    )
    max_decompressed_batch_size: int = option(
        536_870_912,
        "Most bytes that one record batch may decompress to. A larger batch raises "
        "``RecordTooLarge``. A batch that reaches it takes twice as much for a moment.",
        bounds=(1_024, _MAX),
        is_own=True,
    )
    max_control_response_size: int = option(
        16_777_216,
        "The same for answers that carry no records. Such an answer becomes objects "
        "of up to 19 times its size, and of at most six times this option: enough for "
        "the metadata of 100,000 partitions. Raise it for larger clusters.",
        bounds=(1_024, _MAX),
        is_own=True,
    )
    receive_memory: int = option(
        268_435_456,
        "Bytes of large answers that all connections of the client receive at once; "
        "further ones wait. One answer can always be received. The default holds the "
        "answers of a consumer to five brokers at their largest.",
        bounds=(1_024, 2**62),
        is_own=True,
    )
    max_throttle_ms: int = option(
        60_000,
        "The longest pause that a broker's quota can demand of the client (KIP-219). A "
        "broker that demands more is taken for a broken or hostile one. 0 ignores "
        "quotas: the broker then delays what it reads.",
        bounds=_FROM_0,
        is_own=True,
    )
    max_brokers: int = option(
        10_000,
        "The most brokers that a cluster may have. A broker that names more is taken "
        "for a broken or hostile one: each name may become a connection.",
        bounds=_FROM_1,
        is_own=True,
    )
    allowed_hosts: AllowedHosts | None = option(
        None,
        "Brokers to connect to, for services that must not be led to other hosts: "
        "patterns of host names (``*.kafka.example.com``, ``10.0.0.*:9092``), or a "
        "function of host and port that returns whether to connect. "
        "``bootstrap_servers`` are always allowed. None allows every address that "
        "brokers advertise.",
        keyword_type="AllowedHosts | None",
        is_own=True,
    )
    proxy: str | None = option(
        None,
        "URL of the proxy by which brokers are reached: "
        "``socks5://user:password@host:port``, where the client looks the names of "
        "brokers up, ``socks5h://``, where the proxy does, or ``http://``, for "
        "CONNECT, where the proxy does. Needs the extra ``proxy``. TLS and SASL go "
        "through it to the broker; token endpoints are not reached by it.",
        is_own=True,
        is_secret=True,
    )
    max_versions: MaxVersions | None = option(
        None,
        "The highest version of some requests, by their names, for services that "
        'announce more than they can do: ``{"JoinGroup": 5, "ApiVersions": 0}``, as a '
        'property ``"JoinGroup:5,ApiVersions:0"``. None: the highest that both sides '
        "know. What a version cannot do is refused as with an old broker.",
        keyword_type="MaxVersions | None",
        is_own=True,
    )
    send_buffer_bytes: int = option(
        -1, "SO_SNDBUF; -1 for the system's own tuning (ADR-0008).", bounds=(-1, _MAX)
    )
    receive_buffer_bytes: int = option(
        -1, "SO_RCVBUF; -1 for the system's own tuning (ADR-0008).", bounds=(-1, _MAX)
    )
    allow_auto_create_topics: bool = option(
        True,  # noqa: FBT003 - the default value
        "Whether a request for the metadata of an unknown topic may create it, where "
        "the broker allows that.",
    )
    enable_metrics_push: bool = option(
        True,  # noqa: FBT003
        "Whether to push metrics of this client to brokers that ask for them "
        "(KIP-714). Brokers that do not offer it are sent nothing.",
    )
    log: bool = option(
        True,  # noqa: FBT003
        "Whether to write to the standard library's log, as ``kafkaio.client``, "
        "``kafkaio.producer`` and ``kafkaio.consumer``.",
        is_own=True,
    )

    #: Arguments of the constructor that are not options; suggested for similar names.
    ARGUMENTS: ClassVar[tuple[str, ...]] = ("bootstrap_servers", "observer")

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def of(
        cls,
        bootstrap_servers: str | Sequence[str] | None,
        options: Mapping[str, object],
    ) -> Self:
        """Make a configuration from keyword options.

        Args:
            bootstrap_servers: ``"host:port,host2:port"`` or a sequence of such. With
                ``bootstrap_controllers`` among the options it has to be the default.
            options: values by option name.

        Raises:
            ConfigurationError: an option is unknown, of the wrong type or out of
                bounds, or a server address cannot be read.
        """
        known = {f.name for f in fields_of(cls)} - {"bootstrap_servers"}
        for name in options:
            if name not in known:
                raise cls._unknown(name, name, {*known, *cls.ARGUMENTS})
        given = dict(options)
        controllers = given.pop("bootstrap_controllers", ())
        if controllers != ():
            name = "bootstrap_controllers"
            given[name] = parse_servers(controllers, cls._kind(), name)
        is_default = bootstrap_servers == DEFAULT_SERVERS
        given["bootstrap_servers"] = (
            ()
            if is_default and controllers != ()
            else parse_servers(bootstrap_servers, cls._kind())
        )
        # The mapping is checked field by field in __post_init__.
        return cls(**given)  # type: ignore[arg-type]

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> Self:
        """Make a configuration from Kafka's dotted names, as Java and librdkafka do.

        Values may be of their own type or strings (``"true"``, ``"5"``).

        Raises:
            ConfigurationError: as in `of`; also when ``bootstrap.servers`` is missing.
        """
        kind: object = properties
        if not isinstance(kind, Mapping):
            raise ConfigurationError(
                f"properties must be a mapping, not {type(kind).__name__}"
            )
        dotted = {f.name.replace("_", "."): f for f in fields_of(cls)}
        other = {name: f for f in fields_of(cls) for name in option_of(f).other_names}
        options, rest = _login_of(properties)
        for key, value in rest.items():
            found = other.get(key) or dotted.get(key)
            if found is None:
                raise cls._unknown(key, str(key).replace(".", "_"), dotted)
            options[found.name] = read_property(found, value)
        if not options.keys() & {"bootstrap_servers", "bootstrap_controllers"}:
            raise ConfigurationError("bootstrap.servers is missing")
        servers = options.pop("bootstrap_servers", DEFAULT_SERVERS)
        return cls.of(servers, options)  # type: ignore[arg-type]  # checked there

    @classmethod
    def sharing(
        cls,
        client: ClientConfig,
        options: Mapping[str, object],
        observer: object | None = None,
    ) -> Self:
        """Make the configuration of a producer or consumer on a shared client.

        Args:
            client: the client's own configuration, which stays as it is.
            options: values by option name, of options that the client does not have.
            observer: the observer that the caller was given, which must be None.

        Raises:
            ConfigurationError: as in `of`; also for an option of the client and for an
                observer: neither would have an effect.
        """
        if observer is not None:
            raise ConfigurationError(
                "observer: a shared client has its own: give it to Client(...)"
            )
        inherited = {f.name: getattr(client, f.name) for f in fields_of(ClientConfig)}
        for name in options:
            if name in inherited:
                raise ConfigurationError(
                    f"{name} is an option of the client, which is shared: give it "
                    "to Client(...)"
                )
        del inherited["bootstrap_servers"]
        servers: str | list[str] = client.addresses
        if client.bootstrap_controllers:
            inherited["bootstrap_controllers"], servers = servers, DEFAULT_SERVERS
        return cls.of(servers, {**inherited, **options})

    @property
    def first_nodes(self) -> tuple[tuple[str, int], ...]:
        """The servers to connect to first: ``bootstrap_controllers``, or brokers."""
        return self.bootstrap_controllers or self.bootstrap_servers

    @property
    def addresses(self) -> list[str]:
        """The `first_nodes`, each as ``host:port`` or ``[ipv6]:port``."""
        return [
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for host, port in self.first_nodes
        ]

    @classmethod
    def _kind(cls) -> str:
        return cls.__name__.removesuffix("Config")

    @classmethod
    def _unknown(
        cls, given: str, name: str, suggestions: Collection[str]
    ) -> ConfigurationError:
        # Loaded for mistakes alone.
        from kafkaio._config.unknown import unknown_option, without_meaning

        if (error := without_meaning(cls._kind(), given, name)) is not None:
            return error
        for other in (ProducerConfig, ConsumerConfig, ShareConsumerConfig):
            if name in {f.name for f in fields_of(other)}:
                return ConfigurationError(
                    f"{given} is an option of {other._kind()}, not of {cls._kind()}"
                )
        return unknown_option(given, suggestions)


@public("kafkaio")
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """The options of a producer, beside those of `ClientConfig`."""

    acks: Literal["all", -1, 0, 1] = option(
        "all",
        "How many replicas must have a record before the leader acknowledges it: "
        '``"all"`` those in sync (the configuration holds -1), 1 (the leader alone) or '
        "0 (there is no answer: a record is done when the operating system has its "
        "bytes).",
        choices=("all", -1, 0, 1),
        aliases=("request.required.acks",),
        keyword_type='Literal["all", -1, 0, 1]',
    )
    enable_idempotence: bool | None = option(
        None,
        "Retries cause neither duplicates nor reordering (KIP-98). Needs "
        '``acks="all"``, retries and at most 5 requests in flight. None means True, '
        "unless one of these options is set to another value.",
    )
    linger_ms: float = option(
        5,
        "Longest time that a batch waits for more records. A batch is sent at once "
        "while no request to its leader is in flight.",
        bounds=_FROM_0,
        aliases=("queue.buffering.max.ms",),
    )
    batch_size: int = option(
        1_000_000,
        "Largest size of a batch, in bytes before compression; never more than "
        "``max_request_size`` allows. The default is more than Java's 16,384, because "
        "batches must be large to reach a distant broker in few requests. Memory is "
        "allocated as a batch grows.",
        bounds=_FROM_0,
    )
    buffer_memory: int = option(
        33_554_432,
        "Bytes of records that the producer holds before ``send`` waits.",
        bounds=(1, 2**62),
    )
    stalled_partitions_buffer_percent: int = option(
        50,
        "Part of ``buffer_memory`` that partitions which make no progress (no leader, "
        "one that refuses, cannot be reached or does not answer; a topic that is not "
        "known) may take, all together, so that records for the others need not wait "
        "for them. A partition that is only slow is not limited. 100 for no limit, and "
        "so that no part of the buffer is kept for partitions that hold little.",
        bounds=(1, 100),
        is_own=True,
    )
    max_request_size: int = option(
        DEFAULT_REQUEST_SIZE,
        "Size of the largest batch in bytes before compression, and so of the largest "
        "record; and of the largest request. At the default, a request without "
        "compression to a distant broker may be larger if it has batches of several "
        "partitions: as large as is useful to keep the connection busy.",
        bounds=_FROM_1,
    )
    max_block_ms: int = option(
        60_000,
        "Longest wait for space in the buffer, or for the metadata of a topic.",
        bounds=_FROM_0,
    )
    delivery_timeout_ms: int = option(
        120_000,
        "Longest time from ``enqueue`` to the acknowledgement, retries included; at "
        "least ``linger_ms + request_timeout_ms``.",
        bounds=_FROM_1,
        aliases=("message.timeout.ms",),
    )
    retries: int = option(
        _MAX,
        "How often a batch is sent again within ``delivery_timeout_ms``.",
        bounds=_FROM_0,
        aliases=("message.send.max.retries",),
    )
    max_in_flight_requests_per_connection: int = option(
        5,
        "How many requests may wait for an answer on one connection.",
        bounds=_FROM_1,
        aliases=("max.in.flight",),
    )
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] = option(
        "none",
        "``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``.",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        aliases=("compression.codec",),
    )
    transactional_id: str | None = option(
        None,
        "Name under which the producer runs transactions (KIP-98). It must be the same "
        "after a restart, and no two producers may use it at the same time: the one "
        "that started last fences the other. Needs idempotence.",
    )
    transaction_timeout_ms: int = option(
        60_000,
        "Longest time that a transaction may be open before the coordinator aborts it; "
        "at most what the brokers allow (``transaction.max.timeout.ms``, 15 minutes "
        "by default).",
        bounds=_FROM_1,
    )
    transaction_adds_explicitly: bool = option(
        False,  # noqa: FBT003
        "Add all partitions of a transaction by one request of the producer, also "
        "where the leader of each partition would add it (KIP-890). Quicker where many "
        "leaders share a transaction; no other client does it.",
    )
    compression_gzip_level: int | None = option(
        None, "1 to 9. None for 6.", bounds=(1, 9)
    )
    compression_lz4_level: int | None = option(
        None, "1 to 16. None for the fast compressor.", bounds=(1, 16)
    )
    compression_zstd_level: int | None = option(
        None, "1 to 22. None for 3.", bounds=(1, 22)
    )
    partitioner: Partitioner | None = option(
        None,
        "Function that chooses the partition of a record, in place of the built-in "
        "rules.",
        function="function (topic, key, value, partitions) that returns a number",
        is_own=True,
        # The built-in rules by librdkafka's name, which are Java's.
        synonyms={"murmur2_random": None},
    )
    partitioner_ignore_keys: bool = option(
        False,  # noqa: FBT003
        "Distribute records that have a key like those without.",
    )
    partitioner_adaptive_partitioning_enable: bool = option(
        True,  # noqa: FBT003
        "Send fewer of the records without a key to slow leaders (KIP-794).",
    )
    partitioner_availability_timeout_ms: int = option(
        0,
        "Records without a key leave, and avoid, a partition whose leader has accepted "
        "no batch for this long. 0 for never. A partition that refuses batches, or "
        "whose leader cannot be reached, is left at once in any case.",
        bounds=_FROM_0,
    )
    partitioner_rack_aware: bool = option(
        False,  # noqa: FBT003
        "Send records without a key to partitions whose leader is in the rack of "
        "``client_rack``, as long as one of these can be written (KIP-1123). Without "
        "effect on records with a key, with a ``partitioner``, and without "
        "``client_rack``.",
    )
    key_serializer: Serializer | None = option(
        None,
        "Turns a key into bytes: a function of it, or an object with "
        "``serialize(key, context)``, whose result may be awaited. A function gets the "
        "context, too, if its second parameter has no default or is named ``context`` "
        "or ``ctx``. Without it keys are ``bytes`` or None.",
        function="function that turns a key into bytes",
        method="serialize",
    )
    value_serializer: Serializer | None = option(
        None,
        "Turns a value into bytes, as ``key_serializer`` does keys. Without it values "
        "are ``bytes`` or None.",
        function="function that turns a value into bytes",
        method="serialize",
    )

    def __post_init__(self) -> None:
        _check(self)
        object.__setattr__(self, "acks", _parse_acks(self.acks))
        least = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < least:
            raise ConfigurationError(
                f"delivery_timeout_ms={self.delivery_timeout_ms} is less than "
                f"linger_ms + request_timeout_ms = {least:g}"
            )
        obstacle = self._idempotence_obstacle()
        if obstacle and self.enable_idempotence:
            raise ConfigurationError(f"enable_idempotence=True needs {obstacle}")
        self._check_transactions(obstacle)
        if self.enable_idempotence is None:
            object.__setattr__(self, "enable_idempotence", not obstacle)

    def _check_transactions(self, obstacle: str) -> None:
        if self.transactional_id is None:
            return
        if not self.transactional_id:
            raise ConfigurationError(
                "transactional_id is empty; use None for no transactions"
            )
        if self.enable_idempotence is False:
            raise ConfigurationError("transactional_id needs enable_idempotence")
        if obstacle:
            raise ConfigurationError(f"transactional_id needs {obstacle}")

    def _idempotence_obstacle(self) -> str:
        if self.acks != -1:
            return "acks='all'"
        if self.max_in_flight_requests_per_connection > _MAX_IDEMPOTENT_IN_FLIGHT:
            return (
                "max_in_flight_requests_per_connection <= "
                f"{_MAX_IDEMPOTENT_IN_FLIGHT}, the number of batches that a broker "
                "remembers per producer and partition"
            )
        return "" if self.retries else "retries > 0"

    @property
    def required_acks(self) -> int:
        """``acks`` as the protocol has it: -1, 0 or 1."""
        return int(self.acks)

    @property
    def compression_level(self) -> int | None:
        """The level set for the codec in use, None for that codec's default."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)


@public("kafkaio")
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """The options of a consumer, beside those of `ClientConfig`."""

    group_id: str | None = option(
        None,
        "The group to join and to commit offsets for. None for no group.",
    )
    group_instance_id: str | None = option(None, "Name of a static member (KIP-345).")
    group_protocol: Literal["auto", "consumer", "classic"] = option(
        "auto",
        "``consumer``: KIP-848, where the group coordinator assigns the partitions. "
        "``classic``: the older protocol, where a member does. ``auto``: ``consumer`` "
        "if the cluster offers it and ``partition_assignment_strategy`` is not set, "
        "else ``classic``.",
        choices=("auto", "consumer", "classic"),
    )
    group_remote_assignor: str | None = option(
        None,
        "Name of the broker's assignor with KIP-848: ``uniform`` or ``range``. None "
        "for the broker's default.",
    )
    partition_assignment_strategy: tuple[object, ...] | None = option(
        None,
        "Assignors of the classic protocol in order of preference: ``range``, "
        "``roundrobin``, ``sticky``, ``cooperative-sticky``, ``broker-range`` or "
        "objects (`Assignor`). None for ``cooperative-sticky``.",
        keyword_type="Sequence[object] | None",
        synonyms={
            **{name: name for name in _ASSIGNORS},
            **{f"{name.replace('-', '')}assignor": name for name in _ASSIGNORS},
        },
    )
    session_timeout_ms: int = option(
        45_000,
        "The group coordinator removes a member of a classic group that sent no "
        "heartbeat for this long. With KIP-848 the broker sets the session timeout.",
        bounds=_FROM_1,
    )
    heartbeat_interval_ms: int = option(
        3_000,
        "Time between two heartbeats of a member of a classic group. With KIP-848 the "
        "broker sets it.",
        bounds=_FROM_1,
    )
    max_poll_interval_ms: int = option(
        300_000,
        "Longest time between two reads: after it the member leaves the group. It is "
        "also the member's rebalance timeout.",
        bounds=_FROM_1,
    )
    max_poll_records: int = option(
        500, "Most records that one ``poll`` returns.", bounds=_FROM_1
    )
    offset_store: OffsetStore | None = option(
        None,
        "Where the group keeps its offsets, such as a `FileOffsetStore`. None for "
        "Kafka.",
        is_own=True,
    )
    enable_auto_commit: bool = option(
        True,  # noqa: FBT003
        "Commit the offsets of finished records automatically.",
    )
    auto_commit_interval_ms: int = option(
        5_000, "Time between two automatic commits.", bounds=_FROM_1
    )
    auto_offset_reset: str = option(
        "latest",
        "Where to start without a valid offset: ``latest``, ``earliest``, ``none`` "
        "(raise an error), or so long ago: a ``datetime.timedelta``, or as text "
        "``by_duration:PT1H`` (KIP-1106).",
        synonyms=_RESETS,
        keyword_type=_RESET,
    )
    auto_offset_reset_new_partitions: str = option(
        "earliest",
        "Where to start a partition that was added after this consumer had subscribed, "
        "or while its group was down: a value of ``auto_offset_reset`` (KIP-1327).",
        synonyms=_RESETS,
        keyword_type=_RESET,
    )
    isolation_level: Literal["read_uncommitted", "read_committed"] = option(
        "read_uncommitted",
        "``read_committed`` skips the records of aborted transactions and waits for "
        "open ones.",
        choices=("read_uncommitted", "read_committed"),
    )
    fetch_min_bytes: int = option(
        1, "Bytes that a broker waits for before it answers a fetch.", bounds=_FROM_0
    )
    fetch_max_bytes: int = option(
        52_428_800,
        "Most bytes of one answer; a larger record is still returned. An answer also "
        "has at most a fifth of ``fetch_buffer_bytes``, or "
        "``max_partition_fetch_bytes`` if that is more (but at most a quarter), so "
        "that several answers share the buffer: 10 MiB with the defaults. For larger "
        "answers, raise ``fetch_buffer_bytes`` to five times their size.",
        bounds=_FROM_1,
    )
    fetch_max_wait_ms: int = option(
        500,
        "How long a broker waits for ``fetch_min_bytes``. If it is asked for one byte, "
        "and had none for a while, it waits up to four times as long, but at most two "
        "seconds: it answers with the first byte all the same.",
        bounds=_FROM_0,
        aliases=("fetch.wait.max.ms",),
    )
    max_partition_fetch_bytes: int = option(
        1_048_576,
        "Most bytes of one partition in an answer.",
        bounds=_FROM_1,
        aliases=("fetch.message.max.bytes",),
    )
    fetch_buffer_bytes: int = option(
        52_428_800,
        "Most bytes fetched ahead of the reader, over all partitions; three fifths "
        "of it while the reader does not wait for records. With `Consumer.partitions` "
        "and `Consumer.run`, up to twice as much: where partitions that are worked on "
        "slowly fill it, a little is fetched of those of which nothing is here.",
        bounds=(1, 2**62),
        is_own=True,
    )
    check_crcs: bool = option(
        True,  # noqa: FBT003
        "Verify the checksum of every batch.",
    )
    exclude_internal_topics: bool = option(
        True,  # noqa: FBT003
        "A pattern does not match Kafka's internal topics.",
    )
    io_thread: bool = option(
        False,  # noqa: FBT003
        "Run the consumer in a thread with its own event loop, so that it stays in its "
        "group while your code blocks your loop. Records cross in chunks of "
        "``max_poll_records``. Callbacks and handlers run in your loop, and what "
        "deserializers return to be awaited; deserializers, the observer and the "
        "``offset_store`` are called in the thread.",
        is_own=True,
    )
    key_deserializer: Deserializer | None = option(
        None,
        "Function that turns the bytes of a key into an object.",
        function="function that turns bytes into a key",
        method="deserialize",
    )
    value_deserializer: Deserializer | None = option(
        None,
        "Function that turns the bytes of a value into an object.",
        function="function that turns bytes into a value",
        method="deserialize",
    )

    ARGUMENTS: ClassVar[tuple[str, ...]] = (
        *ClientConfig.ARGUMENTS,
        "topics",
        "assign",
        "on_assigned",
        "on_revoked",
        "on_lost",
    )

    def __post_init__(self) -> None:
        for name in ("auto_offset_reset", "auto_offset_reset_new_partitions"):
            policy: object = getattr(self, name)
            if not isinstance(policy, str):
                object.__setattr__(self, name, _reset_of(name, policy))
        _check(self)
        if self.partition_assignment_strategy is not None:
            strategy = _parse_strategy(self.partition_assignment_strategy)
            object.__setattr__(self, "partition_assignment_strategy", strategy)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigurationError(
                f"heartbeat_interval_ms={self.heartbeat_interval_ms} must be less than "
                f"session_timeout_ms={self.session_timeout_ms}"
            )
        if self.group_id is not None and not self.group_id:
            raise ConfigurationError("group_id is empty; use None for no group")
        if self.group_instance_id is not None and self.group_id is None:
            raise ConfigurationError("group_instance_id needs a group_id")
        self._check_store()
        self._check_protocol()
        for name in ("auto_offset_reset", "auto_offset_reset_new_partitions"):
            _reset_duration_ms(name, getattr(self, name))

    def reset_duration_ms(self) -> int | None:
        """How far back ``by_duration:`` goes, in milliseconds; None otherwise.

        Raises:
            ConfigurationError: ``auto_offset_reset`` has none of its forms.
        """
        return _reset_duration_ms("auto_offset_reset", self.auto_offset_reset)

    def _check_store(self) -> None:
        if self.offset_store is None:
            return
        store = self.offset_store
        if isinstance(store, type) or not isinstance(store, OffsetStore):
            raise wrong_value(
                "offset_store", store, "does not have the methods of OffsetStore"
            )
        if self.group_id is None:
            raise ConfigurationError(
                "offset_store keeps the offsets of a group: give group_id"
            )

    def _check_protocol(self) -> None:
        defaults = {field.name: field.default for field in fields_of(ConsumerConfig)}
        foreign = {
            "auto": (),
            "classic": ("group_remote_assignor",),
            "consumer": (
                "partition_assignment_strategy",
                "session_timeout_ms",
                "heartbeat_interval_ms",
            ),
        }
        for name in foreign[self.group_protocol]:
            if getattr(self, name) != defaults[name]:
                raise ConfigurationError(
                    f"{name} has no meaning with group_protocol={self.group_protocol!r}"
                )
        if self.group_remote_assignor and self.partition_assignment_strategy:
            raise ConfigurationError(
                "group_remote_assignor is for the KIP-848 protocol, "
                "partition_assignment_strategy for the classic one: give one of them"
            )


@public("kafkaio")
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConsumerConfig(ClientConfig):
    """The options of a share consumer (KIP-932), beside those of `ClientConfig`.

    What holds for a whole group is set at the brokers, as configs of the group: where
    it starts (``share.auto.offset.reset``), how long a record is locked
    (``share.record.lock.duration.ms``), how often it is delivered
    (``share.delivery.count.limit``), and ``share.isolation.level``.
    """

    group_id: str = option("", "The share group to join. It is required.")
    acknowledgement: Literal["explicit", "implicit"] = option(
        "explicit",
        "``explicit``: a record is accepted when the program says so. ``implicit``: "
        "the next step of an iteration, poll or commit accepts what was handed out.",
        choices=("explicit", "implicit"),
        kafka_name="share.acknowledgement.mode",
    )
    acquire_mode: Literal["batch_optimized", "record_limit"] = option(
        "batch_optimized",
        "``batch_optimized``: leaders lock whole batches, as producers wrote them, "
        "beyond ``max_in_flight`` if necessary. ``record_limit``: they lock exactly as "
        "many records as are asked for (KIP-1206, from Kafka 4.2).",
        choices=("batch_optimized", "record_limit"),
        kafka_name="share.acquire.mode",
    )
    max_in_flight: int = option(
        500,
        "Most records that are locked for this consumer, over all brokers: handed out "
        "and not acknowledged, or fetched and not handed out.",
        bounds=_FROM_1,
        kafka_name="max.poll.records",
    )
    fetch_buffer_bytes: int = option(
        52_428_800,
        "Most bytes fetched and not handed out, over all partitions.",
        bounds=(1, 2**62),
        is_own=True,
    )
    fetch_min_bytes: int = option(
        1, "Bytes that a broker waits for before it answers a fetch.", bounds=_FROM_0
    )
    fetch_max_bytes: int = option(
        52_428_800,
        "Most bytes of one answer; a larger batch is still returned.",
        bounds=_FROM_1,
    )
    fetch_max_wait_ms: int = option(
        500,
        "How long a broker waits for ``fetch_min_bytes``. Acknowledgements that come "
        "meanwhile wait behind it, for a leader takes one request at a time.",
        bounds=_FROM_0,
        aliases=("fetch.wait.max.ms",),
    )
    ack_linger_ms: int = option(
        5,
        "How long an acknowledgement waits for others, or for the next fetch.",
        bounds=_FROM_0,
        is_own=True,
    )
    renew_locks: bool = option(
        True,  # noqa: FBT003
        "Renew the locks of records that are worked on (KIP-1222, from Kafka 4.2).",
        is_own=True,
    )
    max_processing_ms: int = option(
        300_000,
        "How long the locks of a record are renewed after it was handed out. The lock "
        "runs out afterwards, and the record is delivered again.",
        bounds=_FROM_1,
        is_own=True,
    )
    undeserializable: Literal["release", "reject"] = option(
        "release",
        "What becomes of a record that cannot be deserialized: it is delivered again, "
        "up to the group's limit, or never again. The error is raised in both cases.",
        choices=("release", "reject"),
        is_own=True,
    )
    check_crcs: bool = option(
        True,  # noqa: FBT003
        "Verify the checksum of every batch. A corrupt batch is rejected.",
    )
    exclude_internal_topics: bool = option(
        True,  # noqa: FBT003
        "A pattern does not match Kafka's internal topics.",
    )
    io_thread: bool = option(
        False,  # noqa: FBT003
        "Run the consumer in a thread with its own event loop, so that it keeps its "
        "locks while your code blocks your loop. Handlers run in your loop, and what "
        "deserializers return to be awaited; deserializers and the observer are called "
        "in the thread. A decision about a record crosses to the thread: if its lock "
        "ends meanwhile, ``record.acked`` says so, and ``flush`` does. Needs the "
        "compiled codec, and a client of its own.",
        is_own=True,
    )
    key_deserializer: Deserializer | None = option(
        None,
        "Function that turns the bytes of a key into an object.",
        function="function that turns bytes into a key",
        method="deserialize",
    )
    value_deserializer: Deserializer | None = option(
        None,
        "Function that turns the bytes of a value into an object.",
        function="function that turns bytes into a value",
        method="deserialize",
    )

    ARGUMENTS: ClassVar[tuple[str, ...]] = (*ClientConfig.ARGUMENTS, "topics")

    def __post_init__(self) -> None:
        _check(self)
        if not self.group_id:
            raise ConfigurationError("group_id is missing: name the share group")


def _reset_duration_ms(name: str, policy: str) -> int | None:
    kind, colon, text = policy.partition(":")
    if not colon and kind in {"latest", "earliest", "none"}:
        return None
    duration = iso_duration_ms(text) if kind == "by_duration" else None
    if duration is None:
        raise wrong_value(
            name,
            policy,
            "has none of its forms: use latest, earliest, none or by_duration: "
            "with an ISO 8601 duration such as PT1H",
        )
    return duration


def _reset_of(name: str, ago: object) -> str:
    """Return the text of a policy that goes back by a duration."""
    from datetime import timedelta

    if not isinstance(ago, timedelta):
        raise wrong_value(name, ago, "has the wrong type: str or timedelta is needed")
    if ago < timedelta(0):
        raise wrong_value(name, ago, "is negative")
    milliseconds = ago // timedelta(milliseconds=1)
    return f"by_duration:PT{milliseconds / 1000:.3f}S"


def _login_of(
    properties: Mapping[str, object],
) -> tuple[dict[str, object], Mapping[str, object]]:
    """Read how to log in as Java's clients say it; most programs need nothing of it."""
    if not any(str(name).startswith("sasl.") for name in properties):
        return {}, properties
    from kafkaio._config.login_properties import read_login

    return read_login(properties)


def _check(config: ClientConfig) -> None:
    for declared in fields_of(type(config)):
        value = getattr(config, declared.name)
        # Most are the default, which fits.
        if value is not declared.default:
            check_value(declared, value)
    for server in config.first_nodes:
        # Not unpacked: options alone, for a shared client, may have servers as texts.
        if "@" in server[0]:
            raise _server_with_user(server[0])
    if config.bootstrap_controllers:
        _check_controllers(config)
    _check_sasl(config)
    _check_hosts(config.allowed_hosts)
    if config.proxy is not None:
        from kafkaio._config.proxy import parse_proxy

        parse_proxy(config.proxy)
    versions_of(config.max_versions)
    context: object = config.ssl_context
    if context is None:
        return
    # This package imports no sockets, and so not the class either.
    if isinstance(context, type) or not hasattr(context, "wrap_bio"):
        raise wrong_value(
            "ssl_context",
            context,
            "is not an ssl.SSLContext; ssl.create_default_context() makes one",
        )
    if not config.security_protocol.endswith("SSL"):
        raise ConfigurationError(
            "ssl_context is not used without security_protocol='SSL' or 'SASL_SSL'"
        )


def _check_controllers(config: ClientConfig) -> None:
    kind = config._kind()
    if kind != "Client":
        raise ConfigurationError(
            f"bootstrap_controllers: a {kind.lower()} needs brokers, and controllers "
            "serve no records; use bootstrap_servers"
        )
    if config.bootstrap_servers:
        raise ConfigurationError(
            "bootstrap_controllers and bootstrap_servers exclude each other: a client "
            "asks controllers alone, or brokers"
        )


_PASSWORD = ("sasl_username", "sasl_password")
#: The options of each mechanism; those of another one would have no effect.
_SASL_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "PLAIN": ("sasl_username", "sasl_password"),
    **dict.fromkeys(
        ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        (
            "sasl_username",
            "sasl_password",
            "sasl_delegation_token",
            "sasl_scram_max_iterations",
        ),
    ),
    "OAUTHBEARER": ("sasl_oauth_token_provider",),
    "GSSAPI": (
        "sasl_kerberos_service_name",
        "sasl_kerberos_principal",
        "sasl_kerberos_keytab",
    ),
}
#: Those that a mechanism cannot do without.
_SASL_NEEDED: Mapping[str, tuple[str, ...]] = {
    "PLAIN": _PASSWORD,
    "SCRAM-SHA-256": _PASSWORD,
    "SCRAM-SHA-512": _PASSWORD,
    "OAUTHBEARER": ("sasl_oauth_token_provider",),
    "GSSAPI": (),
}


def _check_sasl(config: ClientConfig) -> None:
    found = given(config, "sasl_")
    if not config.security_protocol.startswith("SASL_"):
        if found:
            raise ConfigurationError(
                f"{min(found)} is not used without security_protocol='SASL_SSL' or "
                "'SASL_PLAINTEXT'"
            )
        return
    mechanism = config.sasl_mechanism
    if mechanism is None:
        raise ConfigurationError(
            f"security_protocol={config.security_protocol!r} needs sasl_mechanism"
        )
    _check_provider(config.sasl_oauth_token_provider)
    foreign = {*found} - {"sasl_mechanism", *_SASL_OPTIONS[mechanism]}
    if foreign:
        raise ConfigurationError(
            f"{min(foreign)} has no meaning with sasl_mechanism={mechanism!r}"
        )
    for name in _SASL_NEEDED[mechanism]:
        if not getattr(config, name):
            raise ConfigurationError(f"sasl_mechanism={mechanism!r} needs {name}")
    if config.sasl_kerberos_keytab and not config.sasl_kerberos_principal:
        raise ConfigurationError("sasl_kerberos_keytab needs sasl_kerberos_principal")


def _check_provider(provider: object) -> None:
    if provider is None or callable(provider):
        return
    from kafkaio._config.login_properties import TokenRequest

    if not isinstance(provider, TokenRequest):
        raise wrong_value(
            "sasl_oauth_token_provider",
            provider,
            "is not a function that returns a token when it is awaited",
        )


def _check_hosts(hosts: object) -> None:
    if hosts is None or callable(hosts):
        return
    if (
        isinstance(hosts, (str, bytes))
        or not isinstance(hosts, Collection)
        or not all(isinstance(host, str) and host for host in hosts)
    ):
        raise wrong_value(
            "allowed_hosts",
            hosts,
            "must be a collection of patterns of hosts, such as "
            "['*.kafka.example.com'], or a function of host and port",
        )


def versions_of(given: object) -> dict[str, int]:
    """Read the option ``max_versions``: versions by the names of APIs.

    Raises:
        ConfigurationError: it is none of its two forms. Whether there are such APIs is
            checked where they are known, when a client is made.
    """
    if given is None:
        return {}
    pairs: list[tuple[object, object]] = [(None, None)]
    if isinstance(given, str):
        pairs = [_version_of(pair) for pair in given.split(",")]
    elif isinstance(given, Mapping):
        pairs = list(given.items())
    found: dict[str, int] = {}
    for name, version in pairs:
        if not isinstance(name, str) or type(version) is not int:
            raise _wrong_versions(given)
        if not name or version < 0:
            raise _wrong_versions(given)
        found[name] = version
    return found


def _version_of(pair: str) -> tuple[str, object]:
    name, _, version = pair.rpartition(":")
    return name.strip(), int(version) if version.strip().isdecimal() else version


def _wrong_versions(given: object) -> ConfigurationError:
    return wrong_value(
        "max_versions",
        given,
        'must be versions by the names of APIs, such as {"JoinGroup": 5} or '
        '"JoinGroup:5,SyncGroup:3"',
    )


def parse_servers(
    servers: object, kind: str = "Client", name: str = "bootstrap_servers"
) -> tuple[tuple[str, int], ...]:
    """Read ``host``, ``host:port`` or ``[ipv6]:port`` addresses.

    Args:
        servers: one text with commas, or a collection of texts.
        kind: the class that takes the servers, for messages.
        name: the option, for messages.

    Raises:
        ConfigurationError: there is none, or one cannot be read.
    """
    if isinstance(servers, Mapping):
        raise ConfigurationError(
            f"{name} is a mapping of options: pass it to {kind}.from_properties(...)"
        )
    found = servers.split(",") if isinstance(servers, str) else servers
    given = list(found) if isinstance(found, Iterable) else [found]
    texts = [text for text in given if isinstance(text, str)]
    if len(texts) < len(given):
        raise wrong_value(
            name,
            servers,
            "is not 'host:port', 'host:port,host2:port' or a list of such",
        )
    if any("@" in text for text in texts):
        raise _server_with_user(",".join(texts))
    parsed = tuple(_parse_server(t.strip()) for t in texts if t.strip())
    if not parsed:
        raise ConfigurationError(f"{name} names no server")
    return parsed


def _parse_server(text: str) -> tuple[str, int]:
    host, digits = _split_server(text)
    port = int(digits or _DEFAULT_PORT)
    if not host or not 0 < port < 65536 or len(text) > _LONGEST_ADDRESS:
        from kafkaio._config.shown import shown_server

        url = "; it is not a URL" if "://" in text else ""
        raise ConfigurationError(
            f"bootstrap server {shown_server(text)}: use host:port, or [address]:port "
            f"for IPv6{url}"
        )
    return host, port


def _split_server(text: str) -> tuple[str, str]:
    """Return host and port, each empty if there is none or it cannot be read."""
    host, _, port = text.partition(":")
    is_usual = host.replace(".", "").replace("-", "").isalnum()
    if is_usual and port.isdecimal() and len(port) <= 5:
        return host, port
    # Not for the usual form: it would be compiled in each process. The name of a
    # listener may stand before the address, as brokers are configured.
    found = re.fullmatch(
        r"(?:[A-Z][A-Z0-9_.-]*://)?"
        r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s/\[\]]+))(?::(?P<port>\d{1,5}))?",
        text,
    )
    if found is None:
        return "", ""
    return found["v6"] or found["host"], found["port"] or ""


def _server_with_user(text: str) -> ConfigurationError:
    """The error for a user before a host.

    A password can have commas, so no address of the text is looked at by itself.
    """
    from kafkaio._config.shown import shown_server

    return ConfigurationError(
        f"bootstrap server {shown_server(text)}: no user can stand before a host; "
        "use sasl_username and sasl_password, with sasl_mechanism and security_protocol"
    )


def _parse_strategy(strategy: object) -> tuple[object, ...]:
    """Read assignors: names separated by commas, or a sequence.

    Raises:
        ConfigurationError: there is none.
    """
    if isinstance(strategy, str):
        strategy = [name.strip() for name in strategy.split(",") if name.strip()]
    if not isinstance(strategy, list | tuple) or not strategy:
        raise ConfigurationError("partition_assignment_strategy names no assignor")
    return tuple(strategy)


def _parse_acks(acks: object) -> int:
    """Read ``acks`` as the protocol has it: -1 for ``all``, 0 or 1."""
    known = {"all": -1, "-1": -1, "0": 0, "1": 1}
    found = None if isinstance(acks, bool) else known.get(str(acks))
    if found is None:
        raise wrong_value("acks", acks, "is none of 'all', 1, 0")
    return found


def iso_duration_ms(text: str) -> int | None:
    """Read an ISO 8601 duration in days, hours, minutes and seconds.

    Returns:
        Milliseconds, or None if the text is not such a duration.
    """
    found = re.fullmatch(
        r"P(?:(?P<d>\d+)D)?"
        r"(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
        text,
    )
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes = (int(found[part] or 0) for part in "dhm")
    seconds = float(found["s"] or 0)
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
