"""Quotas of clients, against scripted brokers."""

import pytest

from kafkaio.admin import QuotaEntity, QuotaFilter, QuotaName
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BrokerError,
    ProtocolError,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import (
    alter_client_quotas as alter_api,
    describe_client_quotas as describe_api,
)
from tests.fakes.broker import FakeCluster
from tests.unit.admin.support import admin_of

ALICE = QuotaEntity(user="alice")
BOTH = QuotaEntity(user=QuotaName.DEFAULT, client_id="app")


def answered(
    *entries: tuple[int, dict[str, str | None]],
) -> alter_api.AlterClientQuotasResponse:
    return alter_api.AlterClientQuotasResponse(
        entries=[
            alter_api.AlterClientQuotasResponseEntryData(
                error_code=code,
                error_message="why" if code else None,
                entity=[
                    alter_api.AlterClientQuotasResponseEntityData(
                        entity_type=kind, entity_name=name
                    )
                    for kind, name in entity.items()
                ],
            )
            for code, entity in entries
        ]
    )


async def test_quotas_are_set_and_removed(cluster: FakeCluster) -> None:
    # The parts of an entity, and the entities, may come in any order.
    cluster.on(
        ApiKey.ALTER_CLIENT_QUOTAS,
        answered((0, {"client-id": "app", "user": None}), (0, {"user": "alice"})),
    )
    async with admin_of(cluster) as admin:
        done = await admin.alter_client_quotas(
            {
                ALICE: {"producer_byte_rate": 1_000, "consumer_byte_rate": None},
                BOTH: {"request_percentage": 12.5},
            },
            validate_only=True,
        )
        assert await admin.alter_client_quotas({}) == {}
    assert list(done) == [ALICE, BOTH]
    (request,) = cluster.requests(alter_api.AlterClientQuotasRequest)
    assert request.validate_only
    entity = alter_api.AlterClientQuotasRequestEntityData
    assert request.entries == [
        alter_api.AlterClientQuotasRequestEntryData(
            entity=[entity(entity_type="user", entity_name="alice")],
            ops=[
                alter_api.OpData(key="producer_byte_rate", value=1000.0),
                alter_api.OpData(key="consumer_byte_rate", remove=True),
            ],
        ),
        alter_api.AlterClientQuotasRequestEntryData(
            entity=[
                entity(entity_type="user", entity_name=None),
                entity(entity_type="client-id", entity_name="app"),
            ],
            ops=[alter_api.OpData(key="request_percentage", value=12.5)],
        ),
    ]


async def test_an_entity_that_is_refused(cluster: FakeCluster) -> None:
    cluster.on(
        ApiKey.ALTER_CLIENT_QUOTAS,
        answered(
            (E.INVALID_REQUEST, {"user": None, "client-id": "app"}),
            (0, {"user": "alice"}),
        ),
    )
    async with admin_of(cluster) as admin:
        with pytest.raises(BrokerError) as caught:
            await admin.alter_client_quotas({ALICE: {"x": 1}, BOTH: {"x": 1}})
    assert "of the default user, client-id 'app': why" in str(caught.value)
    assert (caught.value.item, caught.value.results) == (BOTH, {ALICE: None})


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        ({"user": "mallory"}, "has user 'mallory', which was not asked for"),
        ({"planet": "mars"}, "a quota is for an unknown planet"),
    ],
)
async def test_an_answer_for_somebody_else(
    cluster: FakeCluster, entity: dict[str, str | None], message: str
) -> None:
    cluster.on(ApiKey.ALTER_CLIENT_QUOTAS, answered((0, entity)))
    async with admin_of(cluster) as admin:
        with pytest.raises(ProtocolError, match=message):
            await admin.alter_client_quotas({ALICE: {"x": 1}})


async def test_quotas_are_described(cluster: FakeCluster) -> None:
    cluster.on(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        describe_api.DescribeClientQuotasResponse(
            entries=[
                describe_api.EntryData(
                    entity=[
                        describe_api.EntityData(entity_type="ip", entity_name=None)
                    ],
                    values=[
                        describe_api.ValueData(key="connection_creation_rate", value=7)
                    ],
                )
            ]
        ),
    )
    async with admin_of(cluster) as admin:
        found = await admin.describe_client_quotas(
            QuotaFilter(
                user="alice",
                client_id=QuotaName.ANY,
                ip=QuotaName.DEFAULT,
                strict=True,
            )
        )
        await admin.describe_client_quotas()
    assert found == {
        QuotaEntity(ip=QuotaName.DEFAULT): {"connection_creation_rate": 7.0}
    }
    some, everything = cluster.requests(describe_api.DescribeClientQuotasRequest)
    assert [(it.entity_type, it.match_type, it.match) for it in some.components] == [
        ("user", 0, "alice"),
        ("client-id", 2, None),
        ("ip", 1, None),
    ]
    assert some.strict
    assert everything == describe_api.DescribeClientQuotasRequest(components=[])


async def test_an_old_broker(cluster: FakeCluster) -> None:
    for node in cluster.nodes.values():
        del node.versions[ApiKey.DESCRIBE_CLIENT_QUOTAS]
    async with admin_of(cluster) as admin:
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 2\.6 or later"):
            await admin.describe_client_quotas()


async def test_arguments_of_the_wrong_kind(cluster: FakeCluster) -> None:
    async with admin_of(cluster) as admin:
        alter = admin.alter_client_quotas
        with pytest.raises(ArgumentTypeError, match="must be a mapping"):
            await alter([ALICE])  # type: ignore[call-overload]
        with pytest.raises(ArgumentTypeError, match="QuotaEntity as keys, not str"):
            await alter({"alice": {}})  # type: ignore[call-overload]
        with pytest.raises(ArgumentTypeError, match="must be a mapping, not int"):
            await alter({ALICE: 1})  # type: ignore[call-overload]
        with pytest.raises(ArgumentTypeError, match="numbers or None"):
            await alter({ALICE: {"x": "1"}})  # type: ignore[call-overload]
        with pytest.raises(ArgumentTypeError, match="user must be str, not int"):
            await alter({QuotaEntity(user=1): {}})  # type: ignore[arg-type]
        with pytest.raises(ArgumentValueError, match="must have a user, a client_id"):
            await alter({QuotaEntity(): {"x": 1}})
        with pytest.raises(ArgumentValueError, match="ANY is for filters"):
            await alter({QuotaEntity(ip=QuotaName.ANY): {"x": 1}})  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="filter must be QuotaFilter"):
            await admin.describe_client_quotas(ALICE)  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="user must be str, QuotaName"):
            await admin.describe_client_quotas(QuotaFilter(user=1))  # type: ignore[arg-type]
    assert not [it for it in cluster.log if "QUOTAS" in it.api.name]
