"""The broker's side of telemetry: what is refused, and which metrics are wanted."""

from __future__ import annotations

import pytest

from kafkaio.admin import Admin, ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.errors import BrokerError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker
from tests.support.telemetry import CODES, raw_codes


async def test_what_is_refused() -> None:
    config = {"telemetry.max.bytes": 200_000}
    async with Broker(telemetry=True, config=config) as broker:
        broker.telemetry.subscribe(interval_ms=100)
        assert await raw_codes(broker.bootstrap_servers, 0.1) == CODES
        assert not broker.telemetry.pushes
        assert ErrorCode.TELEMETRY_TOO_LARGE in broker.telemetry.refused


async def test_subscriptions_are_configs() -> None:
    resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, "mine")
    changes = [ConfigChange("metrics", "a,b"), ConfigChange("interval.ms", "5000")]
    async with (
        Broker(telemetry=True) as broker,
        Admin(broker.bootstrap_servers, enable_metrics_push=False) as admin,
    ):
        await admin.incremental_alter_configs({resource: changes})
        found = (await admin.describe_configs([resource]))[resource]
        assert {name: found[name].value for name in found} == {
            "interval.ms": "5000",
            "match": "",
            "metrics": "a,b",
        }
        listed = await admin.list_config_resources([ConfigResourceType.CLIENT_METRICS])
        assert listed == [resource]
        for name, value in (
            ("interval.ms", "99"),
            ("match", "client_id"),
            ("match", "client_id=("),
            ("unknown", "1"),
        ):
            wrong = {resource: [ConfigChange(name, value)]}
            with pytest.raises(BrokerError) as raised:
                await admin.incremental_alter_configs(wrong)
            assert raised.value.code == ErrorCode.INVALID_REQUEST
