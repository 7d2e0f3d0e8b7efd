"""What to suggest for a name or a value that kafkaio does not know.

Loaded for mistakes alone: `difflib` and the tables take time.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from kafkaio._config.shown import shown, shown_name
from kafkaio.errors import ConfigurationError

#: How similar a name must be to one that is suggested for it. ``group`` is similar
#: enough to ``group_id``, just so.
_NEAR = 0.76
#: The same for the value of an option, of which there are few.
_NEAR_CHOICE = 0.6

_TLS = "make an ssl.SSLContext that is so, and pass it as ssl_context"
_VERSIONS = (
    "leave it out: kafkaio negotiates versions with every broker; max_versions limits "
    "those of single requests"
)
_LOG = "use logging.getLogger('kafkaio') instead"
_OBSERVERS = "use observer=, statistics() and logging.getLogger('kafkaio') instead"
#: Options of other clients, and those of Kafka that kafkaio does not have yet.
FOREIGN: Mapping[str, str] = {
    "transaction_two_phase_commit_enable": (
        "two-phase commit (KIP-939) is not in kafkaio yet"
    ),
    "interceptor_classes": "interceptors are not in kafkaio",
    "bootstrap": "use bootstrap_servers instead",
    "loop": "leave it out: kafkaio uses the running event loop",
    "api_version": _VERSIONS,
    "api_version_auto_timeout_ms": _VERSIONS,
    "api_version_request": _VERSIONS,
    "api_version_fallback_ms": _VERSIONS,
    "broker_version_fallback": _VERSIONS,
    "max_batch_size": "use batch_size instead",
    "batch_num_messages": "use batch_size, in bytes, instead",
    "queue_buffering_max_messages": "use buffer_memory, in bytes, instead",
    "queue_buffering_max_kbytes": "use buffer_memory, in bytes, instead",
    "queued_max_messages_kbytes": "use fetch_buffer_bytes instead",
    "queued_min_messages": "use fetch_buffer_bytes instead",
    "buffer_memory_allocation_strategy": (
        "leave it out: the batches of kafkaio take memory as they grow"
    ),
    "consumer_timeout_ms": "use poll(timeout=...), in seconds, instead",
    "rebalance_timeout_ms": "use max_poll_interval_ms instead",
    "topic_metadata_refresh_interval_ms": "use metadata_max_age_ms instead",
    "enable_auto_offset_store": "use enable_auto_commit=False and commit(...) instead",
    "enable_partition_eof": "use consumer.records(until='latest') instead",
    "compression_level": (
        "use compression_gzip_level, compression_lz4_level or compression_zstd_level "
        "instead"
    ),
    "default_partitioner": "use partitioner instead",
    "partitioner_class": "use partitioner instead",
    "error_cb": _OBSERVERS,
    "stats_cb": _OBSERVERS,
    "statistics_interval_ms": _OBSERVERS,
    "throttle_cb": _OBSERVERS,
    "metric_reporters": _OBSERVERS,
    "metrics_num_samples": _OBSERVERS,
    "metrics_sample_window_ms": _OBSERVERS,
    "on_delivery": "await send(), or the delivery that enqueue() returns, instead",
    "dr_cb": "await send(), or the delivery that enqueue() returns, instead",
    "delivery_report_only_error": "await the delivery that enqueue() returns instead",
    "logger": _LOG,
    "log_cb": _LOG,
    "log_level": _LOG,
    "debug": _LOG,
    "selector": "leave it out: the event loop has its own",
    "enable_ssl_certificate_verification": _TLS,
    "ssl_cipher_suites": _TLS,
    "ssl_ciphers": _TLS,
    "ssl_enabled_protocols": _TLS,
    "ssl_protocol": _TLS,
    "ssl_crlfile": _TLS,
    "ssl_cafile": "use ssl_truststore_location instead",
    "ssl_certfile": "use ssl_certificate_location instead",
    "ssl_keyfile": "use ssl_key_location instead",
    "ssl_check_hostname": "use ssl_endpoint_identification_algorithm instead",
    "sasl_plain_username": "use sasl_username instead",
    "sasl_plain_password": "use sasl_password instead",
    "sasl_oauth_token_provider_class": "use sasl_oauth_token_provider instead",
    "sasl_jaas_config": (
        "use sasl_username and sasl_password instead; from_properties() reads it"
    ),
    "sasl_oauthbearer_token_endpoint_url": (
        "pass sasl_oauth_token_provider=kafkaio.security.ClientCredentials(...); "
        "from_properties() reads it"
    ),
    "sasl_login_callback_handler_class": "use sasl_oauth_token_provider instead",
    "sasl_client_callback_handler_class": "use sasl_oauth_token_provider instead",
    "sasl_oauthbearer_method": (
        "pass sasl_oauth_token_provider=kafkaio.security.ClientCredentials(...); "
        "from_properties() reads it"
    ),
    "oauth_cb": "use sasl_oauth_token_provider instead",
    "socks5_proxy": "use proxy instead",
    "proxy_url": "use proxy instead",
}


def _of_group(name: str) -> str:
    return (
        f"it holds for the whole group: set the config {name} of the group at the "
        "brokers (Admin.incremental_alter_configs, or `kafkaio configs set group`)"
    )


#: What to do about options of `kafkaio.Consumer`, and about configs of groups, that a
#: `kafkaio.ShareConsumer` does not have.
SHARE: Mapping[str, str] = {
    "auto_offset_reset": _of_group("share.auto.offset.reset"),
    "auto_offset_reset_new_partitions": _of_group("share.auto.offset.reset"),
    "isolation_level": _of_group("share.isolation.level"),
    "session_timeout_ms": _of_group("share.session.timeout.ms"),
    "heartbeat_interval_ms": _of_group("share.heartbeat.interval.ms"),
    "share_auto_offset_reset": _of_group("share.auto.offset.reset"),
    "share_isolation_level": _of_group("share.isolation.level"),
    "share_record_lock_duration_ms": _of_group("share.record.lock.duration.ms"),
    "share_delivery_count_limit": _of_group("share.delivery.count.limit"),
    "share_partition_max_record_locks": _of_group("share.partition.max.record.locks"),
    "share_session_timeout_ms": _of_group("share.session.timeout.ms"),
    "share_heartbeat_interval_ms": _of_group("share.heartbeat.interval.ms"),
    "share_renew_acknowledge_enable": _of_group("share.renew.acknowledge.enable"),
    "enable_auto_commit": (
        "a share group has no offsets to commit: acknowledge each record, or set "
        "acknowledgement='implicit'"
    ),
    "auto_commit_interval_ms": (
        "a share group has no offsets to commit; ack_linger_ms is how long an "
        "acknowledgement waits for others"
    ),
    "offset_store": "a share group keeps its state at the brokers",
    "group_instance_id": "share groups have no static members",
    "group_protocol": "share groups have one protocol",
    "group_remote_assignor": "the brokers assign the partitions of a share group",
    "partition_assignment_strategy": (
        "the brokers assign the partitions of a share group"
    ),
    "max_poll_interval_ms": (
        "use max_processing_ms instead: how long the lock of a record is renewed"
    ),
    "max_poll_records": "use max_in_flight instead",
    "max_partition_fetch_bytes": "use fetch_max_bytes instead",
}


def without_meaning(kind: str, given: str, name: str) -> ConfigurationError | None:
    """Return the error for an option that has no meaning for a kind of object.

    Args:
        kind: the class that has the options, such as ``ShareConsumer``.
        given: the option as the caller spelled it.
        name: the same in kafkaio's spelling.

    Returns:
        None if nothing is known of that name.
    """
    hint = SHARE.get(name.lower()) if kind == "ShareConsumer" else None
    if hint is None:
        return None
    return ConfigurationError(f"{shown_name(given)} is not an option of {kind}: {hint}")


def unknown_option(name: str, known: Collection[str]) -> ConfigurationError:
    """Return the error for an option that does not exist.

    Args:
        name: the option, in either spelling.
        known: names that may be meant: options, and other arguments.
    """
    hint = _foreign_option(str(name).replace(".", "_").lower())
    if hint is None:
        near = nearest(str(name), known)
        hint = f"did you mean {near!r}?" if near else ""
    hint = f"; {hint}" if hint else ""
    return ConfigurationError(f"unknown option {shown_name(name)}{hint}")


def nearest(name: str, known: Collection[str], least: float = _NEAR) -> str | None:
    """Return the known name that is most similar to one, in any letter case.

    Args:
        name: the name that does not exist.
        known: names that may be meant.
        least: how similar a name must be, from 0 to 1.
    """
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), folded, 1, least)
    return folded[near[0]] if near else None


def _foreign_option(name: str) -> str | None:
    return FOREIGN.get(name)


def wrong_choice(
    name: str, value: object, choices: Collection[str | int | None]
) -> ConfigurationError:
    """Return the error for a value that is not one of the choices of its option."""
    text = str(value)
    if text.upper() == "JKS":
        return ConfigurationError(
            f"{name}={text!r}: kafkaio does not read Java's own format. Convert the "
            "file: keytool -importkeystore -srckeystore x.jks -destkeystore x.p12 "
            "-deststoretype PKCS12"
        )
    if text.upper() == "AWS_MSK_IAM":
        return ConfigurationError(
            f"{name}={text!r}: use sasl_mechanism='OAUTHBEARER' and "
            "sasl_oauth_token_provider=kafkaio.security.MskToken(region), or "
            "from_properties(), which reads the properties of AWS's library"
        )
    near = nearest(text, [str(choice) for choice in choices], _NEAR_CHOICE)
    is_near = isinstance(value, str) and near
    # A value that resembles a choice is a misspelt choice, so it may be shown.
    what = f"{name}={value!r}" if is_near else shown(name, value)
    return ConfigurationError(
        f"{what} is not one of {', '.join(map(repr, choices))}"
        + (f"; did you mean {near!r}?" if is_near else "")
    )
