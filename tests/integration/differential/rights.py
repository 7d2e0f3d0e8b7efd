"""A script of what clients may do: every API, asked with and without each right.

Topics, groups and transactional ids whose names begin with ``t``, ``g`` and ``x`` are
those that rights are granted on; ``u``, ``h`` and ``y`` are others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from kafkaio._records.builder import BatchBuilder
from kafkaio._runtime.clock import wall_ms
from kafkaio.protocol import messages as m
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaio.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
)
from kafkaio.protocol.messages.alter_configs import (
    AlterableConfig as PlainConfig,
    AlterConfigsResource as PlainResource,
)
from kafkaio.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirTopic,
)
from kafkaio.protocol.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
)
from kafkaio.protocol.messages.create_partitions import CreatePartitionsTopic
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.protocol.messages.delete_acls import DeleteAclsFilter
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsTopic,
)
from kafkaio.protocol.messages.delete_topics import DeleteTopicState
from kafkaio.protocol.messages.describe_configs import DescribeConfigsResource
from kafkaio.protocol.messages.describe_log_dirs import DescribableLogDirTopic
from kafkaio.protocol.messages.describe_producers import TopicRequest as ProducersTopic
from kafkaio.protocol.messages.describe_quorum import (
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kafkaio.protocol.messages.describe_topic_partitions import TopicRequest
from kafkaio.protocol.messages.describe_user_scram_credentials import UserName
from kafkaio.protocol.messages.fetch import FetchPartition, FetchTopic
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
)
from kafkaio.protocol.messages.leave_group import MemberIdentity
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsTopic,
)
from kafkaio.protocol.messages.metadata import MetadataRequestTopic
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaio.protocol.messages.produce import PartitionProduceData, TopicProduceData
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.update_features import FeatureUpdateKey
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
)
from kafkaio.testing._security.acls import (
    CLUSTER_NAME,
    OPERATIONS,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from tests.integration.differential.pair import PATIENCE, Difference, Pair, Pick
from tests.integration.differential.plain import Names, Plain

_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_CLUSTER, _TXN = ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
_USER, _TOKEN = ResourceType.USER, ResourceType.DELEGATION_TOKEN
_OTHER: Final = "User:other"
#: What rights are granted on, by the type of resource.
_NAMES: Final = {
    _TOPIC: "t",
    _GROUP: "g",
    _TXN: "x",
    _CLUSTER: CLUSTER_NAME,
    _USER: _OTHER,
    _TOKEN: "*",
}
Right = tuple[ResourceType, Operation]


def _users() -> dict[str, list[Right]]:
    users: dict[str, list[Right]] = {"nobody": []}
    operations = dict(OPERATIONS)
    operations[_TXN] = (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT)
    operations[_USER] = (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS)
    operations[_TOKEN] = (Operation.DESCRIBE,)
    for kind, names in operations.items():
        for one in (*names, Operation.ALL):
            users[f"{kind.name}-{one.name}".lower()] = [(kind, one)]
    write, read = Operation.WRITE, Operation.READ
    users |= {
        "maker": [(_TOPIC, Operation.CREATE), (_TOPIC, Operation.DESCRIBE)],
        "producer": [(_TOPIC, write), (_TXN, write)],
        "consumer": [(_TOPIC, read), (_GROUP, read)],
        "mover": [(_TOPIC, read), (_TOPIC, write), (_TXN, write), (_GROUP, read)],
        "keeper": [(_GROUP, Operation.DELETE), (_TOPIC, read)],
        "watcher": [(_GROUP, Operation.DESCRIBE), (_TOPIC, Operation.DESCRIBE)],
        "sender": [(_TXN, write), (_GROUP, read)],
        "looker": [(_TXN, Operation.DESCRIBE), (_TOPIC, Operation.DESCRIBE)],
        "barred": [(_TOPIC, Operation.ALL)],
        # What these may do is not a list of rights.
        **{one: [] for one in ("near", "far", "wide", "narrow", "split", "none")},
        # The last one, since it may delete by id what it cannot see.
        "blind": [],
    }
    return users


#: The users by name, and what each may do.
USERS: Final[Mapping[str, Sequence[Right]]] = _users()


def _creation(acl: Acl) -> m.AclCreation:
    return m.AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.name,
        resource_pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def granted() -> list[Acl]:
    """The ACLs of all users."""
    found = [
        Acl(
            resource_type=kind,
            name=_NAMES[kind],
            principal=f"User:{user}",
            operation=operation,
            pattern=(
                PatternType.LITERAL
                if kind in {_CLUSTER, _USER, _TOKEN}
                else PatternType.PREFIXED
            ),
        )
        for user, rights in USERS.items()
        for kind, operation in rights
    ]
    found += [_special(*one) for one in _SPECIAL]
    return found


_PREFIXED, _LITERAL = PatternType.PREFIXED, PatternType.LITERAL
_ALLOW, _DENY = Permission.ALLOW, Permission.DENY
_Special = tuple[str, Operation, str, PatternType, Permission, str]
#: ACLs on topics that are not just a right: of patterns, hosts, and denials.
_SPECIAL: Final[Sequence[_Special]] = (
    ("barred", Operation.READ, "t", _LITERAL, _DENY, "127.0.0.1"),
    ("barred", Operation.DESCRIBE_CONFIGS, "t", _LITERAL, _DENY, "*"),
    ("barred", Operation.WRITE, "t", _LITERAL, _DENY, "10.9.8.7"),
    ("blind", Operation.ALL, "t", _PREFIXED, _ALLOW, "*"),
    ("blind", Operation.DESCRIBE, "t", _PREFIXED, _DENY, "*"),
    ("near", Operation.ALL, "t", _LITERAL, _ALLOW, "127.0.0.1"),
    ("far", Operation.ALL, "t", _LITERAL, _ALLOW, "10.9.8.7"),
    ("wide", Operation.WRITE, "*", _LITERAL, _ALLOW, "*"),
    ("wide", Operation.WRITE, "t", _PREFIXED, _DENY, "*"),
    ("narrow", Operation.WRITE, "t-none", _LITERAL, _ALLOW, "*"),
    ("narrow", Operation.ALL, "t-", _PREFIXED, _DENY, "*"),
    ("split", Operation.WRITE, "t", _PREFIXED, _ALLOW, "*"),
    ("split", Operation.WRITE, "t", _LITERAL, _DENY, "*"),
    ("none", Operation.WRITE, "t", _LITERAL, _ALLOW, "*"),
    ("none", Operation.WRITE, "*", _LITERAL, _DENY, "*"),
)


def _special(
    user: str,
    operation: Operation,
    name: str,
    pattern: PatternType,
    permission: Permission,
    host: str,
) -> Acl:
    return Acl(
        resource_type=_TOPIC,
        name=name,
        principal=f"User:{user}",
        operation=operation,
        permission=permission,
        pattern=pattern,
        host=host,
    )


# ---- what is asked ------------------------------------------------------------------

_ALL: Final = ("t", "u", "t-none", "u-none")
#: A request, its version, and what leaves out of its answers what is not compared.
Case = tuple[Request[Response], int, Pick | None]


def _codes(answer: Plain) -> Plain:
    """Keep the error codes, and what they are for."""
    if isinstance(answer, dict):
        kept = {}
        for name, value in answer.items():
            if isinstance(value, list) or name.endswith(("error_code", "_name")):
                kept[name] = _codes(value)
        return kept
    return [_codes(one) for one in answer] if isinstance(answer, list) else answer


def _code(answer: Plain) -> Plain:
    return answer["error_code"]


def _batch(*, transactional: bool = False) -> bytes:
    builder = BatchBuilder(target_size=2**20, transactional=transactional)
    builder.try_append(wall_ms(), b"k", b"v", ())
    if transactional:
        built = builder.build(producer_id=999_999, producer_epoch=0, base_sequence=0)
    else:
        built = builder.build()
    return bytes(built)


class Cases:
    """What every user asks.

    Args:
        ids: the stand-ins of the topics' ids.
    """

    def __init__(self, ids: Mapping[str, UUID]) -> None:
        self._ids = ids
        # One that neither broker has.
        self._named = [*ids.values(), UUID(int=5)]

    def __iter__(self) -> Iterator[Case]:
        yield from self._cluster()
        yield from self._logs()
        yield from self._groups()
        yield from self._offsets()
        yield from self._transactions()
        yield from self._topics()
        yield from self._configs()
        yield from self._security()

    def _cluster(self) -> Iterator[Case]:
        asked = [MetadataRequestTopic(name=name) for name in _ALL]
        both = {
            "include_topic_authorized_operations": True,
            "allow_auto_topic_creation": False,
        }
        yield m.MetadataRequest(topics=asked, **both), 12, None
        yield m.MetadataRequest(topics=asked, **both), 8, None
        yield m.MetadataRequest(topics=asked, allow_auto_topic_creation=False), 5, None
        yield m.MetadataRequest(topics=None, **both), 12, None
        yield m.MetadataRequest(topics=None), 1, None
        yield (
            m.MetadataRequest(topics=[], include_cluster_authorized_operations=True),
            10,
            None,
        )
        by_id = [MetadataRequestTopic(name=None, topic_id=one) for one in self._named]
        yield m.MetadataRequest(topics=by_id, **both), 13, None
        for names in (_ALL, ()):
            topics = [TopicRequest(name=name) for name in names]
            yield (
                m.DescribeTopicPartitionsRequest(
                    topics=topics, response_partition_limit=2000
                ),
                0,
                None,
            )
        for version in (1, 2):
            yield (
                m.DescribeClusterRequest(include_cluster_authorized_operations=True),
                version,
                None,
            )
        yield m.DescribeLogDirsRequest(topics=None), 4, _dirs
        yield (
            m.DescribeLogDirsRequest(
                topics=[DescribableLogDirTopic(topic="t", partitions=[0])]
            ),
            2,
            _dirs,
        )

    def _logs(self) -> Iterator[Case]:
        parts = [PartitionProduceData(index=0, records=_batch())]
        named = [TopicProduceData(name=one, partition_data=parts) for one in _ALL]
        by_id = [
            TopicProduceData(topic_id=one, partition_data=parts) for one in self._named
        ]
        yield _produce(named), 12, None
        yield _produce(named), 9, None
        yield _produce(by_id), 13, None
        unsafe = [PartitionProduceData(index=0, records=_batch(transactional=True))]
        both = [TopicProduceData(name=one, partition_data=unsafe) for one in _ALL]
        for name in ("y", None):
            yield _produce(both, name), 11, None
        fetched = [FetchPartition(partition=0, partition_max_bytes=1)]
        for topics, version in (
            ([FetchTopic(topic=one, partitions=fetched) for one in _ALL], 12),
            ([FetchTopic(topic_id=one, partitions=fetched) for one in self._named], 17),
        ):
            yield (
                m.FetchRequest(
                    max_wait_ms=0, session_epoch=-1, max_bytes=1, topics=topics
                ),
                version,
                None,
            )
        listed = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
        yield (
            m.ListOffsetsRequest(
                replica_id=-1,
                topics=[ListOffsetsTopic(name=one, partitions=listed) for one in _ALL],
            ),
            10,
            None,
        )
        epochs = [OffsetForLeaderPartition(partition=0, leader_epoch=0)]
        yield (
            m.OffsetForLeaderEpochRequest(
                replica_id=-2,
                topics=[
                    OffsetForLeaderTopic(topic=one, partitions=epochs) for one in _ALL
                ],
            ),
            4,
            None,
        )
        deleted = [DeleteRecordsPartition(partition_index=0, offset=0)]
        yield (
            m.DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(name=one, partitions=deleted) for one in _ALL
                ],
                timeout_ms=1000,
            ),
            2,
            None,
        )
        producers = [ProducersTopic(name=one, partition_indexes=[0]) for one in _ALL]
        yield m.DescribeProducersRequest(topics=producers), 0, _codes

    def _groups(self) -> Iterator[Case]:
        for kind, keys in ((0, ["g", "h"]), (1, ["x", "y"])):
            yield (
                m.FindCoordinatorRequest(key_type=kind, coordinator_keys=keys),
                6,
                None,
            )
            for key in keys:
                yield m.FindCoordinatorRequest(key_type=kind, key=key), 3, None
        for group in ("g", "h", ""):
            who = {"group_id": group, "member_id": "m"}
            for version in (9, 2):
                yield m.JoinGroupRequest(**who, session_timeout_ms=1), version, None
            names = {"protocol_type": "consumer", "protocol_name": "range"}
            yield m.SyncGroupRequest(**who, **names), 5, None
            yield m.SyncGroupRequest(**who), 5, None
            yield m.HeartbeatRequest(**who), 4, None
            leaving = [MemberIdentity(member_id="m")]
            yield m.LeaveGroupRequest(group_id=group, members=leaving), 5, None
            yield m.LeaveGroupRequest(**who), 2, None
            for topics in (None, ["t"], ["t", "u"], ["t-none"], ["u-none"]):
                beat = m.ConsumerGroupHeartbeatRequest(
                    **who, member_epoch=5, subscribed_topic_names=topics
                )
                yield beat, 1, None
        groups = ["g", "gk", "g-none", "h", "hk"]
        yield (
            m.DescribeGroupsRequest(groups=groups, include_authorized_operations=True),
            6,
            None,
        )
        yield m.DescribeGroupsRequest(groups=groups), 2, None
        yield (
            m.ConsumerGroupDescribeRequest(
                group_ids=groups, include_authorized_operations=True
            ),
            1,
            None,
        )
        yield m.ListGroupsRequest(), 5, None
        yield m.DeleteGroupsRequest(groups_names=["g-none", "h-none", "gk"]), 2, None

    def _offsets(self) -> Iterator[Case]:
        kept = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
        named = [OffsetCommitRequestTopic(name=one, partitions=kept) for one in _ALL]
        by_id = [
            OffsetCommitRequestTopic(topic_id=one, partitions=kept)
            for one in self._named
        ]
        for group in ("g", "h"):
            yield m.OffsetCommitRequest(group_id=group, topics=named), 9, None
            yield m.OffsetCommitRequest(group_id=group, topics=by_id), 10, None
            deleted = [OffsetDeleteRequestPartition(partition_index=5)]
            yield (
                m.OffsetDeleteRequest(
                    group_id=group,
                    topics=[
                        OffsetDeleteRequestTopic(name=one, partitions=deleted)
                        for one in _ALL
                    ],
                ),
                0,
                None,
            )
            fetched = [
                OffsetFetchRequestTopic(name=one, partition_indexes=[0]) for one in _ALL
            ]
            for version in (7, 2, 1):
                asked = m.OffsetFetchRequest(group_id=group, topics=fetched)
                yield asked, version, None
        topics = [
            OffsetFetchRequestTopics(name=one, partition_indexes=[0]) for one in _ALL
        ]
        ids = [
            OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0])
            for one in self._named
        ]
        for wanted, version in ((topics, 9), (None, 9), (ids, 10), (None, 10)):
            of = [
                OffsetFetchRequestGroup(group_id=group, topics=wanted)
                for group in ("g", "h")
            ]
            yield m.OffsetFetchRequest(groups=of), version, None

    def _transactions(self) -> Iterator[Case]:
        for name in (None, "x", "y", ""):
            yield (
                m.InitProducerIdRequest(
                    transactional_id=name, transaction_timeout_ms=10_000
                ),
                5,
                None,
            )
        for name, names in (("x", _ALL), ("x", ("t",)), ("y", ("t",))):
            yield (
                m.AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=name,
                    v3_and_below_producer_id=999_999,
                    v3_and_below_topics=[
                        AddPartitionsToTxnTopic(name=one, partitions=[0])
                        for one in names
                    ],
                ),
                3,
                None,
            )
        transaction = AddPartitionsToTxnTransaction(
            transactional_id="x",
            producer_id=999_999,
            topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )
        yield m.AddPartitionsToTxnRequest(transactions=[transaction]), 5, None
        offsets = [TxnOffsetCommitRequestPartition(partition_index=0)]
        for name in ("x", "y"):
            who = {"transactional_id": name, "producer_id": 999_999}
            yield m.EndTxnRequest(**who), 4, None
            for group in ("g", "h"):
                yield m.AddOffsetsToTxnRequest(**who, group_id=group), 4, None
                yield (
                    m.TxnOffsetCommitRequest(
                        **who,
                        group_id=group,
                        topics=[
                            TxnOffsetCommitRequestTopic(name=one, partitions=offsets)
                            for one in _ALL
                        ],
                    ),
                    4,
                    None,
                )
                yield (
                    m.TxnOffsetCommitRequest(
                        **who,
                        group_id=group,
                        topics=[
                            TxnOffsetCommitRequestTopic(
                                topic_id=one, partitions=offsets
                            )
                            for one in self._named
                        ],
                    ),
                    6,
                    None,
                )
        marker = WritableTxnMarker(
            producer_id=999_999,
            topics=[WritableTxnMarkerTopic(name="u-none", partition_indexes=[0])],
        )
        yield m.WriteTxnMarkersRequest(markers=[marker]), 1, None
        ids = ["x", "y", "x-none"]
        yield m.DescribeTransactionsRequest(transactional_ids=ids), 0, _told_of_topics
        yield m.ListTransactionsRequest(duration_filter=-1), 2, None

    def _topics(self) -> Iterator[Case]:
        new = [
            CreatableTopic(name=name, num_partitions=2, replication_factor=1)
            for name in ("t-new", "u-new", "t", "u", "t-twice", "t-twice", "t/", "u/")
        ]
        yield (
            m.CreateTopicsRequest(topics=new, timeout_ms=1000, validate_only=True),
            7,
            _without_configs,
        )
        more = [
            CreatePartitionsTopic(name=name, count=9, assignments=None) for name in _ALL
        ]
        yield (
            m.CreatePartitionsRequest(topics=more, timeout_ms=1000, validate_only=True),
            3,
            None,
        )
        gone = [DeleteTopicState(name=one) for one in ("t-none", "u-none")]
        gone += [DeleteTopicState(name=None, topic_id=UUID(int=5))]
        yield m.DeleteTopicsRequest(topics=gone, timeout_ms=1000), 6, None

    def _configs(self) -> Iterator[Case]:
        places = [(2, name) for name in _ALL]
        places += [(4, "1"), (4, ""), (4, "7"), (32, "g"), (32, "h")]
        described = [
            DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for kind, name in places
        ]
        yield m.DescribeConfigsRequest(resources=described), 4, _config_codes
        for value in ("100000", "soon"):
            config = {2: "retention.ms", 4: "background.threads"}
            of_group = "consumer.session.timeout.ms"
            yield (
                m.IncrementalAlterConfigsRequest(
                    validate_only=True,
                    resources=[
                        AlterConfigsResource(
                            resource_type=kind,
                            resource_name=name,
                            configs=[
                                AlterableConfig(
                                    name=config.get(kind, of_group), value=value
                                )
                            ],
                        )
                        for kind, name in places
                    ],
                ),
                1,
                None,
            )
        yield (
            m.AlterConfigsRequest(
                validate_only=True,
                resources=[
                    PlainResource(
                        resource_type=2,
                        resource_name=name,
                        configs=[PlainConfig(name="retention.ms", value="100000")],
                    )
                    for name in _ALL
                ],
            ),
            2,
            None,
        )

    def _security(self) -> Iterator[Case]:
        yield m.DescribeAclsRequest(**_any()), 3, None
        yield (
            m.DescribeAclsRequest(
                **_any()
                | {
                    "resource_type_filter": 2,
                    "resource_name_filter": "t",
                    "pattern_type_filter": PatternType.MATCH,
                }
            ),
            2,
            None,
        )
        yield m.DescribeAclsRequest(**_any() | {"operation": 99}), 3, None
        right = Acl(
            resource_type=_TOPIC, name="t", principal="User:z", operation=Operation.READ
        )
        wrong = [
            {"name": ""},
            {"resource_type": _CLUSTER},
            {"resource_type": ResourceType.ANY},
            {"pattern": PatternType.MATCH},
            {"pattern": PatternType.ANY},
            {"operation": Operation.ANY},
            {"permission": Permission.ANY},
            {"principal": "z"},
        ]
        for changed in wrong:
            made = _creation(_changed(right, changed))
            yield m.CreateAclsRequest(creations=[made]), 3, None
        for field in ("resource_type", "operation", "permission_type"):
            unknown = _creation(right)
            setattr(unknown, field, 99)
            yield m.CreateAclsRequest(creations=[unknown]), 3, None
        for changed in wrong[-2:]:
            made = _creation(_changed(right, changed))
            yield m.CreateAclsRequest(creations=[_creation(right), made]), 3, None
        yield m.CreateAclsRequest(creations=[_creation(right), unknown]), 3, None
        yield m.CreateAclsRequest(creations=[_creation(right)] * 2), 3, None
        chosen = DeleteAclsFilter(**_any() | {"principal_filter": "User:z"})
        none = DeleteAclsFilter(**_any() | {"principal_filter": "User:q"})
        yield m.DeleteAclsRequest(filters=[none, chosen, chosen]), 3, None
        unknown_filter = DeleteAclsFilter(**_any() | {"operation": 0})
        yield m.DeleteAclsRequest(filters=[unknown_filter]), 3, None
        # Of all users, a real Kafka cannot refuse to tell: it answers nothing.
        missing = [UserName(name="missing")]
        yield m.DescribeUserScramCredentialsRequest(users=missing), 0, None
        deletion = ScramCredentialDeletion(name="missing", mechanism=1)
        yield m.AlterUserScramCredentialsRequest(deletions=[deletion]), 0, None
        quota = AlterClientQuotasRequestEntryData(
            entity=[
                AlterClientQuotasRequestEntityData(entity_type="user", entity_name="q")
            ]
        )
        yield m.AlterClientQuotasRequest(entries=[quota], validate_only=True), 1, None
        yield m.DescribeClientQuotasRequest(strict=True), 1, None
        update = FeatureUpdateKey(feature="group.version", max_version_level=1)
        yield (
            m.UpdateFeaturesRequest(feature_updates=[update], validate_only=True),
            2,
            None,
        )
        quorum = DescribeQuorumRequestTopicData(
            topic_name="x", partitions=[DescribeQuorumRequestPartitionData()]
        )
        yield m.DescribeQuorumRequest(topics=[quorum]), 2, None
        moved = AlterReplicaLogDir(
            path="/no", topics=[AlterReplicaLogDirTopic(name="t", partitions=[0])]
        )
        yield m.AlterReplicaLogDirsRequest(dirs=[moved]), 2, None
        yield m.UnregisterBrokerRequest(broker_id=99), 0, None
        for controller_id in (1, 99):
            request = m.UnregisterControllerRequest(controller_id=controller_id)
            yield request, 0, None
        yield (
            m.CreateDelegationTokenRequest(
                owner_principal_type="User",
                owner_principal_name="other",
                max_lifetime_ms=60_000,
            ),
            3,
            _code,
        )
        yield m.DescribeDelegationTokenRequest(owners=None), 3, _owners


def on_acls() -> Iterator[Request[Response]]:
    """A request of each kind that is about ACLs."""
    yield m.DescribeAclsRequest(**_any())
    yield m.CreateAclsRequest(creations=[_creation(acl) for acl in granted()[:2]])
    yield m.DeleteAclsRequest(filters=[DeleteAclsFilter(**_any())])


def _any() -> dict[str, object]:
    """The fields of a filter for everything."""
    every = AclFilter()
    return {
        "resource_type_filter": every.resource_type,
        "resource_name_filter": None,
        "pattern_type_filter": every.pattern,
        "principal_filter": None,
        "host_filter": None,
        "operation": every.operation,
        "permission_type": every.permission,
    }


def _changed(acl: Acl, fields: Mapping[str, object]) -> Acl:
    return replace(acl, **fields)  # type: ignore[arg-type]


def _produce(
    topics: Sequence[TopicProduceData], transactional_id: str | None = None
) -> m.ProduceRequest:
    return m.ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        transactional_id=transactional_id,
        topic_data=list(topics),
    )


# ---- what of an answer is compared --------------------------------------------------


def _dirs(answer: Plain) -> Plain:
    """Where logs are, how full that is, and the sizes of internal topics differ."""
    told = [
        (one["error_code"], sorted(topic["name"] for topic in one["topics"]))
        for one in answer["results"]
    ]
    return answer["error_code"], told


def _config_codes(answer: Plain) -> Plain:
    """The configs themselves are compared elsewhere."""
    return [
        (one["resource_name"], one["error_code"], bool(one["configs"]))
        for one in answer["results"]
    ]


def _told_of_topics(answer: Plain) -> Plain:
    """When a transaction began is up to the broker's clock."""
    return [
        (one["transactional_id"], one["error_code"], one["topics"])
        for one in answer["transaction_states"]
    ]


