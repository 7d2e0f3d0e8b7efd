"""The operations of `kafkaio.Admin` on the cluster: features, controllers, brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from kafkaio._arguments import type_name
from kafkaio._client.destinations import ANY, Broker, Controller
from kafkaio._client.fanout import Results, Terms
from kafkaio._machines.api_versions import software_version
from kafkaio._version import __version__
from kafkaio.admin._asking import AdminCluster, items_of, outcome
from kafkaio.admin._single import ask_one, known_of, reason, time_of
from kafkaio.admin._types import (
    ClusterDescription,
    FeatureLevels,
    FeaturesDescription,
    FeatureUpdate,
    FeatureUpgradeType,
    QuorumDescription,
    QuorumReplica,
    RaftEndpoint,
    operations_of,
)
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ProtocolError,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages import (
    add_raft_voter as add_api,
    api_versions as versions_api,
    describe_cluster as cluster_api,
    describe_quorum as quorum_api,
    metadata as metadata_api,
    remove_raft_voter as remove_api,
    unregister_broker as unregister_api,
    update_features as update_api,
)
from kafkaio.types import Broker as Endpoint

_BROKERS, _CONTROLLERS = 1, 2
#: The version of DescribeCluster that has brokers that are not alive, that of
#: UpdateFeatures that has types of upgrades and validates only, and that of
#: ApiVersions that has features.
_WITH_FENCED, _WITH_UPGRADE_TYPES, _WITH_FEATURES = 2, 1, 3
#: The version of Metadata that tells what a client may do with the cluster.
_WITH_OPERATIONS = 8
#: The version of DescribeQuorum that has directories and listeners.
_WITH_DIRECTORIES = 2
#: The topic of the cluster's metadata, which has one partition.
_METADATA = "__cluster_metadata"
_UPGRADE_TYPES: Final = {
    FeatureUpgradeType.UPGRADE: 1,
    FeatureUpgradeType.SAFE_DOWNGRADE: 2,
    FeatureUpgradeType.UNSAFE_DOWNGRADE: 3,
}


class ClusterOperations:
    """The operations on the cluster, each until a time of the loop's clock.

    Args:
        cluster: performs them.
    """

    def __init__(self, cluster: AdminCluster) -> None:
        self._cluster = cluster

    # ---- what it is ------------------------------------------------------------------

    async def described(
        self, deadline: float, *, with_operations: bool, with_fenced: bool
    ) -> ClusterDescription:
        """Describe the cluster, as `kafkaio.Admin` documents it."""
        asks_controllers = self._cluster.uses_controllers

        def build(terms: Terms) -> cluster_api.DescribeClusterRequest:
            if with_fenced and terms.version < _WITH_FENCED:
                raise UnsupportedVersion("it lists no brokers that are not alive")
            return cluster_api.DescribeClusterRequest(
                include_cluster_authorized_operations=with_operations,
                endpoint_type=_CONTROLLERS if asks_controllers else _BROKERS,
                include_fenced_brokers=with_fenced,
            )

        try:
            answer = await ask_one(
                self._cluster,
                ("describe", "the cluster"),
                cluster_api.DescribeClusterRequest,
                build,
                lambda it: (it.error_code, it.error_message),
                to=ANY,
                deadline=deadline,
                since="4.0" if with_fenced else "2.8",
            )
        except UnsupportedVersion:
            if with_fenced or asks_controllers:
                raise
            return await self._by_metadata(deadline, with_operations=with_operations)
        return ClusterDescription(
            cluster_id=answer.cluster_id,
            controller=answer.controller_id if answer.controller_id >= 0 else None,
            brokers=tuple(
                Endpoint(it.broker_id, it.host, it.port, it.rack)
                for it in sorted(answer.brokers, key=lambda each: each.broker_id)
            ),
            fenced=frozenset(it.broker_id for it in answer.brokers if it.is_fenced),
            authorized_operations=operations_of(answer.cluster_authorized_operations)
            if with_operations
            else None,
        )

    async def _by_metadata(
        self, deadline: float, *, with_operations: bool
    ) -> ClusterDescription:
        # Before Kafka 2.8.
        def build(terms: Terms) -> metadata_api.MetadataRequest:
            return metadata_api.MetadataRequest(
                topics=[],  # none; None stands for all
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=with_operations
                and terms.version >= _WITH_OPERATIONS,
            )

        answer = await ask_one(
            self._cluster,
            ("describe", "the cluster"),
            metadata_api.MetadataRequest,
            build,
            lambda it: (it.error_code, None),
            to=ANY,
            deadline=deadline,
            since="2.1",
        )
        return ClusterDescription(
            cluster_id=answer.cluster_id,
            controller=answer.controller_id if answer.controller_id >= 0 else None,
            brokers=tuple(
                Endpoint(it.node_id, it.host, it.port, it.rack)
                for it in sorted(answer.brokers, key=lambda each: each.node_id)
            ),
            authorized_operations=operations_of(answer.cluster_authorized_operations)
            if with_operations
            else None,
        )

    # ---- features --------------------------------------------------------------------

    async def features(
        self, node_id: int | None, deadline: float
    ) -> FeaturesDescription:
        """Describe features, as `kafkaio.Admin` documents it."""

        def build(terms: Terms) -> versions_api.ApiVersionsRequest:
            if terms.version < _WITH_FEATURES:
                raise UnsupportedVersion("it tells no features")
            return versions_api.ApiVersionsRequest(
                client_software_name="kafkaio",
                client_software_version=software_version(__version__),
            )

        answer = await ask_one(
            self._cluster,
            ("describe", "the features of the cluster"),
            versions_api.ApiVersionsRequest,
            build,
            lambda it: (it.error_code, None),
            to=ANY if node_id is None else Broker(node_id),
            deadline=deadline,
            since="2.7",
        )
        epoch = answer.finalized_features_epoch
        return FeaturesDescription(
            finalized={
                it.name: FeatureLevels(it.min_version_level, it.max_version_level)
                for it in answer.finalized_features
            },
            finalized_epoch=epoch if epoch >= 0 else None,
            supported={
                it.name: FeatureLevels(it.min_version, it.max_version)
                for it in answer.supported_features
            },
        )

    async def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        deadline: float,
        *,
        validate_only: bool,
    ) -> None:
        """Put levels in force, as `kafkaio.Admin` documents it."""
        types = {each.upgrade_type for each in updates.values()}
        needs_types = validate_only or FeatureUpgradeType.UNSAFE_DOWNGRADE in types

        def build(terms: Terms) -> update_api.UpdateFeaturesRequest:
            is_old = terms.version < _WITH_UPGRADE_TYPES
            if is_old and needs_types:
                raise UnsupportedVersion(
                    "it does not validate only, and knows no unsafe downgrades"
                )
            return update_api.UpdateFeaturesRequest(
                timeout_ms=terms.timeout_ms,
                feature_updates=[
                    update_api.FeatureUpdateKey(
                        feature=name,
                        max_version_level=each.max_level,
                        allow_downgrade=is_old
                        and each.upgrade_type is not FeatureUpgradeType.UPGRADE,
                        upgrade_type=1 if is_old else _UPGRADE_TYPES[each.upgrade_type],
                    )
                    for name, each in updates.items()
                ],
                validate_only=validate_only,
            )

        answer = await ask_one(
            self._cluster,
            ("update", f"the features {', '.join(updates)}"),
            update_api.UpdateFeaturesRequest,
            build,
            lambda it: (it.error_code, it.error_message),
            to=Controller,
            deadline=deadline,
            since="3.3" if needs_types else "2.7",
        )
        outcome("update the features", updates, _each_feature(answer, updates))

    # ---- controllers and brokers -----------------------------------------------------

    async def quorum(self, deadline: float) -> QuorumDescription:
        """Describe the controllers, as `kafkaio.Admin` documents it."""
        versions: list[int] = []

        def build(terms: Terms) -> quorum_api.DescribeQuorumRequest:
            versions.append(terms.version)
            return quorum_api.DescribeQuorumRequest(
                topics=[
                    quorum_api.DescribeQuorumRequestTopicData(
                        topic_name=_METADATA,
                        partitions=[
                            quorum_api.DescribeQuorumRequestPartitionData(
                                partition_index=0
                            )
                        ],
                    )
                ]
            )

        answer = await ask_one(
            self._cluster,
            ("describe", "the quorum of controllers"),
            quorum_api.DescribeQuorumRequest,
            build,
            _quorum_error,
            to=ANY,
            deadline=deadline,
            since="3.3 (KRaft)",
        )
        it = answer.topics[0].partitions[0]
        has_directories = versions[-1] >= _WITH_DIRECTORIES
        return QuorumDescription(
            leader=it.leader_id if it.leader_id >= 0 else None,
            leader_epoch=it.leader_epoch,
            high_watermark=it.high_watermark,
            voters=_replicas(it.current_voters),
            observers=_replicas(it.observers),
            endpoints={
                node.node_id: tuple(
                    RaftEndpoint(each.name, each.host, each.port)
                    for each in node.listeners
                )
                for node in answer.nodes
            }
            if has_directories
            else {},
        )

    async def add_voter(
        self,
        node_id: int,
        directory_id: UUID,
        endpoints: Sequence[RaftEndpoint],
        cluster_id: str | None,
        deadline: float,
    ) -> None:
        """Add a controller to the quorum, as `kafkaio.Admin` documents it."""
        await ask_one(
            self._cluster,
            ("add", f"controller {node_id} to the quorum"),
            add_api.AddRaftVoterRequest,
            lambda terms: add_api.AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=terms.timeout_ms,
                voter_id=node_id,
                voter_directory_id=directory_id,
                listeners=[
                    add_api.Listener(name=it.listener, host=it.host, port=it.port)
                    for it in endpoints
                ],
            ),
            lambda it: (it.error_code, it.error_message),
            to=Controller,
            deadline=deadline,
            since="3.9 (KRaft)",
        )

    async def remove_voter(
        self, node_id: int, directory_id: UUID, cluster_id: str | None, deadline: float
    ) -> None:
        """Remove a controller from the quorum, as `kafkaio.Admin` documents it."""
        request = remove_api.RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=node_id, voter_directory_id=directory_id
        )
        await ask_one(
            self._cluster,
            ("remove", f"controller {node_id} from the quorum"),
            remove_api.RemoveRaftVoterRequest,
            lambda _: request,
            lambda it: (it.error_code, it.error_message),
            to=Controller,
            deadline=deadline,
            since="3.9 (KRaft)",
        )

    async def unregister(self, node_id: int, deadline: float) -> None:
        """Forget a broker, as `kafkaio.Admin` documents it."""
        request = unregister_api.UnregisterBrokerRequest(broker_id=node_id)
        await ask_one(
            self._cluster,
            ("unregister", f"broker {node_id}"),
            unregister_api.UnregisterBrokerRequest,
            lambda _: request,
            lambda it: (it.error_code, it.error_message),
            to=Controller,
            deadline=deadline,
            since="2.8 (KRaft)",
        )


def _each_feature(
    answer: update_api.UpdateFeaturesResponse, updates: Mapping[str, FeatureUpdate]
) -> Results[str, None]:
    """Read the results of single features, which there are up to version 1."""
    results = Results[str, None]()
    for it in answer.results:
        if it.feature not in updates:
            raise ProtocolError(
                f"update features: the answer has {it.feature!r}, which was not asked "
                "for"
            )
        if it.error_code:
            why = reason(it.error_code, it.error_message)
            results.failed[it.feature] = broker_error(
                it.error_code,
                f"update feature {it.feature}{f': {why}' if why else ''}",
                api=ApiKey.UPDATE_FEATURES,
            )
    good = [name for name in updates if name not in results.failed]
    results.found.update(dict.fromkeys(good))
    return results


def _quorum_error(answer: quorum_api.DescribeQuorumResponse) -> tuple[int, str | None]:
    if answer.error_code:
        return answer.error_code, answer.error_message
    partitions = [
        (topic.topic_name, it) for topic in answer.topics for it in topic.partitions
    ]
    named = [(name, it.partition_index) for name, it in partitions]
    if named != [(_METADATA, 0)]:
        raise ProtocolError(
            f"describe the quorum: the answer is for {named}, not {_METADATA}-0"
        )
    ((_, it),) = partitions
    return it.error_code, it.error_message


def _replicas(states: Iterable[quorum_api.ReplicaState]) -> tuple[QuorumReplica, ...]:
    return tuple(
        QuorumReplica(
            node_id=it.replica_id,
            directory_id=_directory(it.replica_directory_id),
            log_end_offset=it.log_end_offset if it.log_end_offset >= 0 else None,
            last_fetch_time=_moment(it.last_fetch_timestamp),
            last_caught_up_time=_moment(it.last_caught_up_timestamp),
        )
        for it in sorted(states, key=lambda each: each.replica_id)
    )


def _directory(directory_id: UUID) -> UUID | None:
    return directory_id if directory_id != ZERO_UUID else None


def _moment(milliseconds: int) -> datetime | None:
    return time_of(milliseconds) if milliseconds >= 0 else None


def check_updates(updates: Mapping[str, FeatureUpdate]) -> dict[str, FeatureUpdate]:
    """Check levels of features.

    Raises:
        ArgumentTypeError: they are no mapping of names to `FeatureUpdate`.
        ArgumentValueError: a level is impossible.
    """
    if not isinstance(updates, Mapping):
        raise ArgumentTypeError(
            f"updates must be a mapping of names to FeatureUpdate, not "
            f"{type_name(updates)}"
        )
    checked: dict[str, FeatureUpdate] = {}
    given: Mapping[object, object] = dict(updates.items())
    for name, each in given.items():
        if not isinstance(name, str) or not isinstance(each, FeatureUpdate):
            raise ArgumentTypeError(
                f"updates must have FeatureUpdate by name, not {name!r}: "
                f"{type_name(each)}"
            )
        kind = known_of("upgrade_type", FeatureUpgradeType, each.upgrade_type)
        if type(each.max_level) is not int:
            raise ArgumentTypeError(
                f"max_level of {name!r} must be int, not {type_name(each.max_level)}"
            )
        if not name or not 0 <= each.max_level < 1 << 15:
            raise ArgumentValueError(f"there is no level {each.max_level} of {name!r}")
        if not each.max_level and kind is FeatureUpgradeType.UPGRADE:
            raise ArgumentValueError(
                f"level 0 of {name!r} switches it off: that is a downgrade"
            )
        checked[name] = FeatureUpdate(each.max_level, kind)
    return checked


def check_node(node_id: object, directory_id: object = ZERO_UUID) -> None:
    """Check the node id of a broker or controller, and the id of its directory.

    Raises:
        ArgumentTypeError: one has the wrong type.
        ArgumentValueError: the node id is negative.
    """
    if type(node_id) is not int:
        raise ArgumentTypeError(f"node_id must be int, not {type_name(node_id)}")
    if node_id < 0:
        raise ArgumentValueError(f"node_id must not be negative: {node_id}")
    if not isinstance(directory_id, UUID):
        raise ArgumentTypeError(
            f"directory_id must be UUID, not {type_name(directory_id)}"
        )


def check_endpoints(endpoints: Iterable[RaftEndpoint]) -> list[RaftEndpoint]:
    """Check the listeners of a controller.

    Raises:
        ArgumentTypeError: one is no `RaftEndpoint`.
        ArgumentValueError: there is none.
    """
    found = items_of("endpoints", endpoints)
    for each in found:
        if not isinstance(each, RaftEndpoint):
            raise ArgumentTypeError(
                f"endpoints must be a collection of RaftEndpoint, not of "
                f"{type_name(each)}"
            )
    if not found:
        raise ArgumentValueError("endpoints must name a listener of the controller")
    return found
