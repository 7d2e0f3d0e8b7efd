"""The operations of `kafkaio.Admin` on the cluster: features, controllers, brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

from kafkaio._arguments import (
    type_name,
)
from kafkaio._client.destinations import ANY, Broker, Controller
from kafkaio._client.fanout import Results, Terms
from kafkaio._machines.api_versions import software_version
from kafkaio._version import __version__
from kafkaio.admin._asking import ask_one, outcome, reason, time_of
from kafkaio.admin._checks import items_of, known_of
from kafkaio.admin._subject import Subject
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
from kafkaio.protocol import _api_numbers as apis, messages
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.types import Broker as Endpoint

_BROKERS, _CONTROLLERS = 1, 2
#: The first versions of DescribeCluster with fenced brokers (KIP-1073), of
#: UpdateFeatures with types of upgrades and ``validate_only`` (KIP-778), and of
#: ApiVersions with features (KIP-584).
_WITH_FENCED, _WITH_UPGRADE_TYPES, _WITH_FEATURES = 2, 1, 3
#: The first version of Metadata with the operations that the client is allowed.
_WITH_OPERATIONS = 8
#: The first version of DescribeQuorum with directories and listeners (KIP-853).
_WITH_DIRECTORIES = 2
#: The topic of the cluster's metadata, which has one partition.
_METADATA = "__cluster_metadata"
_UPGRADE_TYPES: Final = {
    FeatureUpgradeType.UPGRADE: 1,
    FeatureUpgradeType.SAFE_DOWNGRADE: 2,
    FeatureUpgradeType.UNSAFE_DOWNGRADE: 3,
}


class ClusterOperations(Subject):
    """The operations on the cluster: features, controllers, brokers."""

    async def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout: float | None = None,
    ) -> ClusterDescription:
        """Describe the cluster: its id, its controller, its brokers (KIP-700).

        With ``bootstrap_controllers`` it describes the controllers (KIP-919).

        Args:
            include_authorized_operations: whether to say what the client may do with
                the cluster.
            include_fenced_brokers: whether to list brokers that are registered and not
                alive, too (KIP-1073, Kafka 4.0).
            timeout: seconds.

        Raises:
            UnsupportedVersion: the broker knows no brokers that are not alive.
            BrokerError: the broker refuses.
            RequestTimeout: no broker answered in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        asks_controllers = self._cluster.uses_controllers

        def build(terms: Terms) -> messages.DescribeClusterRequest:
            if include_fenced_brokers and terms.version < _WITH_FENCED:
                raise UnsupportedVersion("it does not list brokers that are not alive")
            return messages.DescribeClusterRequest(
                include_cluster_authorized_operations=include_authorized_operations,
                endpoint_type=_CONTROLLERS if asks_controllers else _BROKERS,
                include_fenced_brokers=include_fenced_brokers,
            )

        try:
            answer = await ask_one(
                self._cluster,
                ("describe", "the cluster"),
                messages.DescribeClusterRequest,
                build,
                lambda it: (it.error_code, it.error_message),
                to=ANY,
                deadline=deadline,
                since="4.0" if include_fenced_brokers else "2.8",
            )
        except UnsupportedVersion:
            if include_fenced_brokers or asks_controllers:
                raise
            return await self._cluster_by_metadata(
                deadline, with_operations=include_authorized_operations
            )
        return ClusterDescription(
            cluster_id=answer.cluster_id,
            controller=answer.controller_id if answer.controller_id >= 0 else None,
            brokers=tuple(
                Endpoint(it.broker_id, it.host, it.port, it.rack)
                for it in sorted(answer.brokers, key=lambda each: each.broker_id)
            ),
            fenced=frozenset(it.broker_id for it in answer.brokers if it.is_fenced),
            authorized_operations=operations_of(answer.cluster_authorized_operations)
            if include_authorized_operations
            else None,
        )

    async def describe_features(
        self,
        *,
        node_id: int | None = None,
        timeout: float | None = None,
    ) -> FeaturesDescription:
        """Return the features in force, and those that a broker supports (KIP-584).

        It needs Kafka 2.7.

        Args:
            node_id: the broker to ask; any by default.
            timeout: seconds.

        Raises:
            UnsupportedVersion: the broker is too old.
            RequestTimeout: no answer arrived in time; or the broker does not exist.
            ArgumentTypeError: the node id is not an int.
            ArgumentValueError: it is negative.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        if node_id is not None:
            check_node(node_id)

        def build(terms: Terms) -> messages.ApiVersionsRequest:
            if terms.version < _WITH_FEATURES:
                raise UnsupportedVersion("it does not tell features")
            return messages.ApiVersionsRequest(
                client_software_name="kafkaio",
                client_software_version=software_version(__version__),
            )

        answer = await ask_one(
            self._cluster,
            ("describe", "the features of the cluster"),
            messages.ApiVersionsRequest,
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
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Put levels of features in force (KIP-584, KIP-778).

        It needs Kafka 2.7. Since Kafka 4.0 all features are updated, or none. If the
        call is cancelled, they may still be updated.

        Args:
            updates: the levels by the names of features, such as
                ``metadata.version``.
            validate_only: whether the controller only checks whether it would do it
                (Kafka 3.3).
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: INVALID_UPDATE_VERSION or FEATURE_UPDATE_FAILED: the message
                says which feature, and why. Before Kafka 4.0 the others are updated.
            AdminErrors: several features failed, before Kafka 4.0.
            UnsupportedVersion: the broker is too old.
            ArgumentTypeError: ``updates`` has the wrong type.
            ArgumentValueError: a level is impossible.
            RequestTimeout: no answer arrived in time; features may be updated.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_updates(updates)
        if not wanted:
            return
        types = {each.upgrade_type for each in wanted.values()}
        needs_types = validate_only or FeatureUpgradeType.UNSAFE_DOWNGRADE in types

        def build(terms: Terms) -> messages.UpdateFeaturesRequest:
            is_old = terms.version < _WITH_UPGRADE_TYPES
            if is_old and needs_types:
                raise UnsupportedVersion(
                    "it supports neither validate_only nor unsafe downgrades"
                )
            return messages.UpdateFeaturesRequest(
                timeout_ms=terms.timeout_ms,
                feature_updates=[
                    messages.FeatureUpdateKey(
                        feature=name,
                        max_version_level=each.max_level,
                        allow_downgrade=is_old
                        and each.upgrade_type is not FeatureUpgradeType.UPGRADE,
                        # Version 0 has the one field, later ones have the other.
                        upgrade_type=1 if is_old else _UPGRADE_TYPES[each.upgrade_type],
                    )
                    for name, each in wanted.items()
                ],
                validate_only=validate_only,
            )

        answer = await ask_one(
            self._cluster,
            ("update", f"the features {', '.join(wanted)}"),
            messages.UpdateFeaturesRequest,
            build,
            lambda it: (it.error_code, it.error_message),
            to=Controller,
            deadline=deadline,
            since="3.3" if needs_types else "2.7",
        )
        outcome("update the features", wanted, _each_feature(answer, wanted))

    async def describe_metadata_quorum(
        self,
        *,
        timeout: float | None = None,
    ) -> QuorumDescription:
        """Describe the controllers, and how far each has come (KIP-836).

        It needs Kafka 3.3, without ZooKeeper.

        Args:
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            UnsupportedVersion: the cluster has no such quorum.
            RequestTimeout: no answer arrived in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        # The answer does not say in which version it came. The request may be repeated,
        # at another broker: the last one is the one that was answered.
        versions: list[int] = []

        def build(terms: Terms) -> messages.DescribeQuorumRequest:
            versions.append(terms.version)
            return messages.DescribeQuorumRequest(
                topics=[
                    messages.DescribeQuorumRequestTopicData(
                        topic_name=_METADATA,
                        partitions=[
                            messages.DescribeQuorumRequestPartitionData(
                                partition_index=0
                            )
                        ],
                    )
                ]
            )

        answer = await ask_one(
            self._cluster,
            ("describe", "the quorum of controllers"),
            messages.DescribeQuorumRequest,
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

    async def add_raft_voter(
        self,
        node_id: int,
        directory_id: UUID,
        endpoints: Iterable[RaftEndpoint],
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Make a controller a voter of the quorum (KIP-853).

        It needs Kafka 3.9, and voters that are not static. Those that were formatted as
        static ones cease to be when `update_features` raises ``kraft.version`` to 1:
        with Kafka 4.3, while 3.9 and 4.0 take that update and change nothing. If the
        call is cancelled, the controller may still become a voter.

        Args:
            node_id: the node id of the controller.
            directory_id: the id of the directory with its metadata, as
                `describe_metadata_quorum` returns it for an observer. The controller's
                ``meta.properties`` has its 16 bytes in base64.
            endpoints: its listeners.
            cluster_id: the cluster that it has to be; not checked by default.
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: DUPLICATE_VOTER, if it is one; INCONSISTENT_CLUSTER_ID;
                UNSUPPORTED_VERSION, if the voters are static; or another refusal.
            UnsupportedVersion: the brokers are too old.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the node id is negative, or no endpoint is given.
            RequestTimeout: no answer arrived in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_node(node_id, directory_id)
        listeners = check_endpoints(endpoints)
        await ask_one(
            self._cluster,
            ("add", f"controller {node_id} to the quorum"),
            messages.AddRaftVoterRequest,
            lambda terms: messages.AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=terms.timeout_ms,
                voter_id=node_id,
                voter_directory_id=directory_id,
                listeners=[
                    messages.AddRaftVoterRequestListener(
                        name=it.listener, host=it.host, port=it.port
                    )
                    for it in listeners
                ],
            ),
            lambda it: (it.error_code, it.error_message),
            to=Controller,
            deadline=deadline,
            since="3.9 (KRaft)",
        )

    async def remove_raft_voter(
        self,
        node_id: int,
        directory_id: UUID,
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Take a controller's vote in the quorum away (KIP-853).

        It needs Kafka 3.9, and voters that are not static, as `add_raft_voter` does. If
        the call is cancelled, the controller may still lose its vote.

        Args:
            node_id: the node id of the controller.
            directory_id: the id of the directory with its metadata, as
                `describe_metadata_quorum` returns it.
            cluster_id: the cluster that it has to be; not checked by default.
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: VOTER_NOT_FOUND, if it has no vote; INCONSISTENT_CLUSTER_ID;
                UNSUPPORTED_VERSION, if the voters are static; or another refusal.
            UnsupportedVersion: the brokers are too old.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the node id is negative.
            RequestTimeout: no answer arrived in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_node(node_id, directory_id)
        request = messages.RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=node_id, voter_directory_id=directory_id
        )
        await ask_one(
            self._cluster,
            ("remove", f"controller {node_id} from the quorum"),
            messages.RemoveRaftVoterRequest,
            lambda _: request,
            lambda it: (it.error_code, it.error_message),
            to=Controller,
            deadline=deadline,
            since="3.9 (KRaft)",
        )

    async def unregister_broker(
        self,
        node_id: int,
        *,
        timeout: float | None = None,
    ) -> None:
        """Forget a broker that was shut down for good (KIP-500).

        It needs a cluster without ZooKeeper. A broker that runs registers again. If
        the call is cancelled, it may still be forgotten.

        Args:
            node_id: the node id of the broker.
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: BROKER_ID_NOT_REGISTERED, if no broker has that id.
            UnsupportedVersion: the cluster has ZooKeeper.
            ArgumentTypeError: the node id is not an int.
            ArgumentValueError: it is negative.
            RequestTimeout: no answer arrived in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_node(node_id)
        request = messages.UnregisterBrokerRequest(broker_id=node_id)
        await ask_one(
            self._cluster,
            ("unregister", f"broker {node_id}"),
            messages.UnregisterBrokerRequest,
            lambda _: request,
            lambda it: (it.error_code, it.error_message),
            to=Controller,
            deadline=deadline,
            since="2.8 (KRaft)",
        )

    async def unregister_controller(
        self,
        node_id: int,
        *,
        timeout: float | None = None,
    ) -> None:
        """Forget a controller that was shut down for good.

        It needs Kafka 4.4, and its ``metadata.version``. A controller that runs
        registers again. If it had a vote, take that away first, by `remove_raft_voter`.
        If the call is cancelled, the controller may still be forgotten.

        Args:
            node_id: the node id of the controller.
            timeout: seconds.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: CONTROLLER_ID_NOT_REGISTERED, if no controller has that id;
                INVALID_REQUEST, if it is the active one; UNSUPPORTED_VERSION, if the
                ``metadata.version`` is too old.
            UnsupportedVersion: the brokers are too old.
            ArgumentTypeError: the node id is not an int.
            ArgumentValueError: it is negative.
            RequestTimeout: no answer arrived in time.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        check_node(node_id)
        request = messages.UnregisterControllerRequest(controller_id=node_id)
        await ask_one(
            self._cluster,
            ("unregister", f"controller {node_id}"),
            messages.UnregisterControllerRequest,
            lambda _: request,
            lambda it: (it.error_code, it.error_message),
            to=Controller,
            deadline=deadline,
            since="4.4",
        )

    async def _cluster_by_metadata(
        self, deadline: float, *, with_operations: bool
    ) -> ClusterDescription:
        # Brokers before 2.8 have no DescribeCluster.
        def build(terms: Terms) -> messages.MetadataRequest:
            return messages.MetadataRequest(
                topics=[],  # none of them; None would ask for all topics
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=with_operations
                and terms.version >= _WITH_OPERATIONS,
            )

        answer = await ask_one(
            self._cluster,
            ("describe", "the cluster"),
            messages.MetadataRequest,
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


def _each_feature(
    answer: messages.UpdateFeaturesResponse, updates: Mapping[str, FeatureUpdate]
) -> Results[str, None]:
    """Read the results of the single features.

    From version 2 on, the answer has one error for all features, and no results.
    """
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
                api=apis.UPDATE_FEATURES,
            )
    good = [name for name in updates if name not in results.failed]
    results.found.update(dict.fromkeys(good))
    return results


def _quorum_error(answer: messages.DescribeQuorumResponse) -> tuple[int, str | None]:
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


def _replicas(
    states: Iterable[messages.DescribeQuorumResponseReplicaState],
) -> tuple[QuorumReplica, ...]:
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
        ArgumentTypeError: it is not a mapping of names to `FeatureUpdate`.
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
            raise ArgumentValueError(f"{name!r} cannot have level {each.max_level}")
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
        ArgumentTypeError: one is not a `RaftEndpoint`.
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
