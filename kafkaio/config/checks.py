"""How option values are read and checked; every error names the option."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING

from kafkaio.errors import ConfigurationError

DEFAULT_PORT = 9092
FOREVER = 2**31 - 1

#: How many batches per producer and partition a broker remembers (KIP-98).
MAX_IDEMPOTENT_IN_FLIGHT = 5

#: librdkafka's names for options that Kafka calls otherwise, of the same unit.
ALIASES: Mapping[str, str] = {
    "metadata.broker.list": "bootstrap.servers",
    "compression.codec": "compression.type",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.send.max.retries": "retries",
    "request.required.acks": "acks",
    "queue.buffering.max.ms": "linger.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "socket.timeout.ms": "request.timeout.ms",
    "receive.message.max.bytes": "max.response.size",
    "broker.rack": "client.rack",
}

#: How alike a name must be to one that is suggested for it: ``group`` is as far from
#: ``group_id`` as that may be.
_NEAR = 0.76

#: Options that are functions, and what is asked of them.
_FUNCTIONS: Mapping[str, str] = {
    "partitioner": "function (topic, key, value, partitions) that returns a number",
    "key_serializer": "function that turns a key into bytes",
    "value_serializer": "function that turns a value into bytes",
    "key_deserializer": "function that turns bytes into a key",
    "value_deserializer": "function that turns bytes into a value",
}
#: Options that may be None, and their type otherwise.
_OPTIONAL: Mapping[str, type] = {
    "enable_idempotence": bool,
    "compression_gzip_level": int,
    "compression_lz4_level": int,
    "compression_zstd_level": int,
    "group_id": str,
    "group_instance_id": str,
    "group_remote_assignor": str,
}

_SASL = "SASL is not in kafkaio yet"
_TRANSACTIONS = "transactions are not in kafkaio yet"
_TLS = (
    "use ssl_context=ssl.create_default_context(...) with security_protocol='SSL' "
    "instead"
)
_VERSIONS = "leave it out: kafkaio agrees on versions with every broker"
_LOG = "use logging.getLogger('kafkaio') instead"
_SEEN = "use observer=, statistics() and logging.getLogger('kafkaio') instead"
#: What other clients have, and Kafka's own options that are not built yet.
_FOREIGN: Mapping[str, str] = {
    "transactional_id": _TRANSACTIONS,
    "transaction_timeout_ms": _TRANSACTIONS,
    "transaction_two_phase_commit_enable": _TRANSACTIONS,
    "enable_metrics_push": "pushing metrics (KIP-714) is not in kafkaio yet",
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
    "consumer_timeout_ms": "use poll(timeout=...), in seconds, instead",
    "rebalance_timeout_ms": "use max_poll_interval_ms instead",
    "topic_metadata_refresh_interval_ms": "use metadata_max_age_ms instead",
    "enable_auto_offset_store": "use enable_auto_commit=False and commit(...) instead",
    "enable_partition_eof": "use end_offsets() or lag() instead",
    "compression_level": (
        "use compression_gzip_level, compression_lz4_level or compression_zstd_level "
        "instead"
    ),
    "default_partitioner": "use partitioner instead",
    "partitioner_class": "use partitioner instead",
    "error_cb": _SEEN,
    "stats_cb": _SEEN,
    "statistics_interval_ms": _SEEN,
    "throttle_cb": _SEEN,
    "metric_reporters": _SEEN,
    "metrics_num_samples": _SEEN,
    "metrics_sample_window_ms": _SEEN,
    "on_delivery": "await send(), or the delivery that enqueue() returns, instead",
    "dr_cb": "await send(), or the delivery that enqueue() returns, instead",
    "delivery_report_only_error": "await the delivery that enqueue() returns instead",
    "logger": _LOG,
    "log_cb": _LOG,
    "log_level": _LOG,
    "debug": _LOG,
    "selector": "leave it out: the event loop has its own",
    "enable_ssl_certificate_verification": _TLS,
    "socks5_proxy": "proxies are not in kafkaio",
}
_FOREIGN_PREFIXES: Mapping[str, str] = {
    "sasl_": _SASL,
    "ssl_": _TLS,
    "oauthbearer_": _SASL,
}

_DURATION = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)


def parse_servers(servers: object, kind: str = "Client") -> tuple[tuple[str, int], ...]:
    """Read ``host``, ``host:port`` or ``[ipv6]:port`` addresses.

    Args:
        servers: one text with commas, or a collection of texts.
        kind: the class that is being made, for messages.

    Raises:
        ConfigurationError: there is none, or one makes no sense.
    """
    if isinstance(servers, Mapping):
        raise ConfigurationError(
            "bootstrap_servers is a mapping of options: pass it to "
            f"{kind}.from_properties(...)"
        )
    found = servers.split(",") if isinstance(servers, str) else servers
    given = list(found) if isinstance(found, Iterable) else [found]
    texts = [text for text in given if isinstance(text, str)]
    if len(texts) < len(given):
        raise ConfigurationError(
            f"bootstrap_servers={servers!r}: use 'host:port', 'host:port,host2:port' "
            "or a list of such texts"
        )
    parsed = tuple(_parse_server(t.strip()) for t in texts if t.strip())
    if not parsed:
        raise ConfigurationError("bootstrap_servers names no server")
    return parsed


def _parse_server(text: str) -> tuple[str, int]:
    # The name of a listener may stand before the address, as brokers are configured.
    found = re.fullmatch(
        r"(?:[A-Z][A-Z0-9_.-]*://)?"
        r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s/\[\]]+))(?::(?P<port>\d{1,5}))?",
        text,
    )
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 65536:
        url = "; it is no URL" if "://" in text else ""
        raise ConfigurationError(
            f"bootstrap server {text!r}: use host:port, or [address]:port for IPv6{url}"
        )
    return found["v6"] or found["host"], port


def check_field(
    name: str,
    value: object,
    default: object,
    *,
    bounds: tuple[float, float] | None,
    choices: Sequence[str] | None,
) -> None:
    """Check one option's type, bounds and choices.

    Raises:
        ConfigurationError: one of them is violated.
    """
    if choices is not None:
        _check_choice(name, value, choices)
        return
    _check_type(name, value, default)
    if bounds is not None and isinstance(value, int | float):
        low, high = bounds
        if not low <= value <= high:
            raise ConfigurationError(
                f"{name}={value} is not within {low:g} to {high:g}"
            )


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value in choices:
        return
    text = str(value)
    if name == "security_protocol" and text.upper().startswith("SASL"):
        raise ConfigurationError(
            f"{name}={value!r}: {_SASL}; PLAINTEXT and SSL are there"
        )
    by_folded = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(text.casefold(), by_folded, 1)
    is_near = isinstance(value, str) and near
    raise ConfigurationError(
        f"{name}={value!r} is not one of {', '.join(map(repr, choices))}"
        + (f"; did you mean {by_folded[near[0]]!r}?" if is_near else "")
    )


def parse_strategy(strategy: object) -> tuple[object, ...]:
    """Read assignors: names separated by commas, or a sequence.

    Raises:
        ConfigurationError: there is none.
    """
    if isinstance(strategy, str):
        strategy = [name.strip() for name in strategy.split(",") if name.strip()]
    if not isinstance(strategy, list | tuple) or not strategy:
        raise ConfigurationError("partition_assignment_strategy names no assignor")
    return tuple(strategy)


def _check_type(name: str, value: object, default: object) -> None:
    if name in _FUNCTIONS or name == "ssl_context":
        _check_object(name, value)
        return
    wanted = _wanted_types(name, default)
    is_flag = isinstance(value, bool) and bool not in wanted and object not in wanted
    if is_flag or not isinstance(value, wanted):
        names = ("None" if kind is type(None) else kind.__name__ for kind in wanted)
        raise ConfigurationError(
            f"{name}={value!r} has the wrong type: {' or '.join(names)} is needed"
        )


def _wanted_types(name: str, default: object) -> tuple[type, ...]:
    if name in _OPTIONAL:
        return (_OPTIONAL[name], type(None))
    if name == "acks" or default is None or default is MISSING:
        return (object,)  # looked at elsewhere
    if isinstance(default, tuple):
        return (tuple, list, str)
    if name == "linger_ms":
        return (int, float)
    return (type(default),)


def _check_object(name: str, value: object) -> None:
    if value is None:
        return
    if name == "ssl_context":
        # This layer knows no sockets, and so not the class either.
        if isinstance(value, type) or not hasattr(value, "wrap_bio"):
            raise ConfigurationError(
                f"ssl_context={value!r} is no ssl.SSLContext, as "
                "ssl.create_default_context() makes it"
            )
    elif not callable(value):
        raise ConfigurationError(f"{name}={value!r} is no {_FUNCTIONS[name]}")


def unknown_option(name: str, known: Collection[str]) -> ConfigurationError:
    """Return the error for an option that does not exist.

    Args:
        name: the option, in either spelling.
        known: what may be meant: options, and arguments that stand beside them.
    """
    hint = _foreign_option(name.replace(".", "_").lower())
    if hint is None:
        near = difflib.get_close_matches(name, known, 1, _NEAR)
        hint = f"did you mean {near[0]!r}?" if near else ""
    hint = f"; {hint}" if hint else ""
    return ConfigurationError(f"unknown option {name!r}{hint}")


def _foreign_option(name: str) -> str | None:
    if (hint := _FOREIGN.get(name)) is not None:
        return hint
    return next((h for p, h in _FOREIGN_PREFIXES.items() if name.startswith(p)), None)


def parse_property(name: str, value: object, default: object) -> object:
    """Read a property's text as the type of its option; leave it where that fails."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    text = value.strip()
    if isinstance(default, bool) or name == "enable_idempotence":
        flags = {"true": True, "false": False}
        return flags.get(text.lower(), value)
    if isinstance(default, int | float) or name.endswith("_level"):
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            return value
    return value


def parse_acks(acks: object) -> int:
    """Read ``acks`` as the protocol has it: -1 for ``all``, 0 or 1."""
    known = {"all": -1, "-1": -1, "0": 0, "1": 1}
    found = None if isinstance(acks, bool) else known.get(str(acks))
    if found is None:
        raise ConfigurationError(f"acks={acks!r} is none of 'all', 1, 0")
    return found


def iso_duration_ms(text: str) -> int | None:
    """Read an ISO 8601 duration of days to seconds; None where it is none."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes = (int(found[part] or 0) for part in "dhm")
    seconds = float(found["s"] or 0)
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
