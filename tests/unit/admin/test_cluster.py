"""The cluster, its features and its controllers, against scripted brokers."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from kafkaio.admin import (
    AclOperation,
    FeatureLevels,
    FeatureUpdate,
    FeatureUpgradeType,
    QuorumReplica,
    RaftEndpoint,
)
from kafkaio.errors import (
    AdminErrors,
    ArgumentTypeError,
    ArgumentValueError,
    BrokerError,
    ProtocolError,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import (
    add_raft_voter as add_api,
    api_versions as versions_api,
    describe_cluster as cluster_api,
    describe_quorum as quorum_api,
    metadata as metadata_api,
    remove_raft_voter as remove_api,
    unregister_broker as unregister_api,
    unregister_controller as controller_api,
    update_features as update_api,
)
from kafkaio.types import Broker
from tests.fakes.broker import DEFAULT, FakeCluster, FakeNode, Outcome
from tests.unit.admin.support import admin_of

ONE = UUID(int=1)
PLACE = RaftEndpoint("CONTROLLER", "c1", 9093)


# ---- describe_cluster ----------------------------------------------------------------


async def test_the_cluster_is_described(cluster: FakeCluster) -> None:
    broker = cluster_api.DescribeClusterBroker
    answer = cluster_api.DescribeClusterResponse(
        cluster_id="here",
        controller_id=2,
        brokers=[
            broker(broker_id=2, host="b", port=2, rack="r"),
            broker(broker_id=1, host="a", port=1, is_fenced=True),
        ],
        cluster_authorized_operations=1 << 8 | 1 << 4,
    )
    cluster.on(ApiKey.DESCRIBE_CLUSTER, answer)
    async with admin_of(cluster) as admin:
        found = await admin.describe_cluster(
            include_authorized_operations=True, include_fenced_brokers=True
        )
        plain = await admin.describe_cluster()
    assert (found.cluster_id, found.controller) == ("here", 2)
    assert found.brokers == (Broker(1, "a", 1), Broker(2, "b", 2, "r"))
    assert found.fenced == {1}
    assert found.authorized_operations == {AclOperation.DESCRIBE, AclOperation.WRITE}
    assert plain.authorized_operations is None
    first, second = cluster.requests(cluster_api.DescribeClusterRequest)
    assert first.include_fenced_brokers
    assert first.include_cluster_authorized_operations
    assert first.endpoint_type == second.endpoint_type == 1
    assert not second.include_fenced_brokers


async def test_old_brokers_describe_the_cluster_by_metadata(
    cluster: FakeCluster,
) -> None:
    for node in cluster.nodes.values():
        del node.versions[ApiKey.DESCRIBE_CLUSTER]
        node.versions[ApiKey.METADATA] = (0, 7)
    async with admin_of(cluster) as admin:
        found = await admin.describe_cluster(include_authorized_operations=True)
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 4\.0"):
            await admin.describe_cluster(include_fenced_brokers=True)
    assert found.cluster_id == "fake-cluster"
    assert found.controller == 0
    assert found.authorized_operations is None
    assert [it.node_id for it in found.brokers] == [0, 1, 2]
    assert cluster.requests(metadata_api.MetadataRequest)[-1].topics == []


async def test_brokers_that_are_not_alive_need_a_newer_broker(
    cluster: FakeCluster,
) -> None:
    for node in cluster.nodes.values():
        node.versions[ApiKey.DESCRIBE_CLUSTER] = (0, 1)
    async with admin_of(cluster) as admin:
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 4\.0 or later"):
            await admin.describe_cluster(include_fenced_brokers=True)


# ---- features ------------------------------------------------------------------------


async def test_features_of_one_broker(cluster: FakeCluster) -> None:
    def versions(
        node: FakeNode, header: object, request: versions_api.ApiVersionsRequest
    ) -> Outcome:
        del header
        answer = versions_api.ApiVersionsResponse(
            api_keys=[
                versions_api.ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in node.versions.items()
            ],
            supported_features=[
                versions_api.SupportedFeatureKey(
                    name="metadata.version", min_version=1, max_version=node.node_id
                )
            ],
            finalized_features_epoch=7,
            finalized_features=[
                versions_api.FinalizedFeatureKey(
                    name="metadata.version", min_version_level=1, max_version_level=5
                )
            ],
        )
        return answer if request.client_software_name == "kafkaio" else DEFAULT

    cluster.on(ApiKey.API_VERSIONS, versions)
    async with admin_of(cluster) as admin:
        found = await admin.describe_features(node_id=2)
        assert (await admin.describe_features()).finalized == found.finalized
        with pytest.raises(ArgumentValueError, match="must not be negative"):
            await admin.describe_features(node_id=-1)
    assert found.finalized == {"metadata.version": FeatureLevels(1, 5)}
    assert found.finalized_epoch == 7
    assert found.supported == {"metadata.version": FeatureLevels(1, 2)}


async def test_features_of_an_old_broker(cluster: FakeCluster) -> None:
    for node in cluster.nodes.values():
        node.versions[ApiKey.API_VERSIONS] = (0, 2)
    async with admin_of(cluster) as admin:
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 2\.7"):
            await admin.describe_features()


UPDATES = {
    "a": FeatureUpdate(3),
    "b": FeatureUpdate(0, FeatureUpgradeType.UNSAFE_DOWNGRADE),
}


async def test_all_features_are_updated_or_none(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.UPDATE_FEATURES, update_api.UpdateFeaturesResponse())
    refused = update_api.UpdateFeaturesResponse(
        error_code=E.INVALID_UPDATE_VERSION, error_message="a is not supported"
    )
    cluster.on(ApiKey.UPDATE_FEATURES, refused, times=1)
    async with admin_of(cluster) as admin:
        with pytest.raises(BrokerError, match="features a, b: a is not supported"):
            await admin.update_features(UPDATES, validate_only=True)
        await admin.update_features(UPDATES)
        await admin.update_features({})
    first, second = cluster.requests(update_api.UpdateFeaturesRequest)
    assert (first.validate_only, second.validate_only) == (True, False)
    assert [
        (it.feature, it.max_version_level, it.upgrade_type)
        for it in second.feature_updates
    ] == [("a", 3, 1), ("b", 0, 3)]


async def test_older_brokers_answer_for_each_feature(cluster: FakeCluster) -> None:
    for node in cluster.nodes.values():
        node.versions[ApiKey.UPDATE_FEATURES] = (0, 0)
    result = update_api.UpdatableFeatureResult
    code = E.FEATURE_UPDATE_FAILED
    both = [result(feature=it, error_code=code, error_message="no") for it in "ab"]
    answer = update_api.UpdateFeaturesResponse()
    cluster.on(ApiKey.UPDATE_FEATURES, answer)
    downgrade = FeatureUpdate(0, FeatureUpgradeType.SAFE_DOWNGRADE)
    updates = {"a": FeatureUpdate(3), "b": downgrade}
    async with admin_of(cluster) as admin:
        with pytest.raises(UnsupportedVersion, match=r"needs Kafka 3\.3 or later"):
            await admin.update_features(UPDATES)
        await admin.update_features(updates)
        (request,) = cluster.requests(update_api.UpdateFeaturesRequest)
        assert [it.allow_downgrade for it in request.feature_updates] == [False, True]
        answer.results = both
        with pytest.raises(AdminErrors, match="2 of 2 failed"):
            await admin.update_features(updates)
        answer.results = both[:1]
        with pytest.raises(BrokerError, match="update feature a: no") as caught:
            await admin.update_features(updates)
        assert caught.value.results == {"b": None}
        answer.results = [result(feature="z")]
        with pytest.raises(ProtocolError, match="'z', which was not asked for"):
            await admin.update_features(updates)


@pytest.mark.parametrize(
    ("updates", "error", "message"),
    [
        (["a"], ArgumentTypeError, "updates must be a mapping"),
        ({"a": 3}, ArgumentTypeError, "FeatureUpdate by name, not 'a': int"),
        ({"a": FeatureUpdate(0)}, ArgumentValueError, "that is a downgrade"),
        ({"a": FeatureUpdate(-1)}, ArgumentValueError, "'a' cannot have level -1"),
        ({"": FeatureUpdate(1)}, ArgumentValueError, "'' cannot have level 1"),
        ({"a": FeatureUpdate("1")}, ArgumentTypeError, "must be int, not str"),  # type: ignore[arg-type]
        (
            {"a": FeatureUpdate(1, "UPGRAD")},  # type: ignore[arg-type]
            ArgumentValueError,
            "did you mean 'UPGRADE'",
        ),
    ],
)
async def test_updates_that_are_impossible(
    cluster: FakeCluster,
    updates: dict[str, FeatureUpdate],
    error: type[Exception],
    message: str,
) -> None:
    async with admin_of(cluster) as admin:
        with pytest.raises(error, match=message):
            await admin.update_features(updates)
    assert not cluster.requests(update_api.UpdateFeaturesRequest)


# ---- the quorum ----------------------------------------------------------------------


def quorum(
    name: str = "__cluster_metadata", code: int = 0
) -> quorum_api.DescribeQuorumResponse:
    state = quorum_api.ReplicaState
    partition = quorum_api.DescribeQuorumResponsePartitionData(
        error_code=code,
        error_message="why" if code else None,
        leader_id=1,
        leader_epoch=4,
        high_watermark=99,
        current_voters=[
            state(
                replica_id=1,
                replica_directory_id=ONE,
                log_end_offset=100,
                last_fetch_timestamp=1_000,
                last_caught_up_timestamp=2_000,
            )
        ],
        observers=[state(replica_id=5, log_end_offset=-1), state(replica_id=4)],
    )
    return quorum_api.DescribeQuorumResponse(
        topics=[
            quorum_api.DescribeQuorumResponseTopicData(
                topic_name=name, partitions=[partition]
            )
        ],
        nodes=[
            quorum_api.Node(
                node_id=1,
                listeners=[
                    quorum_api.Listener(name="CONTROLLER", host="c1", port=9093)
                ],
            )
        ],
    )


async def test_the_controllers_are_described(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.DESCRIBE_QUORUM, quorum())
    async with admin_of(cluster) as admin:
        found = await admin.describe_metadata_quorum()
    assert (found.leader, found.leader_epoch, found.high_watermark) == (1, 4, 99)
    assert found.voters == (
        QuorumReplica(
            node_id=1,
            directory_id=ONE,
            log_end_offset=100,
            last_fetch_time=datetime.fromtimestamp(1, UTC),
            last_caught_up_time=datetime.fromtimestamp(2, UTC),
        ),
    )
    assert found.observers == (
        QuorumReplica(4, None, 0, None, None),
        QuorumReplica(5, None, None, None, None),
    )
    assert found.endpoints == {1: (PLACE,)}
    (request,) = cluster.requests(quorum_api.DescribeQuorumRequest)
    (topic,) = request.topics
    assert topic.topic_name == "__cluster_metadata"
    assert [it.partition_index for it in topic.partitions] == [0]


async def test_errors_of_the_quorum(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.DESCRIBE_QUORUM, quorum())
    cluster.on(ApiKey.DESCRIBE_QUORUM, quorum("other"), times=1)
    cluster.on(ApiKey.DESCRIBE_QUORUM, quorum(code=E.INVALID_REQUEST), times=1)
    denied = quorum_api.DescribeQuorumResponse(
        error_code=E.CLUSTER_AUTHORIZATION_FAILED
    )
    cluster.on(ApiKey.DESCRIBE_QUORUM, denied, times=1)
    elects = quorum(code=E.NOT_LEADER_OR_FOLLOWER)
    async with admin_of(cluster) as admin:
        with pytest.raises(BrokerError, match="needs DESCRIBE on the cluster"):
            await admin.describe_metadata_quorum()
        with pytest.raises(BrokerError, match="the quorum of controllers: why"):
            await admin.describe_metadata_quorum()
        with pytest.raises(ProtocolError, match=r"for \[\('other', 0\)\], not __clu"):
            await admin.describe_metadata_quorum()
        # It waits for the end of an election.
        cluster.on(ApiKey.DESCRIBE_QUORUM, elects, times=2)
        assert (await admin.describe_metadata_quorum()).leader == 1
    assert len(cluster.requests(quorum_api.DescribeQuorumRequest)) == 6


async def test_voters_come_and_go(cluster: FakeCluster) -> None:
    cluster.controller_id = 1
    cluster.on(ApiKey.ADD_RAFT_VOTER, add_api.AddRaftVoterResponse())
    cluster.on(
        ApiKey.REMOVE_RAFT_VOTER,
        remove_api.RemoveRaftVoterResponse(
            error_code=E.VOTER_NOT_FOUND, error_message="no such voter"
        ),
    )
    async with admin_of(cluster) as admin:
        await admin.add_raft_voter(3, ONE, [PLACE], cluster_id="here", timeout=10)
        with pytest.raises(BrokerError, match="controller 3 from the quorum: no such"):
            await admin.remove_raft_voter(3, ONE)
    (added,) = cluster.requests(add_api.AddRaftVoterRequest)
    assert 9_000 < added.timeout_ms <= 10_000
    added.timeout_ms = 0
    assert added == add_api.AddRaftVoterRequest(
        cluster_id="here",
        voter_id=3,
        voter_directory_id=ONE,
        listeners=[add_api.Listener(name="CONTROLLER", host="c1", port=9093)],
    )
    (removed,) = cluster.requests(remove_api.RemoveRaftVoterRequest)
    assert removed == remove_api.RemoveRaftVoterRequest(
        cluster_id=None, voter_id=3, voter_directory_id=ONE
    )
    asked = [it for it in cluster.log if "RAFT" in it.api.name]
    assert {it.node_id for it in asked} == {1}


async def test_a_broker_is_unregistered(cluster: FakeCluster) -> None:
    cluster.on(ApiKey.UNREGISTER_BROKER, unregister_api.UnregisterBrokerResponse())
    lost = unregister_api.UnregisterBrokerResponse(
        error_code=E.BROKER_ID_NOT_REGISTERED, error_message="it is not registered"
    )
    async with admin_of(cluster) as admin:
        await admin.unregister_broker(7)
        cluster.on(ApiKey.UNREGISTER_BROKER, lost)
        with pytest.raises(BrokerError, match="unregister broker 7: it is not"):
            await admin.unregister_broker(7)
    requests = cluster.requests(unregister_api.UnregisterBrokerRequest)
    assert [it.broker_id for it in requests] == [7, 7]


async def test_a_controller_is_unregistered(cluster: FakeCluster) -> None:
    cluster.on(
        ApiKey.UNREGISTER_CONTROLLER, controller_api.UnregisterControllerResponse()
    )
    lost = controller_api.UnregisterControllerResponse(
        error_code=E.CONTROLLER_ID_NOT_REGISTERED, error_message="it is not registered"
    )
    async with admin_of(cluster) as admin:
        await admin.unregister_controller(7)
        cluster.on(ApiKey.UNREGISTER_CONTROLLER, lost)
        with pytest.raises(BrokerError, match="unregister controller 7: it is not"):
            await admin.unregister_controller(7)
        with pytest.raises(ArgumentValueError, match="node_id"):
            await admin.unregister_controller(-1)
    requests = cluster.requests(controller_api.UnregisterControllerRequest)
    assert [it.controller_id for it in requests] == [7, 7]


async def test_arguments_of_the_wrong_kind(cluster: FakeCluster) -> None:
    async with admin_of(cluster) as admin:
        with pytest.raises(ArgumentTypeError, match="node_id must be int, not str"):
            await admin.unregister_broker("7")  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="directory_id must be UUID"):
            await admin.remove_raft_voter(1, "x")  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="collection of RaftEndpoint"):
            await admin.add_raft_voter(1, ONE, ["c1:9093"])  # type: ignore[list-item]
        with pytest.raises(ArgumentValueError, match="must name a listener"):
            await admin.add_raft_voter(1, ONE, [])
        with pytest.raises(ArgumentValueError, match="must not be negative"):
            await admin.add_raft_voter(-1, ONE, [PLACE])