def _without_configs(answer: Plain) -> Plain:
    """The configs of a new topic are compared elsewhere."""
    for topic in answer["topics"]:
        topic["configs"] = topic["configs"] and bool(topic["configs"])
        del topic["topic_id"]
    return answer


def _owners(answer: Plain) -> Plain:
    """The tokens themselves are secrets."""
    found = [one["principal_name"] for one in answer["tokens"]]
    return answer["error_code"], sorted(set(found))


# ---- the script ---------------------------------------------------------------------


async def get_ready(pair: Pair) -> dict[str, UUID]:
    """Make topics, groups and transactions, and grant what every user may do.

    Returns:
        The stand-ins of the topics' ids.
    """
    new = [
        CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        for name in ("t", "u")
    ]
    await pair.ask(
        m.CreateTopicsRequest(topics=new, timeout_ms=10_000), 7, pick=_without_configs
    )
    asked = [MetadataRequestTopic(name=name) for name in ("t", "u")]
    found = await pair.agree(m.MetadataRequest(topics=asked), 12, pick=_topic_ids)
    ids = dict(found)
    for kind, keys in ((0, ["g", "h"]), (1, ["x", "y"])):
        await _until_answered(
            pair, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=keys), 6
        )
    for side in pair.sides:
        # The id 0 is also what answers have that tell of no producer; nobody uses it.
        side.names.stand_in(0, "producer_id")
    idempotent = m.InitProducerIdRequest(transactional_id=None)
    await _until_answered(pair, idempotent, 4)
    for name in ("x", "y"):
        initial = m.InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=10_000
        )
        await _until_answered(pair, initial, 4)
    kept = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    topics = [OffsetCommitRequestTopic(name=one, partitions=kept) for one in ("t", "u")]
    for group in ("g", "h"):
        commit = m.OffsetCommitRequest(group_id=group, topics=topics)
        await _until_answered(pair, commit, 9)
    creations = [_creation(acl) for acl in granted()]
    await pair.ask(m.CreateAclsRequest(creations=creations), 3)
    await pair.agree(m.DescribeAclsRequest(**_any()), 3)
    return ids


