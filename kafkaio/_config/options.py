"""Keyword options with their types, so that editors and type checkers know each one.

Generated from ``configs.py`` by ``python -m codegen.options``: do not edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypedDict

from kafkaio._config.configs import (
    AllowedHosts,
    MaxVersions,
    Partitioner,
    TokenProvider,
)
from kafkaio._public import public
from kafkaio.types import OffsetStore

if TYPE_CHECKING:
    import ssl


@public("kafkaio")
class ClientOptions(TypedDict, total=False):
    """Keyword options of ``Client``; see `ClientConfig`."""

    client_id: str
    client_rack: str
    request_timeout_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    metadata_max_age_ms: int
    metadata_max_idle_ms: int
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    metadata_recovery_rebootstrap_trigger_ms: int
    bootstrap_resolve_timeout_ms: int
    metadata_cluster_check_enable: bool
    bootstrap_controllers: str | Sequence[str]
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    ssl_context: ssl.SSLContext | None
    ssl_truststore_location: str | None
    ssl_truststore_certificates: str | None
    ssl_truststore_type: Literal[None, "PEM", "PKCS12"]
    ssl_truststore_password: str | None
    ssl_keystore_location: str | None
    ssl_keystore_type: Literal[None, "PEM", "PKCS12"]
    ssl_keystore_password: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_certificate_location: str | None
    ssl_key_location: str | None
    ssl_key_password: str | None
    ssl_endpoint_identification_algorithm: Literal["https", "none", ""]
    sasl_mechanism: Literal[
        None, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"
    ]
    sasl_username: str | None
    sasl_password: str | None
    sasl_delegation_token: bool
    sasl_oauth_token_provider: TokenProvider | None
    sasl_kerberos_service_name: str
    sasl_kerberos_principal: str | None
    sasl_kerberos_keytab: str | None
    sasl_scram_max_iterations: int
    max_response_size: int
    max_decompressed_batch_size: int
    max_control_response_size: int
    receive_memory: int
    max_throttle_ms: int
    max_brokers: int
    allowed_hosts: AllowedHosts | None
    proxy: str | None
    max_versions: MaxVersions | None
    send_buffer_bytes: int
    receive_buffer_bytes: int
    allow_auto_create_topics: bool
    enable_metrics_push: bool
    log: bool


@public("kafkaio")
class ProducerOptions(ClientOptions, total=False):
    """Keyword options of ``Producer``; see `ProducerConfig`."""

    acks: Literal["all", -1, 0, 1]
    enable_idempotence: bool | None
    linger_ms: float
    batch_size: int
    buffer_memory: int
    stalled_partitions_buffer_percent: int
    max_request_size: int
    max_block_ms: int
    delivery_timeout_ms: int
    retries: int
    max_in_flight_requests_per_connection: int
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    transactional_id: str | None
    transaction_timeout_ms: int
    transaction_adds_explicitly: bool
    compression_gzip_level: int | None
    compression_lz4_level: int | None
    compression_zstd_level: int | None
    partitioner: Partitioner | None
    partitioner_ignore_keys: bool
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    partitioner_rack_aware: bool


@public("kafkaio")
class ConsumerOptions(ClientOptions, total=False):
    """Keyword options of ``Consumer``; see `ConsumerConfig`."""

    group_id: str | None
    group_instance_id: str | None
    group_protocol: Literal["auto", "consumer", "classic"]
    group_remote_assignor: str | None
    partition_assignment_strategy: Sequence[object] | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    offset_store: OffsetStore | None
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: Literal["latest", "earliest", "none"] | timedelta
    auto_offset_reset_new_partitions: Literal["latest", "earliest", "none"] | timedelta
    isolation_level: Literal["read_uncommitted", "read_committed"]
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    fetch_buffer_bytes: int
    check_crcs: bool
    exclude_internal_topics: bool
    io_thread: bool


@public("kafkaio")
class ShareConsumerOptions(ClientOptions, total=False):
    """Keyword options of ``ShareConsumer``; see `ShareConsumerConfig`."""

    group_id: str
    acknowledgement: Literal["explicit", "implicit"]
    acquire_mode: Literal["batch_optimized", "record_limit"]
    max_in_flight: int
    fetch_buffer_bytes: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    ack_linger_ms: int
    renew_locks: bool
    max_processing_ms: int
    undeserializable: Literal["release", "reject"]
    check_crcs: bool
    exclude_internal_topics: bool
    io_thread: bool
