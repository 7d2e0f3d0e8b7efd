"""Access control lists, against scripted brokers."""

from dataclasses import replace

import pytest

from kafkaio.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    settled,
)
from kafkaio.errors import (
    AdminErrors,
    ArgumentTypeError,
    ArgumentValueError,
    AuthorizationError,
    BrokerError,
    ProtocolError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import (
    create_acls as create_api,
    delete_acls as delete_api,
    describe_acls as describe_api,
)
from tests.fakes.broker import FakeCluster
from tests.unit.admin.support import admin_of

READ = AclBinding(AclResourceType.TOPIC, "t", "User:alice", AclOperation.READ)
DENY = AclBinding(
    AclResourceType.GROUP,
    "g-",
    "User:bob",
    AclOperation.ALL,
    AclPermission.DENY,
    "10.0.0.1",
    AclPatternType.PREFIXED,
)


def created(*codes: tuple[int, str | None]) -> create_api.CreateAclsResponse:
    return create_api.CreateAclsResponse(
        results=[
            create_api.AclCreationResult(error_code=code, error_message=message)
            for code, message in codes
        ]
    )


async def test_entries_are_created_by_the_controller(cluster: FakeCluster) -> None:
    cluster.controller_id = 2
    cluster.on(ApiKey.CREATE_ACLS, created((0, None), (0, None)))
    async with admin_of(cluster) as admin:
        assert await admin.create_acls([READ, DENY]) == {READ: None, DENY: None}
        assert await admin.create_acls([]) == {}
    (logged,) = [it for it in cluster.log if it.api is ApiKey.CREATE_ACLS]
    assert logged.node_id == 2
    assert logged.request.creations == [
        create_api.AclCreation(
            resource_type=2,
            resource_name="t",
            resource_pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        ),
        create_api.AclCreation(
            resource_type=3,
            resource_name="g-",
            resource_pattern_type=4,
            principal="User:bob",
            host="10.0.0.1",
            operation=2,
            permission_type=2,
        ),
    ]


async def test_one_entry_is_refused_and_the_other_asked_for_again(
    cluster: FakeCluster,
) -> None:
    cluster.on(ApiKey.CREATE_ACLS, created((0, None)))
    first = created((E.INVALID_REQUEST, "no such name"), (E.NOT_CONTROLLER, None))
    cluster.on(ApiKey.CREATE_ACLS, first, times=1)
    async with admin_of(cluster) as admin:
        with pytest.raises(BrokerError, match=r"'t' from .*: no such name") as caught:
            await admin.create_acls([READ, DENY])
    assert caught.value.item == READ
    assert caught.value.results == {DENY: None}
    sent = [len(it.creations) for it in cluster.requests(create_api.CreateAclsRequest)]
    assert sent == [2, 1]


async def test_who_may_not_is_told_which_right_is_missing(cluster: FakeCluster) -> None:
    text = "Request(processor=13, connectionId=1-2, session=Session@777560d3)"
    denied = (E.CLUSTER_AUTHORIZATION_FAILED, text)
    cluster.on(ApiKey.CREATE_ACLS, created(denied, denied))
    cluster.on(
        ApiKey.DESCRIBE_ACLS,
        describe_api.DescribeAclsResponse(error_code=denied[0], error_message=text),
    )
    async with admin_of(cluster) as admin:
        errors = await settled(admin.create_acls([READ, DENY]))
        with pytest.raises(AuthorizationError, match="DESCRIBE on the cluster") as told:
            await admin.describe_acls()
    for error in (*errors.failed.values(), told.value):
        assert isinstance(error, AuthorizationError)
        assert "processor" not in str(error)
    assert errors.failed[READ] is not errors.failed[DENY]
    assert "needs ALTER on the cluster" in str(errors.failed[READ])


async def test_entries_are_described_sorted(cluster: FakeCluster) -> None:
    answer = describe_api.DescribeAclsResponse(
        resources=[
            describe_api.DescribeAclsResource(
                resource_type=2,
                resource_name="t",
                pattern_type=3,
                acls=[
                    describe_api.AclDescription(
                        principal="User:alice", host="*", operation=3, permission_type=3
                    )
                ],
            ),
            describe_api.DescribeAclsResource(
                resource_type=99,
                resource_name="new",
                pattern_type=98,
                acls=[
                    describe_api.AclDescription(
                        principal="User:x", host="*", operation=97, permission_type=96
                    )
                ],
            ),
        ]
    )
    cluster.on(ApiKey.DESCRIBE_ACLS, answer)
    async with admin_of(cluster) as admin:
        found = await admin.describe_acls()
        await admin.describe_acls(
            AclBindingFilter(AclResourceType.TOPIC, "t", "User:alice")
        )
    newer = AclBinding(
        AclResourceType.UNKNOWN,
        "new",
        "User:x",
        AclOperation.UNKNOWN,
        AclPermission.UNKNOWN,
        "*",
        AclPatternType.UNKNOWN,
    )
    assert found == [READ, newer]
    everything, some = cluster.requests(describe_api.DescribeAclsRequest)
    assert everything == describe_api.DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    assert (some.resource_type_filter, some.resource_name_filter) == (2, "t")


def matching(
    binding: AclBinding, code: int = 0, message: str | None = None
) -> delete_api.DeleteAclsMatchingAcl:
    return delete_api.DeleteAclsMatchingAcl(
        error_code=code,
        error_message=message,
        resource_type=2 if binding is READ else 3,
        resource_name=binding.resource_name,
        pattern_type=3 if binding is READ else 4,
        principal=binding.principal,
        host=binding.host,
        operation=3 if binding is READ else 2,
        permission_type=3 if binding is READ else 2,
    )


async def test_what_was_deleted_is_told_by_filter(cluster: FakeCluster) -> None:
    everything = AclBindingFilter()
    bobs = AclBindingFilter(principal="User:bob")
    mine = AclBindingFilter(principal="User:alice")
    cluster.on(
        ApiKey.DELETE_ACLS,
        delete_api.DeleteAclsResponse(
            filter_results=[
                delete_api.DeleteAclsFilterResult(
                    matching_acls=[matching(READ), matching(DENY)]
                ),
                delete_api.DeleteAclsFilterResult(error_code=42, error_message="bad"),
                delete_api.DeleteAclsFilterResult(
                    matching_acls=[matching(READ), matching(DENY, 42, "pinned")]
                ),
            ]
        ),
    )
    async with admin_of(cluster) as admin:
        with pytest.raises(AdminErrors) as caught:
            await admin.delete_acls([everything, bobs, mine])
        assert await admin.delete_acls([]) == {}
    assert caught.value.results == {everything: (DENY, READ)}
    whole, partly = caught.value.exceptions
    assert "bad" in str(whole)
    assert "'g-' from 10.0.0.1 stays: pinned; deleted all the same: ALLOW" in str(
        partly
    )


@pytest.mark.parametrize("count", [0, 2])
async def test_an_answer_with_another_number_of_results(
    cluster: FakeCluster, count: int
) -> None:
    cluster.on(ApiKey.CREATE_ACLS, created(*[(0, None)] * count))
    async with admin_of(cluster) as admin:
        with pytest.raises(ProtocolError, match=f"{count} results for 1 items"):
            await admin.create_acls([READ])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"operation": "reed"},
            "'reed' is not a member of AclOperation; did you mean 'READ'",
        ),
        ({"operation": AclOperation.ANY}, "operation='ANY' is for filters"),
        ({"operation": AclOperation.UNKNOWN}, "'UNKNOWN' stands for an unknown"),
        ({"pattern_type": AclPatternType.MATCH}, "'MATCH' is for filters"),
        ({"resource_name": ""}, "resource_name must not be empty"),
        ({"principal": "alice"}, "principal='alice' must have a type"),
        ({"principal": "User:"}, "must have a type"),
    ],
)
async def test_entries_that_are_impossible(
    cluster: FakeCluster, wrong: dict[str, object], message: str
) -> None:
    async with admin_of(cluster) as admin:
        with pytest.raises(ArgumentValueError, match=message):
            await admin.create_acls([replace(READ, **wrong)])  # type: ignore[arg-type]
    assert not [it for it in cluster.log if it.api is ApiKey.CREATE_ACLS]


async def test_arguments_of_the_wrong_kind(cluster: FakeCluster) -> None:
    async with admin_of(cluster) as admin:
        with pytest.raises(ArgumentValueError, match="occurs twice"):
            await admin.create_acls([READ, replace(READ)])
        with pytest.raises(ArgumentTypeError, match="collection of AclBinding"):
            await admin.create_acls([AclBindingFilter()])  # type: ignore[list-item]
        with pytest.raises(ArgumentTypeError, match="bindings must be a collection"):
            await admin.create_acls(READ)  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="host must be str, not int"):
            await admin.create_acls([replace(READ, host=1)])  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="operation must be AclOperation"):
            await admin.create_acls([replace(READ, operation=3)])  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="must be AclBindingFilter"):
            await admin.describe_acls(READ)  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="principal must be str or None"):
            await admin.delete_acls([AclBindingFilter(principal=3)])  # type: ignore[arg-type]
        with pytest.raises(ArgumentValueError, match="occurs twice"):
            await admin.delete_acls([AclBindingFilter(), AclBindingFilter()])