def _topic_ids(answer: Plain) -> Plain:
    assert not any(one["error_code"] for one in answer["topics"])
    return [(one["name"], one["topic_id"]) for one in answer["topics"]]


async def _until_answered(pair: Pair, request: Request[Response], version: int) -> None:
    """Ask each until its coordinators have loaded, and no error is left."""
    for side in pair.sides:
        async with asyncio.timeout(PATIENCE):
            # Without stand-ins, since one may have to be asked more often.
            while _errors(Names().plain(await side.ask(request, version, "anyone"))):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


def _errors(answer: Plain) -> list[int]:
    if isinstance(answer, dict):
        own = [v for k, v in answer.items() if k.endswith("error_code") and v]
        return own + _errors(list(answer.values()))
    if isinstance(answer, list):
        return [code for one in answer for code in _errors(one)]
    return []


#: What a real broker knows a little later than its controller.
_LATE: Final = (m.DescribeAclsRequest, m.DescribeDelegationTokenRequest)


class _Members:
    """Keeps two consumers alive that nobody may see entirely."""

    def __init__(self) -> None:
        self._epochs = dict.fromkeys(("gk", "hk"), 0)

    async def beat(self, pair: Pair) -> None:
        for group, topics in (("gk", ["t"]), ("hk", ["t", "u"])):
            epoch = self._epochs[group]
            beat = m.ConsumerGroupHeartbeatRequest(
                group_id=group, member_id="member", member_epoch=epoch
            )
            if not epoch:
                beat.rebalance_timeout_ms = 10_000
                beat.subscribed_topic_names = topics
                beat.topic_partitions = []
            answer = await pair.ask(beat, 1)
            assert answer["error_code"] == 0
            self._epochs[group] = answer["member_epoch"]


