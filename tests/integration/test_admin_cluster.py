"""Rights, quotas, users, tokens and the cluster by `kafkaio.Admin`, on real brokers."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import anyio
import pytest
import pytest_asyncio

import kafkaio
from kafkaio.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
    FeatureLevels,
    FeatureUpdate,
    FeatureUpgradeType,
    NewTopic,
    QuorumDescription,
    QuotaEntity,
    QuotaFilter,
    QuotaName,
    RaftEndpoint,
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    Settled,
    settled,
)
from kafkaio.errors import (
    AdminErrors,
    AuthorizationError,
    BrokerError,
    ConfigurationError,
    UnsupportedVersion,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from tests.support.java import Toolbox
from tests.support.kafka import Kafka

pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("rights, tokens and controllers of a real broker"),
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]

T = TypeVar("T")
PROGRAM = Path(__file__).parents[1] / "java" / "admin" / "DescribeCluster.java"


async def until(
    ask: Callable[[], Awaitable[T]], holds: Callable[[T], object], limit: float = 20
) -> T:
    """Ask until it holds: brokers learn of changes a moment later."""
    with anyio.fail_after(limit):
        while not holds(found := await ask()):  # noqa: ASYNC110 - a broker's state
            await anyio.sleep(0.02)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[Kafka]:
    """A Kafka that checks rights, and makes tokens."""
    users = {"alice": "a", "bob": "b"}
    async with Kafka(
        tls=True, acls=True, sasl=["SCRAM-SHA-256"], users=users, delegation_tokens=True
    ) as kafka:
        yield kafka


@pytest_asyncio.fixture(loop_scope="module")
async def admin(guarded: Kafka) -> AsyncIterator[Admin]:
    async with Admin(guarded.bootstrap_servers) as admin:
        yield admin


def by_password(kafka: Kafka, user: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.bootstrap("SASL"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_username": user,
        "sasl_password": password,
        "default_api_timeout_ms": 20_000,
    }


# ---- rights --------------------------------------------------------------------------


async def test_rights_come_and_go(guarded: Kafka, admin: Admin) -> None:
    name = f"acl-{uuid4().hex[:8]}"
    one = AclBinding(AclResourceType.TOPIC, name, "User:carol", AclOperation.READ)
    many = AclBinding(
        AclResourceType.GROUP,
        name,
        "User:dave",
        AclOperation.ALL,
        AclPermission.DENY,
        "10.0.0.1",
        AclPatternType.PREFIXED,
    )
    assert await admin.create_acls([one, many]) == {one: None, many: None}
    whole = AclBindingFilter(resource_name=name)
    found = await until(lambda: admin.describe_acls(whole), lambda it: len(it) == 2)
    assert found == [many, one]
    # An entry that exists is no error, and comes not twice.
    await admin.create_acls([one])
    carols = AclBindingFilter(AclResourceType.TOPIC, name, "User:carol")
    assert await admin.describe_acls(carols) == [one]
    # A prefix applies to names that begin so.
    longer = AclBindingFilter(
        resource_name=f"{name}-longer", pattern_type=AclPatternType.MATCH
    )
    assert await admin.describe_acls(longer) == [many]
    nothing = AclBindingFilter(resource_name=f"no-{name}")
    deleted = await admin.delete_acls([whole, nothing])
    assert {each: set(them) for each, them in deleted.items()} == {
        whole: {one, many},
        nothing: set(),
    }
    await until(lambda: admin.describe_acls(whole), lambda it: not it)


async def test_a_wrong_entry_keeps_no_other_from_being_made(admin: Admin) -> None:
    good = AclBinding(
        AclResourceType.TOPIC, uuid4().hex, "User:erin", AclOperation.WRITE
    )
    wrong = AclBinding(
        AclResourceType.CLUSTER, "nowhere", "User:erin", AclOperation.ALTER
    )
    with pytest.raises(BrokerError, match="The only valid name") as caught:
        await admin.create_acls([wrong, good])
    assert caught.value.code == E.INVALID_REQUEST
    assert caught.value.item == wrong
    assert caught.value.results == {good: None}
    erins = AclBindingFilter(principal="User:erin")
    assert await until(lambda: admin.describe_acls(erins), len) == [good]
    assert await admin.delete_acls([erins]) == {erins: (good,)}


async def test_who_may_not_see_rights_is_told_why(guarded: Kafka) -> None:
    binding = AclBinding(AclResourceType.TOPIC, "x", "User:x", AclOperation.READ)
    async with Admin(**by_password(guarded, "alice", "a")) as alice:
        with pytest.raises(AuthorizationError, match="DESCRIBE on the cluster") as told:
            await alice.describe_acls()
        with pytest.raises(AuthorizationError, match="ALTER on the cluster"):
            await alice.create_acls([binding])
        described = await alice.describe_cluster(include_authorized_operations=True)
    assert "processor" not in str(told.value)
    assert described.authorized_operations == frozenset()


# ---- quotas --------------------------------------------------------------------------


async def test_quotas_are_set_seen_and_removed(admin: Admin) -> None:
    frank = QuotaEntity(user="frank")
    app = QuotaEntity(user="frank", client_id=QuotaName.DEFAULT)
    net = QuotaEntity(ip="10.1.2.3")
    wanted = {
        frank: {"producer_byte_rate": 1_000.0, "request_percentage": 12.5},
        app: {"consumer_byte_rate": 2_000.0},
        net: {"connection_creation_rate": 7.0},
    }
    checked = await admin.alter_client_quotas(wanted, validate_only=True)
    assert checked == dict.fromkeys(wanted)
    assert await admin.describe_client_quotas() == {}
    await admin.alter_client_quotas(wanted)
    assert await until(admin.describe_client_quotas, lambda it: len(it) == 3) == wanted
    franks = QuotaFilter(user="frank")
    assert set(await admin.describe_client_quotas(franks)) == {frank, app}
    alone = QuotaFilter(user=QuotaName.ANY, strict=True)
    assert set(await admin.describe_client_quotas(alone)) == {frank}
    removed = {who: dict.fromkeys(quotas) for who, quotas in wanted.items()}
    await admin.alter_client_quotas(removed)
    await until(admin.describe_client_quotas, lambda it: not it)


async def test_each_entity_that_is_wrong_is_told(admin: Admin) -> None:
    wrong = QuotaEntity(user="gail"), QuotaEntity(user="gail", ip="10.0.0.1")
    with pytest.raises(AdminErrors) as caught:
        await admin.alter_client_quotas(
            {wrong[0]: {"nonsense": 1.0}, wrong[1]: {"producer_byte_rate": 1.0}}
        )
    errors = caught.value.exceptions
    assert [getattr(each, "item", None) for each in errors] == list(wrong)
    assert {getattr(each, "code", None) for each in errors} == {E.INVALID_REQUEST}


# ---- users and tokens ----------------------------------------------------------------


async def test_a_user_logs_in_with_the_password_that_was_set(
    guarded: Kafka, admin: Admin
) -> None:
    sha = ScramMechanism.SCRAM_SHA_256
    done = await admin.alter_user_scram_credentials(
        [ScramUpsertion("heidi", sha, "pencil", 4_096)]
    )
    assert done == {"heidi": None}

    async def is_known() -> bool:
        found = await admin.describe_user_scram_credentials()
        return found.get("heidi") == (ScramCredential(sha, 4_096),)

    await until(is_known, bool)
    async with Admin(**by_password(guarded, "heidi", "pencil")) as heidi:
        assert (await heidi.describe_cluster()).cluster_id
    await admin.alter_user_scram_credentials([ScramDeletion("heidi", sha)])
    code = E.RESOURCE_NOT_FOUND

    async def described() -> Settled[str, tuple[ScramCredential, ...]]:
        return await settled(admin.describe_user_scram_credentials(["heidi", "alice"]))

    found = await until(
        described, lambda it: isinstance(it.failed.get("heidi"), BrokerError)
    )
    assert getattr(found.failed["heidi"], "code", None) == code
    assert list(found.found) == ["alice"]


async def test_each_user_that_is_wrong_is_told(admin: Admin) -> None:
    sha = ScramMechanism.SCRAM_SHA_512
    with pytest.raises(AdminErrors) as caught:
        await admin.alter_user_scram_credentials(
            [
                ScramUpsertion("ivan", sha, "x", 100),
                ScramDeletion("judy", sha),
                ScramUpsertion("bob", sha, "b", 4_096),
            ]
        )
    assert caught.value.results == {"bob": None}
    codes = {each.item: each.code for each in caught.value.exceptions}  # type: ignore[attr-defined]
    assert codes == {"ivan": E.UNACCEPTABLE_CREDENTIAL, "judy": E.RESOURCE_NOT_FOUND}


async def test_the_life_of_a_token(guarded: Kafka, admin: Admin) -> None:
    with pytest.raises(BrokerError, match="came without a login") as caught:
        await admin.create_delegation_token()
    assert caught.value.code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    async with Admin(**by_password(guarded, "alice", "a")) as alice:
        token = await alice.create_delegation_token(
            renewers=["User:bob"], max_lifetime=3_600
        )
        assert (token.owner, token.requester) == ("User:alice", "User:alice")
        assert token.max_time - token.issue_time == timedelta(hours=1)
        assert abs(datetime.now(UTC) - token.issue_time) < timedelta(minutes=5)
        found = await until(alice.describe_delegation_token, len)
        assert found == [token]
        assert found[0].hmac == token.hmac
        # Who may renew a token counts as well as its owner.
        assert await alice.describe_delegation_token(["User:bob"]) == [token]
        assert await alice.describe_delegation_token(["User:carol"]) == []
        expires = await alice.renew_delegation_token(token, period=60)
        assert expires < token.expiry_time

        login = by_password(guarded, token.token_id, token.password)
        async with Admin(**login, sasl_delegation_token=True) as other:
            with pytest.raises(BrokerError, match="logged in with a token"):
                await other.create_delegation_token()
        with pytest.raises(BrokerError, match="no token has that hmac"):
            await alice.renew_delegation_token(b"nonsense")
        await alice.expire_delegation_token(token)
        await until(alice.describe_delegation_token, lambda it: not it)


# ---- the cluster ---------------------------------------------------------------------


async def test_the_cluster_and_its_features(guarded: Kafka, admin: Admin) -> None:
    found = await admin.describe_cluster(
        include_authorized_operations=True, include_fenced_brokers=True
    )
    assert [it.node_id for it in found.brokers] == guarded.node_ids
    assert found.controller in guarded.node_ids
    assert found.fenced == frozenset()
    assert found.authorized_operations is not None
    assert AclOperation.ALTER in found.authorized_operations
    features = await admin.describe_features(node_id=guarded.node_ids[0])
    level = features.finalized["metadata.version"]
    assert level.max_level <= features.supported["metadata.version"].max_level
    assert features.finalized_epoch is not None


async def test_features_are_updated_all_or_none(admin: Admin) -> None:
    levels = (await admin.describe_features()).finalized
    off = FeatureUpdate(0, FeatureUpgradeType.SAFE_DOWNGRADE)
    updates = {"share.version": off, "nonsense": FeatureUpdate(3)}
    with pytest.raises(BrokerError, match="nonsense") as caught:
        await admin.update_features(updates)
    assert caught.value.code == E.INVALID_UPDATE_VERSION
    assert (await admin.describe_features()).finalized == levels
    await admin.update_features({"share.version": off}, validate_only=True)
    assert (await admin.describe_features()).finalized == levels


async def test_controllers_and_brokers_that_are_not_there(
    guarded: Kafka, admin: Admin
) -> None:
    quorum = await admin.describe_metadata_quorum()
    (voter,) = quorum.voters
    assert [voter.node_id] == [quorum.leader] == guarded.node_ids
    assert voter.log_end_offset is not None
    assert voter.last_fetch_time is not None
    host, port = guarded.bootstrap_controllers.split(":")
    endpoint = RaftEndpoint("CONTROLLER", host, int(port))
    assert quorum.endpoints == {voter.node_id: (endpoint,)}
    with pytest.raises(BrokerError, match="Broker ID 99 is not") as caught:
        await admin.unregister_broker(99)
    assert caught.value.code == E.BROKER_ID_NOT_REGISTERED
    # This quorum has static voters.
    with pytest.raises(BrokerError, match="support adding voter"):
        await admin.add_raft_voter(9, uuid4(), [endpoint])
    with pytest.raises(BrokerError, match="support removing voter"):
        await admin.remove_raft_voter(9, uuid4())


async def test_controllers_alone(guarded: Kafka, admin: Admin) -> None:
    cluster = await admin.describe_cluster()
    where = guarded.bootstrap_controllers
    async with Admin(bootstrap_controllers=where) as direct:
        found = await direct.describe_cluster(include_authorized_operations=True)
        assert found.cluster_id == cluster.cluster_id
        assert [it.node_id for it in found.brokers] == guarded.node_ids
        assert [f"{it.host}:{it.port}" for it in found.brokers] == where.split(",")
        assert (await direct.describe_metadata_quorum()).leader == found.controller
        features = await direct.describe_features()
        assert features.finalized == (await admin.describe_features()).finalized
        binding = AclBinding(
            AclResourceType.TOPIC, uuid4().hex, "User:kim", AclOperation.READ
        )
        kims = AclBindingFilter(principal="User:kim")
        await direct.create_acls([binding])
        assert await until(lambda: direct.describe_acls(kims), len) == [binding]
        assert await direct.delete_acls([kims]) == {kims: (binding,)}
        with pytest.raises(BrokerError, match="Broker ID 99 is not"):
            await direct.unregister_broker(99)
        with pytest.raises(UnsupportedVersion, match="needs brokers"):
            await direct.list_topics()
    with pytest.raises(BrokerError, match="is a broker, not a controller") as told:
        async with Admin(bootstrap_controllers=guarded.bootstrap_servers):
            pytest.fail("it started")
    assert told.value.code == E.MISMATCHED_ENDPOINT_TYPE
    with pytest.raises(UnsupportedVersion, match="is a controller, not a broker"):
        async with Admin(where):
            pytest.fail("it started")
    with pytest.raises(ConfigurationError, match="needs brokers"):
        kafkaio.Producer(bootstrap_controllers=where)


# ---- voters that come and go ---------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dynamic() -> AsyncIterator[Kafka]:
    """Two controllers, one of which is the only voter.

    Not before 4.3: the active controller of 4.0.2 ends if a voter that is removed
    answers its last request ("Unexpected acknowledgement from non-voter").
    """
    async with Kafka(brokers=2, dynamic_voters=True) as kafka:
        yield kafka


def endpoints_of(kafka: Kafka) -> dict[int, tuple[RaftEndpoint, ...]]:
    found = {}
    addresses = kafka.bootstrap_controllers.split(",")
    for node, address in zip(kafka.node_ids, addresses, strict=True):
        host, _, port = address.partition(":")
        found[node] = (RaftEndpoint("CONTROLLER", host, int(port)),)
    return found


def roles(quorum: QuorumDescription) -> tuple[list[int], list[int]]:
    """The node ids of voters and observers."""
    voters, observers = quorum.voters, quorum.observers
    return [it.node_id for it in voters], [it.node_id for it in observers]


@pytest.mark.parametrize("name", ["bootstrap_servers", "bootstrap_controllers"])
async def test_a_controller_becomes_a_voter_and_ceases_to_be(
    dynamic: Kafka, name: str
) -> None:
    where: dict[str, Any] = {name: getattr(dynamic, name)}
    endpoints = endpoints_of(dynamic)
    async with Admin(**where) as admin:
        quorum = await until(
            admin.describe_metadata_quorum, lambda it: roles(it) == ([1], [2])
        )
        assert (await admin.describe_features()).finalized["kraft.version"] == (
            FeatureLevels(1, 1)
        )
        assert quorum.endpoints == {1: endpoints[1]}
        (first,), (second,) = quorum.voters, quorum.observers
        assert first.directory_id is not None
        assert second.directory_id is not None
        two = second.directory_id
        with pytest.raises(BrokerError) as caught:
            await admin.add_raft_voter(2, two, endpoints[2], cluster_id="another")
        assert caught.value.code == E.INCONSISTENT_CLUSTER_ID

        cluster_id = (await admin.describe_cluster()).cluster_id
        await admin.add_raft_voter(2, two, endpoints[2], cluster_id=cluster_id)
        quorum = await admin.describe_metadata_quorum()
        assert roles(quorum) == ([1, 2], [])
        assert quorum.voters[1].directory_id == two
        assert quorum.endpoints == endpoints
        with pytest.raises(BrokerError, match="already part of the set") as caught:
            await admin.add_raft_voter(2, two, endpoints[2])
        assert caught.value.code == E.DUPLICATE_VOTER

        await admin.remove_raft_voter(2, two, cluster_id=cluster_id)
        quorum = await until(admin.describe_metadata_quorum, lambda it: it.observers)
        assert roles(quorum) == ([1], [2])
        assert quorum.observers[0].directory_id == two
        assert quorum.endpoints == {1: endpoints[1]}
        with pytest.raises(BrokerError, match="Cannot remove voter") as caught:
            await admin.remove_raft_voter(2, two)
        assert caught.value.code == E.VOTER_NOT_FOUND


async def test_the_active_controller_gives_its_place_up(dynamic: Kafka) -> None:
    endpoints = endpoints_of(dynamic)
    async with Admin(dynamic.bootstrap_servers) as admin:
        quorum = await until(
            admin.describe_metadata_quorum, lambda it: roles(it) == ([1], [2])
        )
        directories = {
            it.node_id: it.directory_id or UUID(int=0)
            for it in (*quorum.voters, *quorum.observers)
        }
        for leaving, staying in ((1, 2), (2, 1)):
            await admin.add_raft_voter(
                staying, directories[staying], endpoints[staying]
            )
            await admin.remove_raft_voter(leaving, directories[leaving])
            quorum = await until(
                admin.describe_metadata_quorum,
                lambda it, roles_=([staying], [leaving]): roles(it) == roles_,
            )
            assert quorum.leader == staying
            name = f"led-by-{staying}"
            assert list(await admin.create_topics([NewTopic(name, 1, 1)])) == [name]


async def test_java_tells_the_same_of_voters_and_observers(dynamic: Kafka) -> None:
    servers = dynamic.bootstrap_servers
    program = Toolbox(dynamic.options.release).program(PROGRAM)
    async with Admin(servers) as admin:
        quorum = await until(
            admin.describe_metadata_quorum, lambda it: roles(it) == ([1], [2])
        )
        before = await growing(admin)
        output = await program.run(servers)
        assert output.returncode == 0, output.stderr
        check_growing(before, output.lines, await growing(admin))
    java = [line for line in output.lines if not line.startswith("growing")]
    assert sorted(quorum_facts(quorum)) == sorted(java)


async def test_voters_become_dynamic() -> None:
    """By an update of a feature, which nothing takes back."""
    async with Kafka(brokers=2) as kafka, Admin(kafka.bootstrap_servers) as admin:
        quorum = await admin.describe_metadata_quorum()
        assert roles(quorum) == ([1, 2], [])
        assert "kraft.version" not in (await admin.describe_features()).finalized
        with pytest.raises(BrokerError) as caught:
            await admin.remove_raft_voter(1, uuid4())
        assert caught.value.code == E.UNSUPPORTED_VERSION

        async def is_updated(*, validate_only: bool = False) -> bool:
            update = {"kraft.version": FeatureUpdate(1)}
            try:
                await admin.update_features(update, validate_only=validate_only)
            except BrokerError as error:
                # The leader learns a moment later what the other voter supports.
                if "not all of the voters support it" not in str(error):
                    raise
                return False
            return True

        await until(lambda: is_updated(validate_only=True), bool)
        assert "kraft.version" not in (await admin.describe_features()).finalized
        await until(is_updated, bool)
        await until(admin.describe_features, lambda it: "kraft.version" in it.finalized)
        quorum = await admin.describe_metadata_quorum()
        other = next(it for it in quorum.voters if it.node_id != quorum.leader)
        assert other.directory_id is not None
        await admin.remove_raft_voter(other.node_id, other.directory_id)
        wanted = [quorum.leader], [other.node_id]
        await until(admin.describe_metadata_quorum, lambda it: roles(it) == wanted)
        down = FeatureUpdate(0, FeatureUpgradeType.SAFE_DOWNGRADE)
        with pytest.raises(BrokerError, match="Can't downgrade") as caught:
            await admin.update_features({"kraft.version": down})
        assert caught.value.code == E.INVALID_UPDATE_VERSION


# ---- beside Java's -------------------------------------------------------------------


def fact(*parts: object) -> str:
    return "\t".join("null" if part is None else str(part) for part in parts)


def milliseconds(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


async def facts_of(admin: Admin, owner: Admin) -> list[str]:
    """What there is to tell, but for times that change while Java asks."""
    facts = [
        fact(
            *("acl", it.resource_type, it.resource_name, it.pattern_type),
            *(it.principal, it.host, it.operation, it.permission),
        )
        for it in await admin.describe_acls()
    ]
    for entity, quotas in (await admin.describe_client_quotas()).items():
        parts = {"user": entity.user, "client-id": entity.client_id, "ip": entity.ip}
        names = [
            f"{kind}={'default' if name is QuotaName.DEFAULT else name}"
            for kind, name in sorted(parts.items())
            if name is not None
        ]
        facts += [
            fact("quota", ";".join(names), key, value) for key, value in quotas.items()
        ]
    for user, found in (await admin.describe_user_scram_credentials()).items():
        facts += [fact("user", user, it.mechanism.name, it.iterations) for it in found]
    facts += [
        fact(
            *("token", it.token_id, it.password, it.owner, it.requester),
            *map(milliseconds, (it.issue_time, it.expiry_time, it.max_time)),
            ";".join(it.renewers),
        )
        for it in await owner.describe_delegation_token()
    ]
    cluster = await admin.describe_cluster(
        include_authorized_operations=True, include_fenced_brokers=True
    )
    operations = ";".join(sorted(cluster.authorized_operations or ()))
    facts.append(fact("cluster", cluster.cluster_id, cluster.controller, operations))
    facts += [
        fact("node", *astuple(it), str(it.node_id in cluster.fenced).lower())
        for it in cluster.brokers
    ]
    features = await admin.describe_features()
    for kind, levels in (
        ("finalized", features.finalized),
        ("supported", features.supported),
    ):
        facts += [
            fact(kind, name, it.min_level, it.max_level) for name, it in levels.items()
        ]
    return facts + quorum_facts(await admin.describe_metadata_quorum())


def java_id(directory: UUID | None) -> str:
    """The id of a directory as Java prints it."""
    return base64.urlsafe_b64encode((directory or UUID(int=0)).bytes).decode()[:22]


def quorum_facts(quorum: QuorumDescription) -> list[str]:
    facts = [fact("quorum", quorum.leader, quorum.leader_epoch)]
    for what, replicas in (("voter", quorum.voters), ("observer", quorum.observers)):
        facts += [fact(what, it.node_id, java_id(it.directory_id)) for it in replicas]
    facts += [
        fact("endpoint", node, *astuple(it))
        for node, found in quorum.endpoints.items()
        for it in found
    ]
    return facts


async def growing(admin: Admin) -> dict[str, int]:
    """What grows in the quorum while one asks, by its name."""
    quorum = await admin.describe_metadata_quorum()
    found: dict[str, int | None] = {"high watermark": quorum.high_watermark}
    for it in (*quorum.voters, *quorum.observers):
        found |= {
            f"end of {it.node_id}": it.log_end_offset,
            f"fetch of {it.node_id}": milliseconds(it.last_fetch_time),
            f"caught up {it.node_id}": milliseconds(it.last_caught_up_time),
        }
    return {name: value for name, value in found.items() if value is not None}


async def epoch_of(admin: Admin) -> dict[str, int]:
    """The epoch of the features, which is an offset in the log of the metadata."""
    epoch = (await admin.describe_features()).finalized_epoch
    assert epoch is not None
    return {"features": epoch}


def check_growing(
    before: dict[str, int], lines: list[str], after: dict[str, int]
) -> None:
    """Check that what Java was told lies between what we were told."""
    theirs = {
        name: int(number)
        for _, name, number in (
            line.split("\t") for line in lines if line.startswith("growing")
        )
    }
    assert before.keys() == theirs.keys() == after.keys()
    assert all(before[name] <= theirs[name] <= after[name] for name in theirs)


async def test_it_tells_what_javas_tells(guarded: Kafka, admin: Admin) -> None:
    rights = [
        AclBinding(AclResourceType.TOPIC, "java", "User:leo", AclOperation.READ),
        AclBinding(
            AclResourceType.TRANSACTIONAL_ID,
            "java-",
            "User:*",
            AclOperation.TWO_PHASE_COMMIT,
            AclPermission.DENY,
            "10.0.0.1",
            AclPatternType.PREFIXED,
        ),
    ]
    await admin.create_acls(rights)
    quotas = {
        QuotaEntity(user="leo", client_id=QuotaName.DEFAULT): {
            "producer_byte_rate": 1_000.0
        },
        QuotaEntity(ip=QuotaName.DEFAULT): {"connection_creation_rate": 7.0},
    }
    await admin.alter_client_quotas(quotas)
    login = by_password(guarded, "alice", "a")
    async with Admin(**login) as alice:
        await alice.create_delegation_token(renewers=["User:bob"])
        await until(alice.describe_delegation_token, len)
        await until(admin.describe_client_quotas, lambda it: len(it) == 2)
        await until(admin.describe_acls, lambda it: len(it) == 2)
        before = await growing(admin) | await epoch_of(admin)
        ours = await facts_of(admin, alice)
        program = Toolbox(guarded.options.release).program(PROGRAM)
        output = await program.run(
            guarded.bootstrap_servers, login["bootstrap_servers"], "alice", "a"
        )
    assert output.returncode == 0, output.stderr
    after = await growing(admin) | await epoch_of(admin)
    check_growing(before, output.lines, after)
    java = [line for line in output.lines if not line.startswith("growing")]
    assert sorted(ours) == sorted(java)


@pytest.mark.kafka_versions("4.4+")
async def test_a_controller_that_is_gone_is_forgotten(
    real_kafka_cluster: Kafka,
) -> None:
    kafka = real_kafka_cluster
    where = kafka.bootstrap_controllers
    async with (
        Admin(kafka.bootstrap_servers) as admin,
        Admin(bootstrap_controllers=where) as direct,
    ):

        async def controllers() -> list[int]:
            return [it.node_id for it in (await direct.describe_cluster()).brokers]

        leader = (await admin.describe_metadata_quorum()).leader
        assert leader is not None
        with pytest.raises(BrokerError, match="itself while it is active"):
            await admin.unregister_controller(leader)
        gone = next(it for it in kafka.node_ids if it != leader)
        await kafka.kill(gone)
        assert await controllers() == kafka.node_ids
        await admin.unregister_controller(gone)
        await until(controllers, lambda found: gone not in found)
        with pytest.raises(BrokerError, match=f"ID {gone} is not") as caught:
            await direct.unregister_controller(gone)
        assert caught.value.code == E.CONTROLLER_ID_NOT_REGISTERED
        await kafka.restart(gone)
        await until(controllers, lambda found: gone in found)
