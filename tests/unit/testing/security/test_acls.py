"""Access control lists: Kafka's rules, by example and against a plain reading."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, strategies as st

from kafkaio.testing._security.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    AclStore,
    InvalidAcl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    Visitor,
)

ALICE = Visitor("User:alice", "10.0.0.1")
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
DENY, ALLOW = Permission.DENY, Permission.ALLOW
PREFIXED, LITERAL = PatternType.PREFIXED, PatternType.LITERAL


def acl(
    operation: Operation = Operation.READ,
    name: str = "orders",
    permission: Permission = ALLOW,
    pattern: PatternType = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    kind: ResourceType = TOPIC,
) -> Acl:
    return Acl(
        resource_type=kind,
        name=name,
        principal=principal,
        operation=operation,
        permission=permission,
        pattern=pattern,
        host=host,
    )


def acls(*rules: Acl, allow_if_none: bool = False) -> AclStore:
    made = AclStore(["User:root"], allow_if_none=allow_if_none)
    for rule in rules:
        made.add(rule)
    return made


def allows(rules: AclStore, operation: Operation, name: str = "orders") -> bool:
    return rules.allows(ALICE, operation, TOPIC, name)


# ---- what a client may do -----------------------------------------------------------


def test_nothing_is_allowed_without_an_acl_except_to_super_users() -> None:
    root = Visitor("User:root", "10.0.0.9")
    nobody = acls(acl(Operation.ALL, "*", DENY, principal="User:*"))
    assert nobody.allows(root, Operation.READ, TOPIC, "orders")
    assert nobody.allows_any(root, Operation.WRITE, TOPIC)
    assert not allows(acls(), Operation.READ)


def test_without_any_acl_on_a_resource_all_may_be_allowed() -> None:
    rules = acls(acl(name="orders", principal="User:bob"), allow_if_none=True)
    assert allows(rules, Operation.WRITE, "other")
    assert not allows(rules, Operation.READ, "orders")
    assert rules.allows(ALICE, Operation.READ, GROUP, "orders")


@pytest.mark.parametrize(
    "rule",
    [
        acl(),
        acl(name="*"),
        acl(name="ord", pattern=PREFIXED),
        acl(principal="User:*"),
        acl(host="10.0.0.1"),
        acl(Operation.ALL),
    ],
)
def test_what_an_acl_covers(rule: Acl) -> None:
    assert allows(acls(rule), Operation.READ)
    assert not allows(acls(rule, replace(rule, permission=DENY)), Operation.READ)


@pytest.mark.parametrize(
    "rule",
    [
        acl(name="order"),
        acl(name="ordersx", pattern=PREFIXED),
        acl(name="*", pattern=PREFIXED),
        acl(principal="User:bob"),
        acl(principal="alice:alice"),
        acl(host="10.0.0.2"),
        acl(Operation.WRITE),
        acl(kind=GROUP),
    ],
)
def test_what_an_acl_does_not_cover(rule: Acl) -> None:
    assert not allows(acls(rule), Operation.READ)


@pytest.mark.parametrize(
    ("given", "implied"),
    [
        (Operation.READ, Operation.DESCRIBE),
        (Operation.WRITE, Operation.DESCRIBE),
        (Operation.DELETE, Operation.DESCRIBE),
        (Operation.ALTER, Operation.DESCRIBE),
        (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS),
    ],
)
def test_an_allowance_implies_what_it_needs_and_a_denial_nothing(
    given: Operation, implied: Operation
) -> None:
    assert allows(acls(acl(given)), implied)
    assert not allows(acls(acl(implied)), given)
    denied = acls(acl(given, permission=DENY), acl(implied))
    assert allows(denied, implied)


# ---- any resource of a type ---------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([acl(Operation.WRITE)], True),
        ([acl(Operation.ALL, "o", pattern=PREFIXED)], True),
        ([acl(Operation.READ)], False),
        ([acl(Operation.WRITE, kind=GROUP)], False),
        ([acl(Operation.WRITE), acl(Operation.WRITE, permission=DENY)], False),
        ([acl(Operation.WRITE), acl(Operation.ALL, "o", DENY, PREFIXED)], False),
        ([acl(Operation.WRITE), acl(Operation.WRITE, "x", DENY, PREFIXED)], True),
        ([acl(Operation.WRITE), acl(Operation.WRITE, "x", DENY)], True),
        ([acl(Operation.WRITE, "*"), acl(Operation.WRITE, "*", DENY)], False),
        ([acl(Operation.WRITE, "*"), acl(Operation.WRITE, "*", DENY, PREFIXED)], True),
        (
            [
                acl(Operation.WRITE, "o", pattern=PREFIXED),
                acl(Operation.ALL, "o", DENY),
            ],
            True,
        ),
    ],
)
def test_a_right_on_any_resource(rules: list[Acl], expected: bool) -> None:
    assert acls(*rules).allows_any(ALICE, Operation.WRITE, TOPIC) is expected


# ---- which ACLs Kafka takes ---------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (acl(name=""), "empty resource name"),
        (acl(kind=ResourceType.ANY), "Invalid resourceType ANY"),
        (acl(kind=ResourceType.CLUSTER), f"is {CLUSTER_NAME}"),
        (acl(pattern=PatternType.MATCH), "Invalid patternType MATCH"),
        (acl(Operation.ANY), "Invalid operation ANY"),
        (acl(permission=Permission.ANY), "Invalid permissionType ANY"),
        (acl(principal="alice"), "no colon"),
    ],
)
def test_what_kafka_refuses(wrong: Acl, text: str) -> None:
    rules = acls()
    with pytest.raises(InvalidAcl, match=text):
        rules.add(wrong)
    assert not len(rules)


def test_an_acl_is_there_once() -> None:
    rules = acls(acl(), acl())
    assert rules.find(AclFilter()) == [acl()]


# ---- filters ------------------------------------------------------------------------

EXACT, WILD, PREFIX = acl(), acl(name="*"), acl(name="ord", pattern=PREFIXED)


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (AclFilter(), [EXACT, WILD, PREFIX]),
        (AclFilter(pattern=LITERAL), [EXACT, WILD]),
        (AclFilter(pattern=PREFIXED), [PREFIX]),
        (AclFilter(name="orders"), [EXACT]),
        (AclFilter(name="ord"), [PREFIX]),
        (AclFilter(name="*"), [WILD]),
        (AclFilter(name="orders", pattern=PREFIXED), []),
        (AclFilter(name="orders", pattern=PatternType.MATCH), [EXACT, WILD, PREFIX]),
        (AclFilter(name="order", pattern=PatternType.MATCH), [WILD, PREFIX]),
        (AclFilter(pattern=PatternType.MATCH), [EXACT, WILD, PREFIX]),
        (AclFilter(principal="User:*"), []),
        (AclFilter(host="10.0.0.1"), []),
        (AclFilter(operation=Operation.ALL), []),
        (AclFilter(permission=DENY), []),
        (AclFilter(resource_type=GROUP), []),
    ],
)
def test_filters(chosen: AclFilter, found: list[Acl]) -> None:
    rules = acls(EXACT, WILD, PREFIX)
    assert rules.find(chosen) == found
    both = rules.remove([chosen, AclFilter(name="orders")])
    assert both == [found, [EXACT]]
    kept = [one for one in (EXACT, WILD, PREFIX) if one not in [*found, EXACT]]
    assert rules.find(AclFilter()) == kept


# ---- against a plain reading of the rules -------------------------------------------

NAMES = ["*", "a", "ab", "abc", "b"]
OPERATIONS = [one for one in Operation if one > Operation.ANY]
RULES = st.lists(
    st.builds(
        acl,
        st.sampled_from(OPERATIONS),
        st.sampled_from(NAMES),
        st.sampled_from([DENY, ALLOW]),
        st.sampled_from([LITERAL, PREFIXED]),
        st.sampled_from(["User:alice", "User:bob", "User:*"]),
        st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
        st.sampled_from([TOPIC, GROUP]),
    ),
    max_size=8,
)
IMPLIED = {
    Operation.READ: Operation.DESCRIBE,
    Operation.WRITE: Operation.DESCRIBE,
    Operation.DELETE: Operation.DESCRIBE,
    Operation.ALTER: Operation.DESCRIBE,
    Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS,
}


def expanded(rule: Acl) -> set[tuple[str, Operation]]:
    """All names and operations for which a rule denies or allows something."""
    names = {name for name in NAMES if name.startswith(rule.name)}
    if rule.pattern is LITERAL:
        names = set(NAMES) if rule.name == "*" else {rule.name}
    wanted: set[Operation] = {rule.operation}
    if rule.operation is Operation.ALL:
        wanted = set(OPERATIONS)
    if rule.permission is ALLOW and rule.operation in IMPLIED:
        wanted.add(IMPLIED[rule.operation])
    return {(name, operation) for name in names for operation in wanted}


@given(RULES, st.booleans())
@example([acl(Operation.ALL, "a"), acl(Operation.DESCRIBE, "a", DENY)], False)
def test_every_decision_is_that_of_a_plain_reading(
    rules: list[Acl], allow_if_none: bool
) -> None:
    found = acls(*rules, allow_if_none=allow_if_none)
    rules = [rule for rule in rules if rule.resource_type is TOPIC]
    mine = [
        rule
        for rule in rules
        if rule.principal != "User:bob" and rule.host != "10.0.0.2"
    ]
    covered = {name for rule in rules for name, _ in expanded(rule)}
    denied = {one for rule in mine if rule.permission is DENY for one in expanded(rule)}
    allowed = {
        one for rule in mine if rule.permission is ALLOW for one in expanded(rule)
    }
    for name in NAMES:
        for operation in OPERATIONS:
            expected = (name, operation) in allowed - denied
            if name not in covered:
                expected = allow_if_none
            assert allows(found, operation, name) is expected


@given(RULES)
def test_who_has_a_right_on_a_resource_has_it_on_any(rules: list[Acl]) -> None:
    found = acls(*rules)
    if any(allows(found, Operation.WRITE, name) for name in NAMES):
        assert found.allows_any(ALICE, Operation.WRITE, TOPIC)


@given(RULES, st.sampled_from(NAMES))
def test_match_finds_what_decides_about_a_resource(rules: list[Acl], name: str) -> None:
    found = acls(*rules)
    chosen = AclFilter(resource_type=TOPIC, name=name, pattern=PatternType.MATCH)
    for operation in OPERATIONS:
        before = allows(found, operation, name)
        alone = acls(*found.find(chosen))
        assert allows(alone, operation, name) is before
    found.remove([chosen])
    assert not any(allows(found, operation, name) for operation in OPERATIONS)
