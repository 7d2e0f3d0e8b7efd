"""Telemetry of clients, as a broker handles it (KIP-714): subscriptions and pushes.

What is refused, and when, is as in Kafka 4.3; so are the intervals. The pushes are
kept, for tests to look at, and not passed on.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final
from uuid import UUID

from kafkaio._public import public
from kafkaio._records.compression import Compression, Decompressor
from kafkaio._runtime.clock import random_uuid
from kafkaio.errors import CorruptRecord, RecordTooLarge
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsResponse,
)
from kafkaio.protocol.messages.push_telemetry import PushTelemetryRequest
from kafkaio.testing._broker.configs import CLIENT_METRICS, BrokerConfigs
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.settings import Setting, mismatch

#: The configs of a subscription.
SUBSCRIPTION_CONFIGS: Final[Mapping[str, Setting]] = {
    "interval.ms": Setting("int", "300000", least=100, most=3_600_000),
    "match": Setting("list", ""),
    "metrics": Setting("list", ""),
}
#: The names that a ``match`` of a subscription can have.
_MATCHES: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
_ZERO: Final = UUID(int=0)
_ACCEPTED: Final = (4, 3, 1, 2)
_DEFAULT_INTERVAL_MS: Final = 300_000
_MAX_BYTES: Final = "telemetry.max.bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """Metrics that a client has pushed.

    Attributes:
        client_instance_id: the client.
        client_id: its name.
        subscription_id: the subscription.
        is_terminating: whether the client has closed.
        compression: the codec, by its number.
        size: bytes as they came.
        metrics: an OTLP message ``MetricsData``, decompressed.
    """

    client_instance_id: UUID
    client_id: str
    subscription_id: int
    is_terminating: bool
    compression: int
    size: int
    metrics: bytes


@dataclass(frozen=True, slots=True)
class TelemetryClient:
    """A client, by what a ``match`` can name."""

    client_id: str
    software_name: str = ""
    software_version: str = ""
    address: str = ""
    port: str = ""

    def facts(self, instance_id: UUID) -> dict[str, str]:
        """The values that a ``match`` is compared with, by name."""
        return {
            "client_instance_id": str(instance_id),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.address,
            "client_source_port": self.port,
        }


@dataclass(slots=True)
class _Instance:
    subscription_id: int
    metrics: list[str]
    interval_ms: int
    version: int
    got_at: float = -inf
    pushed_at: float = -inf
    is_terminating: bool = False
    last_code: int = 0

    def is_early(self, passed: float) -> bool:
        """Whether the interval is not over after so many seconds."""
        # The difference of two times may be a little too small.
        return passed < self.interval_ms / 1000 - 1e-6


@public("kafkaio.testing")
class PushedTelemetry:
    """The metrics that clients push, and the subscriptions to them.

    Args:
        configs: the configs of the cluster, among them the subscriptions.
        clock: returns seconds.

    Attributes:
        pushes: what was accepted, oldest first.
        refused: the error codes of requests that were not accepted, oldest first.
    """

    def __init__(self, configs: BrokerConfigs, clock: Callable[[], float]) -> None:
        self._configs = configs
        self._clock = clock
        self._instances: dict[UUID, _Instance] = {}
        self.pushes: list[Push] = []
        self.refused: list[int] = []

    def subscribe(
        self,
        name: str = "all",
        metrics: str = "*",
        interval_ms: int = 1000,
        match: str = "",
    ) -> None:
        """Add or replace a subscription, as IncrementalAlterConfigs does.

        Args:
            name: its name.
            metrics: prefixes of metrics, separated by commas; ``*`` for all.
            interval_ms: how often clients are to push.
            match: ``name=pattern`` of the clients that it is for, separated by commas.

        Raises:
            Refusal: INVALID_REQUEST for an impossible value.
        """
        values = {"metrics": metrics, "interval.ms": str(interval_ms), "match": match}
        check_subscription(values)
        self._configs.set(CLIENT_METRICS, name, values)

    def unsubscribe(self, name: str = "all") -> None:
        """Remove a subscription."""
        self._configs.set(CLIENT_METRICS, name, {})

    @property
    def max_bytes(self) -> int:
        """Most bytes of a push."""
        return int(self._configs.in_force(_MAX_BYTES) or 1024 * 1024)

    def get(
        self, instance_id: UUID, client: TelemetryClient
    ) -> GetTelemetrySubscriptionsResponse:
        """Answer which metrics are wanted of a client.

        Raises:
            Refusal: THROTTLING_QUOTA_EXCEEDED if it asks too often.
        """
        if instance_id == _ZERO:
            # The first request of a client asks for an id.
            instance_id = random_uuid()
        instance = self._instance(instance_id, client)
        at = self._clock()
        last = max(instance.got_at, instance.pushed_at)
        is_early = instance.is_early(at - last)
        # After that error a client has to ask again at once (KIP-714).
        if is_early and instance.last_code != ErrorCode.UNKNOWN_SUBSCRIPTION_ID:
            raise self._refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if not is_early:
            instance.got_at = at
        instance.last_code = 0
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=list(_ACCEPTED),
            push_interval_ms=instance.interval_ms,
            telemetry_max_bytes=self.max_bytes,
            delta_temporality=True,
            requested_metrics=instance.metrics,
        )

    def push(self, request: PushTelemetryRequest, client: TelemetryClient) -> None:
        """Take what a client pushes.

        Raises:
            Refusal: INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED,
                UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE,
                TELEMETRY_TOO_LARGE or INVALID_RECORD, checked in this order.
        """
        # Only a subscription gives a client its id.
        if request.client_instance_id == _ZERO:
            raise self._refusal(ErrorCode.INVALID_REQUEST)
        instance = self._instance(request.client_instance_id, client)
        code = self._check(instance, request)
        instance.last_code = code
        if code:
            raise self._refusal(code)
        instance.is_terminating = request.terminating
        if not request.metrics:
            return
        try:
            codec = Compression(request.compression_type)
            data = bytes(Decompressor().decompress(codec, request.metrics))
        except (CorruptRecord, RecordTooLarge):
            raise self._refusal(ErrorCode.INVALID_RECORD) from None
        self.pushes.append(
            Push(
                client_instance_id=request.client_instance_id,
                client_id=client.client_id,
                subscription_id=request.subscription_id,
                is_terminating=request.terminating,
                compression=request.compression_type,
                size=len(request.metrics),
                metrics=data,
            )
        )

    def _check(self, instance: _Instance, request: PushTelemetryRequest) -> int:
        at = self._clock()
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST
        is_early = instance.got_at <= instance.pushed_at and instance.is_early(
            at - instance.pushed_at
        )
        # The last push of a client comes when it closes, whatever the interval.
        if is_early and not request.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if not is_early:
            instance.pushed_at = at
        if request.subscription_id != instance.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in {0, *_ACCEPTED}:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(request.metrics) > self.max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return 0

    def _refusal(self, code: int) -> Refusal:
        self.refused.append(int(code))
        return Refusal(ErrorCode(code))

    def _instance(self, instance_id: UUID, client: TelemetryClient) -> _Instance:
        found = self._instances.get(instance_id)
        saved = [
            values
            for kind, _, values in self._configs.saved()
            if kind == CLIENT_METRICS
        ]
        version = hash(str(saved))
        if found is None or found.version != version:
            facts = client.facts(instance_id)
            fresh = _subscribed(saved, facts, version)
            if found is not None:
                # The push at its end stays the last one when subscriptions change.
                fresh.is_terminating = found.is_terminating
            self._instances[instance_id] = found = fresh
        return found


def _subscribed(
    saved: list[dict[str, str]], facts: Mapping[str, str], version: int
) -> _Instance:
    metrics: set[str] = set()
    interval = _DEFAULT_INTERVAL_MS
    for values in saved:
        if not _matches(values.get("match", ""), facts):
            continue
        wanted = {one.strip() for one in values.get("metrics", "").split(",") if one}
        metrics |= wanted
        if wanted:
            given = int(values.get("interval.ms", _DEFAULT_INTERVAL_MS))
            # Of several subscriptions that match, the most frequent one.
            interval = min(interval, given)
    names = ["*"] if "*" in metrics else sorted(metrics)
    # The id changes with the content, so that a client sees that its own is out of
    # date.
    number = zlib.crc32(f"{names}{interval}".encode())
    signed = number - (1 << 32) if number >> 31 else number
    return _Instance(signed, names, interval, version)


def _matches(match: str, facts: Mapping[str, str]) -> bool:
    for part in filter(None, match.split(",")):
        name, _, pattern = part.partition("=")
        if re.fullmatch(pattern.strip(), facts.get(name.strip(), "")) is None:
            return False
    return True


def check_subscription(values: Mapping[str, str]) -> None:
    """Check the configs of a subscription.

    Raises:
        Refusal: INVALID_REQUEST for an unknown name or an impossible value.
    """
    for name, value in values.items():
        setting = SUBSCRIPTION_CONFIGS.get(name)
        if setting is None:
            text = f"Unknown client metrics configuration: {name}"
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
        reason = mismatch(setting, value)
        if reason is not None:
            text = f"Invalid value {value} for {name}: {reason}"
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
    for part in filter(None, values.get("match", "").split(",")):
        name, sign, pattern = part.partition("=")
        if not sign or name.strip() not in _MATCHES or not _is_pattern(pattern):
            text = f"Illegal client matching pattern: {part}"
            raise Refusal(ErrorCode.INVALID_REQUEST, text)


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
