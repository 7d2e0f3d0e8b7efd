"""Options of ``kafkaio acls``: which entries and filters they make."""

import pytest

from kafkaio._cli.access.acl_arguments import (
    CLUSTER,
    BadAcl,
    Principals,
    Resource,
    bindings_of,
    consumer_grants,
    filters_of,
    operation_of,
    principal_of,
    producer_grants,
)
from kafkaio.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)

TOPIC: Resource = (AclResourceType.TOPIC, "orders")
LITERAL, PREFIXED = AclPatternType.LITERAL, AclPatternType.PREFIXED


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("read", AclOperation.READ),
        ("DESCRIBE_CONFIGS", AclOperation.DESCRIBE_CONFIGS),
        ("DescribeConfigs", AclOperation.DESCRIBE_CONFIGS),
        ("cluster-action", AclOperation.CLUSTER_ACTION),
    ],
)
def test_operations_are_known_as_tools_write_them(
    text: str, operation: AclOperation
) -> None:
    assert operation_of(text) is operation


def test_an_unknown_operation_names_the_nearest() -> None:
    with pytest.raises(BadAcl, match=r"unknown operation 'reads'; did you mean READ\?"):
        operation_of("reads")


@pytest.mark.parametrize(
    ("text", "principal"),
    [
        ("alice", "User:alice"),
        ("User:alice", "User:alice"),
        ("Group:ops", "Group:ops"),
        ("User:CN=a,OU=b", "User:CN=a,OU=b"),
        ("CN=a:b", "User:CN=a:b"),
    ],
)
def test_a_principal_has_a_type(text: str, principal: str) -> None:
    assert principal_of(text) == principal


@pytest.mark.parametrize("text", ["", "User:", ":alice"])
def test_a_principal_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(BadAcl, match="is not a principal"):
        principal_of(text)


def test_an_entry_is_made_for_every_combination() -> None:
    grants = [(TOPIC, AclOperation.READ), (TOPIC, AclOperation.WRITE)]
    who = Principals(
        allow=["User:a", "User:b"], deny=["User:c"], deny_hosts=["10.0.0.1"]
    )
    made = bindings_of(grants, who, PREFIXED)
    assert [(it.operation, it.permission, it.principal, it.host) for it in made] == [
        (AclOperation.READ, AclPermission.ALLOW, "User:a", "*"),
        (AclOperation.READ, AclPermission.ALLOW, "User:b", "*"),
        (AclOperation.READ, AclPermission.DENY, "User:c", "10.0.0.1"),
        (AclOperation.WRITE, AclPermission.ALLOW, "User:a", "*"),
        (AclOperation.WRITE, AclPermission.ALLOW, "User:b", "*"),
        (AclOperation.WRITE, AclPermission.DENY, "User:c", "10.0.0.1"),
    ]
    assert {it.pattern_type for it in made} == {PREFIXED}


def test_the_cluster_has_no_pattern() -> None:
    made = bindings_of(
        [(CLUSTER, AclOperation.ALTER)], Principals(allow=["User:a"]), PREFIXED
    )
    assert made == [
        AclBinding(
            AclResourceType.CLUSTER, "kafka-cluster", "User:a", AclOperation.ALTER
        )
    ]


def test_what_producers_and_consumers_need() -> None:
    producer = producer_grants(["t"], ["x"], idempotent=True)
    assert [(kind.name, name, op.name) for (kind, name), op in producer] == [
        ("TOPIC", "t", "WRITE"),
        ("TOPIC", "t", "DESCRIBE"),
        ("TOPIC", "t", "CREATE"),
        ("TRANSACTIONAL_ID", "x", "WRITE"),
        ("TRANSACTIONAL_ID", "x", "DESCRIBE"),
        ("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),
    ]
    consumer = consumer_grants(["t"], ["g"])
    assert [(kind.name, name, op.name) for (kind, name), op in consumer] == [
        ("TOPIC", "t", "READ"),
        ("TOPIC", "t", "DESCRIBE"),
        ("GROUP", "g", "READ"),
    ]


def test_without_options_one_filter_means_everything() -> None:
    assert filters_of([], [], Principals(), AclPatternType.ANY) == [AclBindingFilter()]


def test_a_filter_is_made_for_every_combination() -> None:
    made = filters_of(
        [TOPIC, CLUSTER],
        [AclOperation.READ],
        Principals(allow=["User:a"], deny_hosts=["10.0.0.1"]),
        LITERAL,
    )
    assert [
        (it.resource_name, it.permission, it.principal, it.host) for it in made
    ] == [
        ("orders", AclPermission.ALLOW, "User:a", None),
        ("orders", AclPermission.DENY, None, "10.0.0.1"),
        ("kafka-cluster", AclPermission.ALLOW, "User:a", None),
        ("kafka-cluster", AclPermission.DENY, None, "10.0.0.1"),
    ]
    assert [it.pattern_type for it in made] == [LITERAL] * 2 + [AclPatternType.ANY] * 2
