"""Options: one frozen object each for a client, a producer and a consumer.

An option has Kafka's own name in snake_case, Kafka's unit (``_ms`` are milliseconds,
``_bytes`` bytes) and the Java client's default. Objects check themselves once, when
they are made; every error names the option and says what is needed instead; for an
unknown one, that is a name which is near, or what kafkaio has in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, ClassVar, Self

from kafkaio._dataclass import dataclass
from kafkaio.config.checks import (
    ALIASES,
    DEFAULT_PORT,
    FOREVER,
    MAX_IDEMPOTENT_IN_FLIGHT,
    check_field,
    iso_duration_ms,
    parse_acks,
    parse_property,
    parse_servers,
    parse_strategy,
    unknown_option,
)
from kafkaio.config.options import (
    ClientOptions,
    ConsumerOptions,
    Deserializer,
    Partitioner,
    ProducerOptions,
    Serializer,
)
from kafkaio.errors import ConfigurationError
from kafkaio.types import OffsetStore

if TYPE_CHECKING:
    import ssl

__all__ = [
    "ClientConfig",
    "ClientOptions",
    "ConsumerConfig",
    "ConsumerOptions",
    "Deserializer",
    "Partitioner",
    "ProducerConfig",
    "ProducerOptions",
    "Serializer",
    "parse_servers",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """What every kind of client needs to reach a cluster.

    Attributes:
        bootstrap_servers: (host, port) pairs to start from.
        client_id: name that brokers see in requests, quotas and logs.
        client_rack: rack of this client (KIP-392).
        request_timeout_ms: longest wait for one answer.
        default_api_timeout_ms: longest time for one call, its retries included.
        retry_backoff_ms: first pause between retries; doubles, with 20 % jitter.
        retry_backoff_max_ms: longest pause between retries.
        reconnect_backoff_ms: first pause before connecting again.
        reconnect_backoff_max_ms: longest pause before connecting again.
        socket_connection_setup_timeout_ms: first limit to set a connection up.
        socket_connection_setup_timeout_max_ms: what that limit grows to.
        connections_max_idle_ms: an unused connection is closed after this time.
        metadata_max_age_ms: metadata is fetched again after this time at the latest.
        metadata_max_idle_ms: a producer forgets a topic unused for this long.
        metadata_recovery_strategy: ``rebootstrap`` starts over from
            ``bootstrap_servers`` when no known broker can be reached (KIP-899).
        metadata_recovery_rebootstrap_trigger_ms: and after this long without any
            successful metadata update (KIP-1102).
        security_protocol: ``PLAINTEXT`` or ``SSL``.
        ssl_context: TLS settings; the default context where it is None.
        max_response_size: largest answer accepted from a broker, in bytes.
        send_buffer_bytes: SO_SNDBUF, -1 for the system's own tuning (ADR-0008).
        receive_buffer_bytes: SO_RCVBUF, -1 for the system's own tuning (ADR-0008).
        allow_auto_create_topics: whether asking for an unknown topic may create it,
            where the broker allows that.
        log: whether to write to the standard library's log, as ``kafkaio.client``,
            ``kafkaio.producer`` and ``kafkaio.consumer``.
    """

    bootstrap_servers: tuple[tuple[str, int], ...] = (("localhost", DEFAULT_PORT),)
    client_id: str = "kafkaio"
    client_rack: str = ""
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    socket_connection_setup_timeout_max_ms: int = 30_000
    connections_max_idle_ms: int = 540_000
    metadata_max_age_ms: int = 300_000
    metadata_max_idle_ms: int = 300_000
    metadata_recovery_strategy: str = "rebootstrap"
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    security_protocol: str = "PLAINTEXT"
    ssl_context: ssl.SSLContext | None = None
    max_response_size: int = 104_857_600
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    allow_auto_create_topics: bool = True
    log: bool = True

    #: Arguments of the constructor that are no options, to be suggested for others.
    ARGUMENTS: ClassVar[tuple[str, ...]] = ("bootstrap_servers", "observer")
    #: Least and greatest value of each bounded option.
    BOUNDS: ClassVar[Mapping[str, tuple[float, float]]] = {
        "request_timeout_ms": (1, FOREVER),
        "default_api_timeout_ms": (1, FOREVER),
        "retry_backoff_ms": (0, FOREVER),
        "retry_backoff_max_ms": (0, FOREVER),
        "reconnect_backoff_ms": (0, FOREVER),
        "reconnect_backoff_max_ms": (0, FOREVER),
        "socket_connection_setup_timeout_ms": (1, FOREVER),
        "socket_connection_setup_timeout_max_ms": (1, FOREVER),
        "connections_max_idle_ms": (1, FOREVER),
        "metadata_max_age_ms": (1, FOREVER),
        "metadata_max_idle_ms": (1, FOREVER),
        "metadata_recovery_rebootstrap_trigger_ms": (0, FOREVER),
        "max_response_size": (1_024, FOREVER),
        "send_buffer_bytes": (-1, FOREVER),
        "receive_buffer_bytes": (-1, FOREVER),
    }
    #: The values that each enumerated option may have.
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "metadata_recovery_strategy": ("rebootstrap", "none"),
        "security_protocol": ("PLAINTEXT", "SSL"),
    }

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def of(
        cls, bootstrap_servers: str | Sequence[str], options: Mapping[str, object]
    ) -> Self:
        """Make a configuration of keyword options.

        Args:
            bootstrap_servers: ``"host:port,host2:port"`` or a sequence of such.
            options: values by option name.

        Raises:
            ConfigurationError: an option is unknown, of the wrong type or out of
                bounds, or a server address makes no sense.
        """
        known = {f.name for f in fields(cls)} - {"bootstrap_servers"}
        for name in options:
            if name not in known:
                raise cls._unknown(name, name, {*known, *cls.ARGUMENTS})
        servers = parse_servers(bootstrap_servers, cls._kind())
        # The mapping is checked field by field in __post_init__.
        return cls(bootstrap_servers=servers, **options)  # type: ignore[arg-type]

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> Self:
        """Make a configuration of Kafka's dotted names, as Java and librdkafka use.

        Values may be of their own type or strings (``"true"``, ``"5"``).

        Raises:
            ConfigurationError: as in `of`; also when ``bootstrap.servers`` is missing.
        """
        if not isinstance(properties, Mapping):
            raise ConfigurationError(f"{properties!r} is no mapping of properties")
        defaults = {f.name: f for f in fields(cls)}
        dotted = {name.replace("_", "."): name for name in defaults}
        options: dict[str, object] = {}
        for key, value in properties.items():
            name = dotted.get(ALIASES.get(key, key))
            if name is None:
                raise cls._unknown(key, key.replace(".", "_"), dotted)
            default = defaults[name].default
            options[name] = parse_property(
                name, value, None if default is MISSING else default
            )
        if "bootstrap_servers" not in options:
            raise ConfigurationError("bootstrap.servers is missing")
        servers = options.pop("bootstrap_servers")
        return cls.of(servers, options)  # type: ignore[arg-type]  # checked there

    @classmethod
    def sharing(cls, client: ClientConfig, options: Mapping[str, object]) -> Self:
        """Make the configuration of a producer or consumer on a client that is shared.

        Args:
            client: the client's own configuration, which stands.
            options: values of what is no option of the client, by option name.

        Raises:
            ConfigurationError: as in `of`; also for an option of the client: it would
                have no effect.
        """
        inherited = {f.name: getattr(client, f.name) for f in fields(ClientConfig)}
        for name in options:
            if name in inherited:
                raise ConfigurationError(
                    f"{name} is an option of the client, which is shared: give it "
                    "to Client(...)"
                )
        servers = inherited.pop("bootstrap_servers")
        named = [f"[{h}]:{port}" if ":" in h else f"{h}:{port}" for h, port in servers]
        return cls.of(named, {**inherited, **options})

    @classmethod
    def _kind(cls) -> str:
        return cls.__name__.removesuffix("Config")

    @classmethod
    def _unknown(
        cls, given: str, name: str, suggestions: Collection[str]
    ) -> ConfigurationError:
        for other in (ProducerConfig, ConsumerConfig):
            if name in {f.name for f in fields(other)}:
                return ConfigurationError(
                    f"{given} is an option of {other._kind()}, not of {cls._kind()}"
                )
        return unknown_option(given, suggestions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """What a producer needs beside `ClientConfig`.

    Attributes:
        acks: how many replicas must have a record: ``"all"`` in sync (held as -1),
            1 (the leader) or 0 (do not wait for an answer).
        enable_idempotence: no duplicates and no reordering by retries (KIP-98); wants
            ``acks="all"``, retries and at most 5 requests in flight. None (the
            default) means on unless one of these is set otherwise.
        linger_ms: upper bound on waiting for more records. A batch leaves at once
            while nothing is in flight to its leader.
        batch_size: the most bytes that a batch is filled up to, uncompressed. The
            default is more than Java's 16,384, because batches that come to a far
            broker in few requests must be large; memory is taken as a batch grows.
            What ``max_request_size`` does not allow is not used.
        buffer_memory: bytes of records held before ``send`` waits.
        max_request_size: bytes of the largest request, and so of the largest record.
        max_block_ms: longest wait for buffer room or for a topic's metadata.
        delivery_timeout_ms: from ``enqueue`` to the acknowledgement, retries included;
            at least ``linger_ms + request_timeout_ms``.
        retries: how often a batch is sent again within the delivery timeout.
        max_in_flight_requests_per_connection: requests without an answer yet.
        compression_type: ``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``.
        compression_gzip_level: 1 to 9; None for 6.
        compression_lz4_level: 1 to 16; None for the fast compressor.
        compression_zstd_level: 1 to 22; None for 3.
        partitioner: chooses partitions instead of the built-in rules.
        partitioner_ignore_keys: spread records with keys like those without.
        partitioner_adaptive_partitioning_enable: give slow leaders fewer records
            without a key (KIP-794).
        partitioner_availability_timeout_ms: leave leaders out that could take nothing
            for this long; 0 never does.
        key_serializer: makes bytes of keys; without it keys are ``bytes | None``.
        value_serializer: makes bytes of values; without it ``bytes | None``.
    """

    acks: int | str = "all"
    enable_idempotence: bool | None = None
    linger_ms: float = 5
    batch_size: int = 1_000_000
    buffer_memory: int = 33_554_432
    max_request_size: int = 1_048_576
    max_block_ms: int = 60_000
    delivery_timeout_ms: int = 120_000
    retries: int = FOREVER
    max_in_flight_requests_per_connection: int = 5
    compression_type: str = "none"
    compression_gzip_level: int | None = None
    compression_lz4_level: int | None = None
    compression_zstd_level: int | None = None
    partitioner: Partitioner | None = None
    partitioner_ignore_keys: bool = False
    partitioner_adaptive_partitioning_enable: bool = True
    partitioner_availability_timeout_ms: int = 0
    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None

    BOUNDS: ClassVar[Mapping[str, tuple[float, float]]] = {
        **ClientConfig.BOUNDS,
        "linger_ms": (0, FOREVER),
        "batch_size": (0, FOREVER),
        "buffer_memory": (1, 2**62),
        "max_request_size": (1, FOREVER),
        "max_block_ms": (0, FOREVER),
        "delivery_timeout_ms": (1, FOREVER),
        "retries": (0, FOREVER),
        "max_in_flight_requests_per_connection": (1, FOREVER),
        "compression_gzip_level": (1, 9),
        "compression_lz4_level": (1, 16),
        "compression_zstd_level": (1, 22),
        "partitioner_availability_timeout_ms": (0, FOREVER),
    }
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **ClientConfig.CHOICES,
        "compression_type": ("none", "gzip", "snappy", "lz4", "zstd"),
    }

    def __post_init__(self) -> None:
        _check(self)
        object.__setattr__(self, "acks", parse_acks(self.acks))
        least = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < least:
            raise ConfigurationError(
                f"delivery_timeout_ms={self.delivery_timeout_ms} is less than "
                f"linger_ms + request_timeout_ms = {least:g}"
            )
        obstacle = self._idempotence_obstacle()
        if obstacle and self.enable_idempotence:
            raise ConfigurationError(f"enable_idempotence=True wants {obstacle}")
        if self.enable_idempotence is None:
            object.__setattr__(self, "enable_idempotence", not obstacle)

    def _idempotence_obstacle(self) -> str:
        if self.acks != -1:
            return "acks='all'"
        if self.max_in_flight_requests_per_connection > MAX_IDEMPOTENT_IN_FLIGHT:
            return (
                "max_in_flight_requests_per_connection <= "
                f"{MAX_IDEMPOTENT_IN_FLIGHT}, the number of batches that a broker "
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """What a consumer needs beside `ClientConfig`.

    Attributes:
        group_id: the group to join and to commit offsets for; None for neither.
        group_instance_id: name of a static member (KIP-345).
        group_protocol: ``consumer`` (KIP-848, the brokers divide the partitions),
            ``classic`` (a member does), or ``auto``: ``consumer`` where the cluster
            offers it and no ``partition_assignment_strategy`` is asked for.
        group_remote_assignor: which of the brokers' assignors divides the partitions
            (``uniform``, ``range``); None for their default. ``consumer`` only.
        partition_assignment_strategy: assignors of the classic protocol in order of
            preference: ``range``, ``roundrobin``, ``sticky``, ``cooperative-sticky``,
            ``broker-range`` or objects (`Assignor`); None for ``cooperative-sticky``.
        session_timeout_ms: a member of the classic protocol unheard of for this long
            is out of the group. The other protocol's is the brokers' to set.
        heartbeat_interval_ms: how often a member of the classic protocol reports.
        max_poll_interval_ms: longest time between two reads before the member gives
            its partitions up; also the group's rebalance timeout.
        max_poll_records: most records that one ``poll`` returns.
        offset_store: where the group keeps its offsets, such as `FileOffsetStore`;
            None for Kafka.
        enable_auto_commit: commit finished records by itself.
        auto_commit_interval_ms: how often it does.
        auto_offset_reset: where to start without a usable offset: ``latest``,
            ``earliest``, ``none`` (raise), ``by_duration:PT1H`` (KIP-1106).
        isolation_level: ``read_committed`` leaves out aborted transactions and waits
            for open ones.
        fetch_min_bytes: what a broker waits for before it answers.
        fetch_max_bytes: bytes of one answer (a larger record still comes through). An
            answer also has no more than a fifth of ``fetch_buffer_bytes``, or
            ``max_partition_fetch_bytes`` where that is more (a quarter at most), so
            that several share the buffer: 10 MiB with the defaults. For larger
            answers, raise ``fetch_buffer_bytes`` to five times as much.
        fetch_max_wait_ms: how long a broker waits for ``fetch_min_bytes``.
        max_partition_fetch_bytes: bytes per partition in one answer.
        fetch_buffer_bytes: bytes fetched ahead of the reader, over all partitions.
        check_crcs: verify each batch's checksum.
        exclude_internal_topics: a pattern does not match Kafka's internal topics.
        io_thread: run the consumer in a thread with an event loop of its own, so that
            it stays in its group while code of yours blocks your loop. Records cross in
            chunks of ``max_poll_records``; callbacks and handlers run in your loop,
            deserializers, the observer and the ``offset_store`` in the thread.
        key_deserializer: makes objects of key bytes.
        value_deserializer: makes objects of value bytes.
    """

    group_id: str | None = None
    group_instance_id: str | None = None
    group_protocol: str = "auto"
    group_remote_assignor: str | None = None
    partition_assignment_strategy: tuple[object, ...] | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    max_poll_records: int = 500
    offset_store: OffsetStore | None = None
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    auto_offset_reset: str = "latest"
    isolation_level: str = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    fetch_buffer_bytes: int = 52_428_800
    check_crcs: bool = True
    exclude_internal_topics: bool = True
    io_thread: bool = False
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None

    ARGUMENTS: ClassVar[tuple[str, ...]] = (
        *ClientConfig.ARGUMENTS,
        "topics",
        "assign",
        "on_assigned",
        "on_revoked",
        "on_lost",
    )
    BOUNDS: ClassVar[Mapping[str, tuple[float, float]]] = {
        **ClientConfig.BOUNDS,
        "session_timeout_ms": (1, FOREVER),
        "heartbeat_interval_ms": (1, FOREVER),
        "max_poll_interval_ms": (1, FOREVER),
        "max_poll_records": (1, FOREVER),
        "auto_commit_interval_ms": (1, FOREVER),
        "fetch_min_bytes": (0, FOREVER),
        "fetch_max_bytes": (1, FOREVER),
        "fetch_max_wait_ms": (0, FOREVER),
        "max_partition_fetch_bytes": (1, FOREVER),
        "fetch_buffer_bytes": (1, 2**62),
    }
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **ClientConfig.CHOICES,
        "group_protocol": ("auto", "consumer", "classic"),
        "isolation_level": ("read_uncommitted", "read_committed"),
    }

    def __post_init__(self) -> None:
        _check(self)
        if self.partition_assignment_strategy is not None:
            strategy = parse_strategy(self.partition_assignment_strategy)
            object.__setattr__(self, "partition_assignment_strategy", strategy)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigurationError(
                f"heartbeat_interval_ms={self.heartbeat_interval_ms} must be less than "
                f"session_timeout_ms={self.session_timeout_ms}"
            )
        if self.group_id is not None and not self.group_id:
            raise ConfigurationError("group_id is empty; use None for no group")
        if self.group_instance_id is not None and self.group_id is None:
            raise ConfigurationError("group_instance_id wants a group_id")
        self._check_store()
        self._check_protocol()
        if self.auto_offset_reset not in {"latest", "earliest", "none"}:
            self.reset_duration_ms()

    def _check_store(self) -> None:
        if self.offset_store is None:
            return
        store = self.offset_store
        if isinstance(store, type) or not isinstance(store, OffsetStore):
            raise ConfigurationError(
                f"offset_store={store!r} is no object with the methods of OffsetStore"
            )
        if self.group_id is None:
            raise ConfigurationError(
                "offset_store keeps a group's offsets: give group_id"
            )

    def _check_protocol(self) -> None:
        defaults = {field.name: field.default for field in fields(ConsumerConfig)}
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
                "group_remote_assignor is for the consumer protocol, "
                "partition_assignment_strategy for the classic one: give one of them"
            )

    def reset_duration_ms(self) -> int | None:
        """How far back ``by_duration:`` goes, in milliseconds; None otherwise.

        Raises:
            ConfigurationError: ``auto_offset_reset`` is none of its forms.
        """
        kind, colon, text = self.auto_offset_reset.partition(":")
        if not colon and kind in {"latest", "earliest", "none"}:
            return None
        duration = iso_duration_ms(text) if kind == "by_duration" else None
        if duration is None:
            raise ConfigurationError(
                f"auto_offset_reset={self.auto_offset_reset!r}: use latest, earliest, "
                "none or by_duration: with an ISO 8601 duration such as PT1H"
            )
        return duration


def _check(config: ClientConfig) -> None:
    for field in fields(config):
        check_field(
            field.name,
            getattr(config, field.name),
            field.default,
            bounds=config.BOUNDS.get(field.name),
            choices=config.CHOICES.get(field.name),
        )
    if config.ssl_context is not None and config.security_protocol != "SSL":
        raise ConfigurationError(
            "ssl_context is not used without security_protocol='SSL'"
        )
