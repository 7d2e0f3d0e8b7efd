"""Messages and their bytes as Kafka 4.4.0 writes them.

``tests/integration/test_protocol_java.py`` asks Java again whether these still hold.
"""

from __future__ import annotations

from uuid import UUID

from kafkaio.protocol._message import Message
from kafkaio.protocol.messages import (
    api_versions,
    consumer_group_heartbeat,
    consumer_protocol_subscription,
    end_txn_marker,
    fetch,
    join_group,
    metadata,
    produce,
    txn_offset_commit,
)

TOPIC_ID = UUID("5f1d7f3c-6a25-4d0c-8d0e-0a4b6d9c2e11")

MESSAGES: list[tuple[Message, int]] = [
    (api_versions.ApiVersionsRequest(client_software_name="kafkaio"), 3),
    (
        api_versions.ApiVersionsRequest(
            client_software_name="kafkaio", cluster_id="cluster", node_id=2
        ),
        5,
    ),
    (
        txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id="group",
            producer_id=5,
            producer_epoch=1,
            generation_id_or_member_epoch=3,
            member_id="member",
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    topic_id=TOPIC_ID,
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitRequestPartition(
                            partition_index=4, committed_offset=9
                        )
                    ],
                )
            ],
        ),
        6,
    ),
    (
        api_versions.ApiVersionsResponse(
            api_keys=[
                api_versions.ApiVersion(api_key=18, min_version=0, max_version=4)
            ],
            finalized_features_epoch=7,
            finalized_features=[
                api_versions.FinalizedFeatureKey(
                    name="transaction.version", max_version_level=2, min_version_level=1
                )
            ],
        ),
        4,
    ),
    *(
        (
            produce.ProduceRequest(
                transactional_id="tx" if version > 8 else None,
                acks=-1,
                timeout_ms=30_000,
                topic_data=[
                    produce.TopicProduceData(
                        name="" if version > 12 else "orders",
                        topic_id=TOPIC_ID if version > 12 else UUID(int=0),
                        partition_data=[
                            produce.PartitionProduceData(index=3, records=b"batch"),
                            produce.PartitionProduceData(index=4, records=None),
                        ],
                    )
                ],
            ),
            version,
        )
        for version in (3, 9, 13)
    ),
    (
        fetch.FetchResponse(
            session_id=99,
            responses=[
                fetch.FetchableTopicResponse(
                    topic_id=TOPIC_ID,
                    partitions=[
                        fetch.PartitionData(
                            partition_index=1,
                            error_code=6,
                            high_watermark=-1,
                            current_leader=fetch.LeaderIdAndEpoch(
                                leader_id=2, leader_epoch=17
                            ),
                            aborted_transactions=None,
                            records=b"x" * 200,
                        )
                    ],
                )
            ],
            node_endpoints=[fetch.NodeEndpoint(node_id=2, host="b2", port=9092)],
        ),
        17,
    ),
    (metadata.MetadataRequest(topics=None), 1),
    (
        metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(topic_id=TOPIC_ID, name=None)],
            allow_auto_topic_creation=False,
        ),
        12,
    ),
    (
        join_group.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            protocol_type="consumer",
            protocols=[
                join_group.JoinGroupRequestProtocol(name="range", metadata=b"\0\1")
            ],
        ),
        5,
    ),
    (
        consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(
            member_id="m",
            member_epoch=4,
            heartbeat_interval_ms=5000,
            assignment=consumer_group_heartbeat.Assignment(
                topic_partitions=[
                    consumer_group_heartbeat.ConsumerGroupHeartbeatResponseTopicPartitions(
                        topic_id=TOPIC_ID, partitions=[0, 5]
                    )
                ]
            ),
        ),
        1,
    ),
    (
        consumer_protocol_subscription.ConsumerProtocolSubscription(
            topics=["a", "b"],
            owned_partitions=[
                consumer_protocol_subscription.TopicPartition(
                    topic="a", partitions=[1, 2]
                )
            ],
            generation_id=5,
            rack_id="r1",
        ),
        3,
    ),
    (end_txn_marker.EndTxnMarker(coordinator_epoch=12), 0),
]

#: What Java wrote, in the same order.
BYTES = [
    ("086b61666b61696f0100"),
    ("086b61666b61696f0108636c75737465720000000200"),
    (
        "0374780667726f75700000000000000005000100000003076d656d62657200025f1d7f3c6a25"
        "4d0c8d0e0a4b6d9c2e1102000000040000000000000009ffffffff01000000"
    ),
    (
        "00000200120000000400000000000201080000000000000007021a02147472616e7361637469"
        "6f6e2e76657273696f6e0002000100"
    ),
    (
        "ffffffff000075300000000100066f7264657273000000020000000300000005626174636800"
        "000004ffffffff"
    ),
    ("037478ffff0000753002076f72646572730300000003066261746368000000000400000000"),
    (
        "037478ffff00007530025f1d7f3c6a254d0c8d0e0a4b6d9c2e11030000000306626174636800"
        "0000000400000000"
    ),
    (
        "00000000000000000063025f1d7f3c6a254d0c8d0e0a4b6d9c2e1102000000010006ffffffff"
        "ffffffffffffffffffffffffffffffffffffffff00ffffffffc9017878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787801"
        "01090000000200000011000001000e0200000002036232000023840000"
    ),
    ("ffffffff"),
    ("025f1d7f3c6a254d0c8d0e0a4b6d9c2e110000000000"),
    (
        "0001670000afc8000493e00000ffff0008636f6e73756d657200000001000572616e67650000"
        "00020001"
    ),
    (
        "00000000000000026d000000040000138801025f1d7f3c6a254d0c8d0e0a4b6d9c2e11030000"
        "000000000005000000"
    ),
    (
        "00000002000161000162ffffffff000000010001610000000200000001000000020000000500"
        "027231"
    ),
    ("0000000c"),
]