async def compare(pair: Pair, users: Sequence[str] = tuple(USERS)) -> list[str]:
    """Let every user ask everything.

    Returns:
        Where the answers differ, with the name of the user.
    """
    ids = await get_ready(pair)
    members = _Members()
    found: list[str] = []
    for user in users:
        await members.beat(pair)
        for request, version, pick in Cases(ids):
            try:
                ask = pair.agree if isinstance(request, _LATE) else pair.ask
                await ask(request, version, user, pick)
            except Difference as difference:
                found.append(str(difference).partition("\nafter")[0])
                pair.hang_up(user)
    found += await _compare_patterns(pair, ids)
    # Last, since what they make and delete is seen by all.
    for user in users:
        for request, version in _changes(user, ids):
            try:
                await pair.ask(request, version, user)
            except Difference as difference:
                found.append(str(difference).partition("\nafter")[0])
                pair.hang_up(user)
    return found


async def _compare_patterns(pair: Pair, ids: Mapping[str, UUID]) -> list[str]:
    """Subscribe to every topic by a pattern, as somebody who sees one of them."""
    seen = []
    for side in pair.sides:
        beat = m.ConsumerGroupHeartbeatRequest(
            group_id="g-patterns",
            member_id="member",
            rebalance_timeout_ms=10_000,
            subscribed_topic_regex=".*",
            topic_partitions=[],
        )
        topics: list[Plain] = []
        async with asyncio.timeout(PATIENCE):
            while not topics:
                answer = await side.ask(beat, 1, "consumer")
                assert answer.error_code == 0, answer
                beat = m.ConsumerGroupHeartbeatRequest(
                    group_id="g-patterns",
                    member_id="member",
                    member_epoch=answer.member_epoch,
                )
                if answer.assignment is not None:
                    topics = side.names.plain(answer.assignment)["topic_partitions"]
                await asyncio.sleep(0.02)
        seen.append(topics)
    expected = [{"topic_id": ids["t"], "partitions": [0, 1]}]
    if seen == [expected, expected]:
        return []
    return [f"consumer: a pattern matches {seen}, embedded and real"]


def _changes(
    user: str, ids: Mapping[str, UUID]
) -> Iterator[tuple[Request[Response], int]]:
    named = [MetadataRequestTopic(name=f"{one}-{user}") for one in ("t", "u")]
    yield m.MetadataRequest(topics=named), 12
    may_delete = Operation.DELETE in {one for _, one in USERS[user]}
    if may_delete or user.endswith("-all") or user in {"barred", "near"}:
        return
    gone = [DeleteTopicState(name=one) for one in ids]
    yield m.DeleteTopicsRequest(topics=gone, timeout_ms=1000), 6
    gone = [DeleteTopicState(name=None, topic_id=one) for one in ids.values()]
    yield m.DeleteTopicsRequest(topics=gone, timeout_ms=1000), 6
