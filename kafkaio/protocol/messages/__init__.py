"""Kafka's messages as dataclasses, written by ``python -m codegen``.

One module per API, named after it in snake case, holds the request, the response and
the structs inside them. A struct keeps the name it has in Kafka's schema; if both
messages of a module have a struct of that name, or it is the name of a message there,
it is prefixed with the name of its message.

The classes are slotted and take keywords only, but are not frozen: decoding assigns
the fields one by one, which is several times faster than going through a frozen
``__init__``. Every field has a default: Kafka's, or else the zero of its type. A field
that the version on the wire does not have decodes to its default.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaio.protocol.messages.add_offsets_to_txn import (
        AddOffsetsToTxnRequest,
        AddOffsetsToTxnResponse,
    )
    from kafkaio.protocol.messages.add_partitions_to_txn import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
    )
    from kafkaio.protocol.messages.add_raft_voter import (
        AddRaftVoterRequest,
        AddRaftVoterResponse,
    )
    from kafkaio.protocol.messages.allocate_producer_ids import (
        AllocateProducerIdsRequest,
        AllocateProducerIdsResponse,
    )
    from kafkaio.protocol.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        AlterClientQuotasResponse,
    )
    from kafkaio.protocol.messages.alter_configs import (
        AlterConfigsRequest,
        AlterConfigsResponse,
    )
    from kafkaio.protocol.messages.alter_partition import (
        AlterPartitionRequest,
        AlterPartitionResponse,
    )
    from kafkaio.protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )
    from kafkaio.protocol.messages.alter_replica_log_dirs import (
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirsResponse,
    )
    from kafkaio.protocol.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsResponse,
    )
    from kafkaio.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
    )
    from kafkaio.protocol.messages.api_versions import (
        ApiVersionsRequest,
        ApiVersionsResponse,
    )
    from kafkaio.protocol.messages.assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest,
        AssignReplicasToDirsResponse,
    )
    from kafkaio.protocol.messages.begin_quorum_epoch import (
        BeginQuorumEpochRequest,
        BeginQuorumEpochResponse,
    )
    from kafkaio.protocol.messages.broker_heartbeat import (
        BrokerHeartbeatRequest,
        BrokerHeartbeatResponse,
    )
    from kafkaio.protocol.messages.broker_registration import (
        BrokerRegistrationRequest,
        BrokerRegistrationResponse,
    )
    from kafkaio.protocol.messages.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )
    from kafkaio.protocol.messages.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from kafkaio.protocol.messages.consumer_protocol_assignment import (
        ConsumerProtocolAssignment,
    )
    from kafkaio.protocol.messages.consumer_protocol_subscription import (
        ConsumerProtocolSubscription,
    )
    from kafkaio.protocol.messages.control_record_type_schema import (
        ControlRecordTypeSchema,
    )
    from kafkaio.protocol.messages.controller_registration import (
        ControllerRegistrationRequest,
        ControllerRegistrationResponse,
    )
    from kafkaio.protocol.messages.create_acls import (
        CreateAclsRequest,
        CreateAclsResponse,
    )
    from kafkaio.protocol.messages.create_delegation_token import (
        CreateDelegationTokenRequest,
        CreateDelegationTokenResponse,
    )
    from kafkaio.protocol.messages.create_partitions import (
        CreatePartitionsRequest,
        CreatePartitionsResponse,
    )
    from kafkaio.protocol.messages.create_topics import (
        CreateTopicsRequest,
        CreateTopicsResponse,
    )
    from kafkaio.protocol.messages.default_principal_data import DefaultPrincipalData
    from kafkaio.protocol.messages.delete_acls import (
        DeleteAclsRequest,
        DeleteAclsResponse,
    )
    from kafkaio.protocol.messages.delete_groups import (
        DeleteGroupsRequest,
        DeleteGroupsResponse,
    )
    from kafkaio.protocol.messages.delete_records import (
        DeleteRecordsRequest,
        DeleteRecordsResponse,
    )
    from kafkaio.protocol.messages.delete_share_group_offsets import (
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsResponse,
    )
    from kafkaio.protocol.messages.delete_share_group_state import (
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
    )
    from kafkaio.protocol.messages.delete_topics import (
        DeleteTopicsRequest,
        DeleteTopicsResponse,
    )
    from kafkaio.protocol.messages.describe_acls import (
        DescribeAclsRequest,
        DescribeAclsResponse,
    )
    from kafkaio.protocol.messages.describe_client_quotas import (
        DescribeClientQuotasRequest,
        DescribeClientQuotasResponse,
    )
    from kafkaio.protocol.messages.describe_cluster import (
        DescribeClusterRequest,
        DescribeClusterResponse,
    )
    from kafkaio.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResponse,
    )
    from kafkaio.protocol.messages.describe_delegation_token import (
        DescribeDelegationTokenRequest,
        DescribeDelegationTokenResponse,
    )
    from kafkaio.protocol.messages.describe_groups import (
        DescribeGroupsRequest,
        DescribeGroupsResponse,
    )
    from kafkaio.protocol.messages.describe_log_dirs import (
        DescribeLogDirsRequest,
        DescribeLogDirsResponse,
    )
    from kafkaio.protocol.messages.describe_producers import (
        DescribeProducersRequest,
        DescribeProducersResponse,
    )
    from kafkaio.protocol.messages.describe_quorum import (
        DescribeQuorumRequest,
        DescribeQuorumResponse,
    )
    from kafkaio.protocol.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsResponse,
    )
    from kafkaio.protocol.messages.describe_topic_partitions import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
    )
    from kafkaio.protocol.messages.describe_transactions import (
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
    )
    from kafkaio.protocol.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
    )
    from kafkaio.protocol.messages.elect_leaders import (
        ElectLeadersRequest,
        ElectLeadersResponse,
    )
    from kafkaio.protocol.messages.end_quorum_epoch import (
        EndQuorumEpochRequest,
        EndQuorumEpochResponse,
    )
    from kafkaio.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
    from kafkaio.protocol.messages.end_txn_marker import EndTxnMarker
    from kafkaio.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
    from kafkaio.protocol.messages.expire_delegation_token import (
        ExpireDelegationTokenRequest,
        ExpireDelegationTokenResponse,
    )
    from kafkaio.protocol.messages.fetch import FetchRequest, FetchResponse
    from kafkaio.protocol.messages.fetch_snapshot import (
        FetchSnapshotRequest,
        FetchSnapshotResponse,
    )
    from kafkaio.protocol.messages.find_coordinator import (
        FindCoordinatorRequest,
        FindCoordinatorResponse,
    )
    from kafkaio.protocol.messages.get_telemetry_subscriptions import (
        GetTelemetrySubscriptionsRequest,
        GetTelemetrySubscriptionsResponse,
    )
    from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
    from kafkaio.protocol.messages.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )
    from kafkaio.protocol.messages.init_producer_id import (
        InitProducerIdRequest,
        InitProducerIdResponse,
    )
    from kafkaio.protocol.messages.initialize_share_group_state import (
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateResponse,
    )
    from kafkaio.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
    from kafkaio.protocol.messages.kraft_version_record import KRaftVersionRecord
    from kafkaio.protocol.messages.leader_change_message import LeaderChangeMessage
    from kafkaio.protocol.messages.leave_group import (
        LeaveGroupRequest,
        LeaveGroupResponse,
    )
    from kafkaio.protocol.messages.list_config_resources import (
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )
    from kafkaio.protocol.messages.list_groups import (
        ListGroupsRequest,
        ListGroupsResponse,
    )
    from kafkaio.protocol.messages.list_offsets import (
        ListOffsetsRequest,
        ListOffsetsResponse,
    )
    from kafkaio.protocol.messages.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )
    from kafkaio.protocol.messages.list_transactions import (
        ListTransactionsRequest,
        ListTransactionsResponse,
    )
    from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataResponse
    from kafkaio.protocol.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitResponse,
    )
    from kafkaio.protocol.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteResponse,
    )
    from kafkaio.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchResponse,
    )
    from kafkaio.protocol.messages.offset_for_leader_epoch import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
    )
    from kafkaio.protocol.messages.produce import ProduceRequest, ProduceResponse
    from kafkaio.protocol.messages.push_telemetry import (
        PushTelemetryRequest,
        PushTelemetryResponse,
    )
    from kafkaio.protocol.messages.read_share_group_state import (
        ReadShareGroupStateRequest,
        ReadShareGroupStateResponse,
    )
    from kafkaio.protocol.messages.read_share_group_state_summary import (
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryResponse,
    )
    from kafkaio.protocol.messages.remove_raft_voter import (
        RemoveRaftVoterRequest,
        RemoveRaftVoterResponse,
    )
    from kafkaio.protocol.messages.renew_delegation_token import (
        RenewDelegationTokenRequest,
        RenewDelegationTokenResponse,
    )
    from kafkaio.protocol.messages.request_header import RequestHeader
    from kafkaio.protocol.messages.response_header import ResponseHeader
    from kafkaio.protocol.messages.sasl_authenticate import (
        SaslAuthenticateRequest,
        SaslAuthenticateResponse,
    )
    from kafkaio.protocol.messages.sasl_handshake import (
        SaslHandshakeRequest,
        SaslHandshakeResponse,
    )
    from kafkaio.protocol.messages.share_acknowledge import (
        ShareAcknowledgeRequest,
        ShareAcknowledgeResponse,
    )
    from kafkaio.protocol.messages.share_fetch import (
        ShareFetchRequest,
        ShareFetchResponse,
    )
    from kafkaio.protocol.messages.share_group_describe import (
        ShareGroupDescribeRequest,
        ShareGroupDescribeResponse,
    )
    from kafkaio.protocol.messages.share_group_heartbeat import (
        ShareGroupHeartbeatRequest,
        ShareGroupHeartbeatResponse,
    )
    from kafkaio.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
    from kafkaio.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
    from kafkaio.protocol.messages.streams_group_describe import (
        StreamsGroupDescribeRequest,
        StreamsGroupDescribeResponse,
    )
    from kafkaio.protocol.messages.streams_group_heartbeat import (
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatResponse,
    )
    from kafkaio.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
    from kafkaio.protocol.messages.txn_offset_commit import (
        TxnOffsetCommitRequest,
        TxnOffsetCommitResponse,
    )
    from kafkaio.protocol.messages.unregister_broker import (
        UnregisterBrokerRequest,
        UnregisterBrokerResponse,
    )
    from kafkaio.protocol.messages.update_features import (
        UpdateFeaturesRequest,
        UpdateFeaturesResponse,
    )
    from kafkaio.protocol.messages.update_raft_voter import (
        UpdateRaftVoterRequest,
        UpdateRaftVoterResponse,
    )
    from kafkaio.protocol.messages.vote import VoteRequest, VoteResponse
    from kafkaio.protocol.messages.voters_record import VotersRecord
    from kafkaio.protocol.messages.write_share_group_state import (
        WriteShareGroupStateRequest,
        WriteShareGroupStateResponse,
    )
    from kafkaio.protocol.messages.write_txn_markers import (
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
    )

__all__ = [
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AddRaftVoterRequest",
    "AddRaftVoterResponse",
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "AlterConfigsRequest",
    "AlterConfigsResponse",
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse",
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsResponse",
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "AssignReplicasToDirsRequest",
    "AssignReplicasToDirsResponse",
    "BeginQuorumEpochRequest",
    "BeginQuorumEpochResponse",
    "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse",
    "BrokerRegistrationRequest",
    "BrokerRegistrationResponse",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "ControlRecordTypeSchema",
    "ControllerRegistrationRequest",
    "ControllerRegistrationResponse",
    "CreateAclsRequest",
    "CreateAclsResponse",
    "CreateDelegationTokenRequest",
    "CreateDelegationTokenResponse",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DefaultPrincipalData",
    "DeleteAclsRequest",
    "DeleteAclsResponse",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsResponse",
    "DeleteShareGroupStateRequest",
    "DeleteShareGroupStateResponse",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "DescribeAclsRequest",
    "DescribeAclsResponse",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "DescribeQuorumRequest",
    "DescribeQuorumResponse",
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsResponse",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "EndQuorumEpochRequest",
    "EndQuorumEpochResponse",
    "EndTxnMarker",
    "EndTxnRequest",
    "EndTxnResponse",
    "EnvelopeRequest",
    "EnvelopeResponse",
    "ExpireDelegationTokenRequest",
    "ExpireDelegationTokenResponse",
    "FetchRequest",
    "FetchResponse",
    "FetchSnapshotRequest",
    "FetchSnapshotResponse",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "GetTelemetrySubscriptionsRequest",
    "GetTelemetrySubscriptionsResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "InitializeShareGroupStateRequest",
    "InitializeShareGroupStateResponse",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "ProduceRequest",
    "ProduceResponse",
    "PushTelemetryRequest",
    "PushTelemetryResponse",
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse",
    "ReadShareGroupStateSummaryRequest",
    "ReadShareGroupStateSummaryResponse",
    "RemoveRaftVoterRequest",
    "RemoveRaftVoterResponse",
    "RenewDelegationTokenRequest",
    "RenewDelegationTokenResponse",
    "RequestHeader",
    "ResponseHeader",
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
    "ShareAcknowledgeRequest",
    "ShareAcknowledgeResponse",
    "ShareFetchRequest",
    "ShareFetchResponse",
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "ShareGroupHeartbeatRequest",
    "ShareGroupHeartbeatResponse",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatResponse",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
    "UnregisterBrokerRequest",
    "UnregisterBrokerResponse",
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
    "UpdateRaftVoterRequest",
    "UpdateRaftVoterResponse",
    "VoteRequest",
    "VoteResponse",
    "VotersRecord",
    "WriteShareGroupStateRequest",
    "WriteShareGroupStateResponse",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]

_MODULES = {
    "AddOffsetsToTxnRequest": "add_offsets_to_txn",
    "AddOffsetsToTxnResponse": "add_offsets_to_txn",
    "AddPartitionsToTxnRequest": "add_partitions_to_txn",
    "AddPartitionsToTxnResponse": "add_partitions_to_txn",
    "AddRaftVoterRequest": "add_raft_voter",
    "AddRaftVoterResponse": "add_raft_voter",
    "AllocateProducerIdsRequest": "allocate_producer_ids",
    "AllocateProducerIdsResponse": "allocate_producer_ids",
    "AlterClientQuotasRequest": "alter_client_quotas",
    "AlterClientQuotasResponse": "alter_client_quotas",
    "AlterConfigsRequest": "alter_configs",
    "AlterConfigsResponse": "alter_configs",
    "AlterPartitionReassignmentsRequest": "alter_partition_reassignments",
    "AlterPartitionReassignmentsResponse": "alter_partition_reassignments",
    "AlterPartitionRequest": "alter_partition",
    "AlterPartitionResponse": "alter_partition",
    "AlterReplicaLogDirsRequest": "alter_replica_log_dirs",
    "AlterReplicaLogDirsResponse": "alter_replica_log_dirs",
    "AlterShareGroupOffsetsRequest": "alter_share_group_offsets",
    "AlterShareGroupOffsetsResponse": "alter_share_group_offsets",
    "AlterUserScramCredentialsRequest": "alter_user_scram_credentials",
    "AlterUserScramCredentialsResponse": "alter_user_scram_credentials",
    "ApiVersionsRequest": "api_versions",
    "ApiVersionsResponse": "api_versions",
    "AssignReplicasToDirsRequest": "assign_replicas_to_dirs",
    "AssignReplicasToDirsResponse": "assign_replicas_to_dirs",
    "BeginQuorumEpochRequest": "begin_quorum_epoch",
    "BeginQuorumEpochResponse": "begin_quorum_epoch",
    "BrokerHeartbeatRequest": "broker_heartbeat",
    "BrokerHeartbeatResponse": "broker_heartbeat",
    "BrokerRegistrationRequest": "broker_registration",
    "BrokerRegistrationResponse": "broker_registration",
    "ConsumerGroupDescribeRequest": "consumer_group_describe",
    "ConsumerGroupDescribeResponse": "consumer_group_describe",
    "ConsumerGroupHeartbeatRequest": "consumer_group_heartbeat",
    "ConsumerGroupHeartbeatResponse": "consumer_group_heartbeat",
    "ConsumerProtocolAssignment": "consumer_protocol_assignment",
    "ConsumerProtocolSubscription": "consumer_protocol_subscription",
    "ControlRecordTypeSchema": "control_record_type_schema",
    "ControllerRegistrationRequest": "controller_registration",
    "ControllerRegistrationResponse": "controller_registration",
    "CreateAclsRequest": "create_acls",
    "CreateAclsResponse": "create_acls",
    "CreateDelegationTokenRequest": "create_delegation_token",
    "CreateDelegationTokenResponse": "create_delegation_token",
    "CreatePartitionsRequest": "create_partitions",
    "CreatePartitionsResponse": "create_partitions",
    "CreateTopicsRequest": "create_topics",
    "CreateTopicsResponse": "create_topics",
    "DefaultPrincipalData": "default_principal_data",
    "DeleteAclsRequest": "delete_acls",
    "DeleteAclsResponse": "delete_acls",
    "DeleteGroupsRequest": "delete_groups",
    "DeleteGroupsResponse": "delete_groups",
    "DeleteRecordsRequest": "delete_records",
    "DeleteRecordsResponse": "delete_records",
    "DeleteShareGroupOffsetsRequest": "delete_share_group_offsets",
    "DeleteShareGroupOffsetsResponse": "delete_share_group_offsets",
    "DeleteShareGroupStateRequest": "delete_share_group_state",
    "DeleteShareGroupStateResponse": "delete_share_group_state",
    "DeleteTopicsRequest": "delete_topics",
    "DeleteTopicsResponse": "delete_topics",
    "DescribeAclsRequest": "describe_acls",
    "DescribeAclsResponse": "describe_acls",
    "DescribeClientQuotasRequest": "describe_client_quotas",
    "DescribeClientQuotasResponse": "describe_client_quotas",
    "DescribeClusterRequest": "describe_cluster",
    "DescribeClusterResponse": "describe_cluster",
    "DescribeConfigsRequest": "describe_configs",
    "DescribeConfigsResponse": "describe_configs",
    "DescribeDelegationTokenRequest": "describe_delegation_token",
    "DescribeDelegationTokenResponse": "describe_delegation_token",
    "DescribeGroupsRequest": "describe_groups",
    "DescribeGroupsResponse": "describe_groups",
    "DescribeLogDirsRequest": "describe_log_dirs",
    "DescribeLogDirsResponse": "describe_log_dirs",
    "DescribeProducersRequest": "describe_producers",
    "DescribeProducersResponse": "describe_producers",
    "DescribeQuorumRequest": "describe_quorum",
    "DescribeQuorumResponse": "describe_quorum",
    "DescribeShareGroupOffsetsRequest": "describe_share_group_offsets",
    "DescribeShareGroupOffsetsResponse": "describe_share_group_offsets",
    "DescribeTopicPartitionsRequest": "describe_topic_partitions",
    "DescribeTopicPartitionsResponse": "describe_topic_partitions",
    "DescribeTransactionsRequest": "describe_transactions",
    "DescribeTransactionsResponse": "describe_transactions",
    "DescribeUserScramCredentialsRequest": "describe_user_scram_credentials",
    "DescribeUserScramCredentialsResponse": "describe_user_scram_credentials",
    "ElectLeadersRequest": "elect_leaders",
    "ElectLeadersResponse": "elect_leaders",
    "EndQuorumEpochRequest": "end_quorum_epoch",
    "EndQuorumEpochResponse": "end_quorum_epoch",
    "EndTxnMarker": "end_txn_marker",
    "EndTxnRequest": "end_txn",
    "EndTxnResponse": "end_txn",
    "EnvelopeRequest": "envelope",
    "EnvelopeResponse": "envelope",
    "ExpireDelegationTokenRequest": "expire_delegation_token",
    "ExpireDelegationTokenResponse": "expire_delegation_token",
    "FetchRequest": "fetch",
    "FetchResponse": "fetch",
    "FetchSnapshotRequest": "fetch_snapshot",
    "FetchSnapshotResponse": "fetch_snapshot",
    "FindCoordinatorRequest": "find_coordinator",
    "FindCoordinatorResponse": "find_coordinator",
    "GetTelemetrySubscriptionsRequest": "get_telemetry_subscriptions",
    "GetTelemetrySubscriptionsResponse": "get_telemetry_subscriptions",
    "HeartbeatRequest": "heartbeat",
    "HeartbeatResponse": "heartbeat",
    "IncrementalAlterConfigsRequest": "incremental_alter_configs",
    "IncrementalAlterConfigsResponse": "incremental_alter_configs",
    "InitProducerIdRequest": "init_producer_id",
    "InitProducerIdResponse": "init_producer_id",
    "InitializeShareGroupStateRequest": "initialize_share_group_state",
    "InitializeShareGroupStateResponse": "initialize_share_group_state",
    "JoinGroupRequest": "join_group",
    "JoinGroupResponse": "join_group",
    "KRaftVersionRecord": "kraft_version_record",
    "LeaderChangeMessage": "leader_change_message",
    "LeaveGroupRequest": "leave_group",
    "LeaveGroupResponse": "leave_group",
    "ListConfigResourcesRequest": "list_config_resources",
    "ListConfigResourcesResponse": "list_config_resources",
    "ListGroupsRequest": "list_groups",
    "ListGroupsResponse": "list_groups",
    "ListOffsetsRequest": "list_offsets",
    "ListOffsetsResponse": "list_offsets",
    "ListPartitionReassignmentsRequest": "list_partition_reassignments",
    "ListPartitionReassignmentsResponse": "list_partition_reassignments",
    "ListTransactionsRequest": "list_transactions",
    "ListTransactionsResponse": "list_transactions",
    "MetadataRequest": "metadata",
    "MetadataResponse": "metadata",
    "OffsetCommitRequest": "offset_commit",
    "OffsetCommitResponse": "offset_commit",
    "OffsetDeleteRequest": "offset_delete",
    "OffsetDeleteResponse": "offset_delete",
    "OffsetFetchRequest": "offset_fetch",
    "OffsetFetchResponse": "offset_fetch",
    "OffsetForLeaderEpochRequest": "offset_for_leader_epoch",
    "OffsetForLeaderEpochResponse": "offset_for_leader_epoch",
    "ProduceRequest": "produce",
    "ProduceResponse": "produce",
    "PushTelemetryRequest": "push_telemetry",
    "PushTelemetryResponse": "push_telemetry",
    "ReadShareGroupStateRequest": "read_share_group_state",
    "ReadShareGroupStateResponse": "read_share_group_state",
    "ReadShareGroupStateSummaryRequest": "read_share_group_state_summary",
    "ReadShareGroupStateSummaryResponse": "read_share_group_state_summary",
    "RemoveRaftVoterRequest": "remove_raft_voter",
    "RemoveRaftVoterResponse": "remove_raft_voter",
    "RenewDelegationTokenRequest": "renew_delegation_token",
    "RenewDelegationTokenResponse": "renew_delegation_token",
    "RequestHeader": "request_header",
    "ResponseHeader": "response_header",
    "SaslAuthenticateRequest": "sasl_authenticate",
    "SaslAuthenticateResponse": "sasl_authenticate",
    "SaslHandshakeRequest": "sasl_handshake",
    "SaslHandshakeResponse": "sasl_handshake",
    "ShareAcknowledgeRequest": "share_acknowledge",
    "ShareAcknowledgeResponse": "share_acknowledge",
    "ShareFetchRequest": "share_fetch",
    "ShareFetchResponse": "share_fetch",
    "ShareGroupDescribeRequest": "share_group_describe",
    "ShareGroupDescribeResponse": "share_group_describe",
    "ShareGroupHeartbeatRequest": "share_group_heartbeat",
    "ShareGroupHeartbeatResponse": "share_group_heartbeat",
    "SnapshotFooterRecord": "snapshot_footer_record",
    "SnapshotHeaderRecord": "snapshot_header_record",
    "StreamsGroupDescribeRequest": "streams_group_describe",
    "StreamsGroupDescribeResponse": "streams_group_describe",
    "StreamsGroupHeartbeatRequest": "streams_group_heartbeat",
    "StreamsGroupHeartbeatResponse": "streams_group_heartbeat",
    "SyncGroupRequest": "sync_group",
    "SyncGroupResponse": "sync_group",
    "TxnOffsetCommitRequest": "txn_offset_commit",
    "TxnOffsetCommitResponse": "txn_offset_commit",
    "UnregisterBrokerRequest": "unregister_broker",
    "UnregisterBrokerResponse": "unregister_broker",
    "UpdateFeaturesRequest": "update_features",
    "UpdateFeaturesResponse": "update_features",
    "UpdateRaftVoterRequest": "update_raft_voter",
    "UpdateRaftVoterResponse": "update_raft_voter",
    "VoteRequest": "vote",
    "VoteResponse": "vote",
    "VotersRecord": "voters_record",
    "WriteShareGroupStateRequest": "write_share_group_state",
    "WriteShareGroupStateResponse": "write_share_group_state",
    "WriteTxnMarkersRequest": "write_txn_markers",
    "WriteTxnMarkersResponse": "write_txn_markers",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"{__name__} has no message {name!r}")
    found: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
