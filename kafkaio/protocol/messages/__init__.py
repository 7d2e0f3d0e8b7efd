"""Kafka's messages as dataclasses, written by ``python -m codegen``.

Every message, and every struct inside one, is a name of this package; its module is
imported when it is first used::

    request = messages.OffsetFetchRequest(
        groups=[messages.OffsetFetchRequestGroup(group_id="billing", topics=None)]
    )

One module per API, named after it in snake case, holds the request, the response and
the structs inside them. A struct keeps the name it has in Kafka's schema. Where that
name is not unique, the name of the struct's message precedes it:

- In a module, if both messages have a struct of that name, or it is the name of a
  message there: ``JoinGroupRequestProtocol``.
- In this package, if structs of several modules have that name: ``FetchPartition`` of
  the module ``fetch`` is ``FetchRequestFetchPartition`` here, because ``share_fetch``
  has a ``FetchPartition`` too. The class is the same, and its ``repr`` shows the name
  that it has in its module.

The classes are slotted and take keywords only, but are not frozen: decoding assigns
the fields one by one, which is several times faster than going through a frozen
``__init__``. Every field has a default: Kafka's, or else the zero of its type. A field
that the version on the wire does not have decodes to its default.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaio.protocol.messages.aborted_txn import AbortedTxn
    from kafkaio.protocol.messages.add_offsets_to_txn import (
        AddOffsetsToTxnRequest,
        AddOffsetsToTxnResponse,
    )
    from kafkaio.protocol.messages.add_partitions_to_txn import (
        AddPartitionsToTxnPartitionResult,
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
        AddPartitionsToTxnResult,
        AddPartitionsToTxnTopic,
        AddPartitionsToTxnTopicResult,
        AddPartitionsToTxnTransaction,
    )
    from kafkaio.protocol.messages.add_raft_voter import (
        AddRaftVoterRequest,
        AddRaftVoterResponse,
    )
    from kafkaio.protocol.messages.add_raft_voter import (
        Listener as AddRaftVoterRequestListener,
    )
    from kafkaio.protocol.messages.allocate_producer_ids import (
        AllocateProducerIdsRequest,
        AllocateProducerIdsResponse,
    )
    from kafkaio.protocol.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        AlterClientQuotasRequestEntityData,
        AlterClientQuotasRequestEntryData,
        AlterClientQuotasResponse,
        AlterClientQuotasResponseEntityData,
        AlterClientQuotasResponseEntryData,
        OpData,
    )
    from kafkaio.protocol.messages.alter_configs import (
        AlterableConfig as AlterConfigsRequestAlterableConfig,
    )
    from kafkaio.protocol.messages.alter_configs import (
        AlterConfigsRequest,
        AlterConfigsResponse,
    )
    from kafkaio.protocol.messages.alter_configs import (
        AlterConfigsResource as AlterConfigsRequestAlterConfigsResource,
    )
    from kafkaio.protocol.messages.alter_configs import (
        AlterConfigsResourceResponse as AlterConfigsResponseAlterConfigsResourceResponse,
    )
    from kafkaio.protocol.messages.alter_partition import (
        AlterPartitionRequest,
        AlterPartitionRequestPartitionData,
        AlterPartitionRequestTopicData,
        AlterPartitionResponse,
        AlterPartitionResponsePartitionData,
        AlterPartitionResponseTopicData,
        BrokerState,
    )
    from kafkaio.protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        ReassignablePartition,
        ReassignablePartitionResponse,
        ReassignableTopic,
        ReassignableTopicResponse,
    )
    from kafkaio.protocol.messages.alter_replica_log_dirs import (
        AlterReplicaLogDir,
        AlterReplicaLogDirPartitionResult,
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirsResponse,
        AlterReplicaLogDirTopic,
        AlterReplicaLogDirTopicResult,
    )
    from kafkaio.protocol.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
        AlterShareGroupOffsetsResponse,
        AlterShareGroupOffsetsResponsePartition,
        AlterShareGroupOffsetsResponseTopic,
    )
    from kafkaio.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
        AlterUserScramCredentialsResult,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )
    from kafkaio.protocol.messages.api_versions import (
        ApiVersion,
        ApiVersionsRequest,
        ApiVersionsResponse,
        FinalizedFeatureKey,
        SupportedFeatureKey,
    )
    from kafkaio.protocol.messages.assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest,
        AssignReplicasToDirsRequestDirectoryData,
        AssignReplicasToDirsRequestPartitionData,
        AssignReplicasToDirsRequestTopicData,
        AssignReplicasToDirsResponse,
        AssignReplicasToDirsResponseDirectoryData,
        AssignReplicasToDirsResponsePartitionData,
        AssignReplicasToDirsResponseTopicData,
    )
    from kafkaio.protocol.messages.begin_quorum_epoch import (
        BeginQuorumEpochRequest,
        BeginQuorumEpochRequestPartitionData,
        BeginQuorumEpochRequestTopicData,
        BeginQuorumEpochResponse,
        BeginQuorumEpochResponsePartitionData,
        BeginQuorumEpochResponseTopicData,
    )
    from kafkaio.protocol.messages.begin_quorum_epoch import (
        LeaderEndpoint as BeginQuorumEpochRequestLeaderEndpoint,
    )
    from kafkaio.protocol.messages.begin_quorum_epoch import (
        NodeEndpoint as BeginQuorumEpochResponseNodeEndpoint,
    )
    from kafkaio.protocol.messages.broker_heartbeat import (
        BrokerHeartbeatRequest,
        BrokerHeartbeatResponse,
    )
    from kafkaio.protocol.messages.broker_registration import (
        BrokerRegistrationRequest,
        BrokerRegistrationResponse,
    )
    from kafkaio.protocol.messages.broker_registration import (
        Feature as BrokerRegistrationRequestFeature,
    )
    from kafkaio.protocol.messages.broker_registration import (
        Listener as BrokerRegistrationRequestListener,
    )
    from kafkaio.protocol.messages.consumer_group_describe import (
        Assignment as ConsumerGroupDescribeResponseAssignment,
    )
    from kafkaio.protocol.messages.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )
    from kafkaio.protocol.messages.consumer_group_describe import (
        DescribedGroup as ConsumerGroupDescribeResponseDescribedGroup,
    )
    from kafkaio.protocol.messages.consumer_group_describe import (
        Member as ConsumerGroupDescribeResponseMember,
    )
    from kafkaio.protocol.messages.consumer_group_describe import (
        TopicPartitions as ConsumerGroupDescribeResponseTopicPartitions,
    )
    from kafkaio.protocol.messages.consumer_group_heartbeat import (
        Assignment as ConsumerGroupHeartbeatResponseAssignment,
    )
    from kafkaio.protocol.messages.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatRequestTopicPartitions,
        ConsumerGroupHeartbeatResponse,
        ConsumerGroupHeartbeatResponseTopicPartitions,
    )
    from kafkaio.protocol.messages.consumer_protocol_assignment import (
        ConsumerProtocolAssignment,
    )
    from kafkaio.protocol.messages.consumer_protocol_assignment import (
        TopicPartition as ConsumerProtocolAssignmentTopicPartition,
    )
    from kafkaio.protocol.messages.consumer_protocol_subscription import (
        ConsumerProtocolSubscription,
    )
    from kafkaio.protocol.messages.consumer_protocol_subscription import (
        TopicPartition as ConsumerProtocolSubscriptionTopicPartition,
    )
    from kafkaio.protocol.messages.control_record_type_schema import (
        ControlRecordTypeSchema,
    )
    from kafkaio.protocol.messages.controller_registration import (
        ControllerRegistrationRequest,
        ControllerRegistrationResponse,
    )
    from kafkaio.protocol.messages.controller_registration import (
        Feature as ControllerRegistrationRequestFeature,
    )
    from kafkaio.protocol.messages.controller_registration import (
        Listener as ControllerRegistrationRequestListener,
    )
    from kafkaio.protocol.messages.create_acls import (
        AclCreation,
        AclCreationResult,
        CreateAclsRequest,
        CreateAclsResponse,
    )
    from kafkaio.protocol.messages.create_delegation_token import (
        CreatableRenewers,
        CreateDelegationTokenRequest,
        CreateDelegationTokenResponse,
    )
    from kafkaio.protocol.messages.create_partitions import (
        CreatePartitionsAssignment,
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        CreatePartitionsTopic,
        CreatePartitionsTopicResult,
    )
    from kafkaio.protocol.messages.create_topics import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
        CreatableTopicConfigs,
        CreatableTopicResult,
        CreateTopicsRequest,
        CreateTopicsResponse,
    )
    from kafkaio.protocol.messages.default_principal_data import DefaultPrincipalData
    from kafkaio.protocol.messages.delete_acls import (
        DeleteAclsFilter,
        DeleteAclsFilterResult,
        DeleteAclsMatchingAcl,
        DeleteAclsRequest,
        DeleteAclsResponse,
    )
    from kafkaio.protocol.messages.delete_groups import (
        DeletableGroupResult,
        DeleteGroupsRequest,
        DeleteGroupsResponse,
    )
    from kafkaio.protocol.messages.delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsPartitionResult,
        DeleteRecordsRequest,
        DeleteRecordsResponse,
        DeleteRecordsTopic,
        DeleteRecordsTopicResult,
    )
    from kafkaio.protocol.messages.delete_share_group_offsets import (
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequestTopic,
        DeleteShareGroupOffsetsResponse,
        DeleteShareGroupOffsetsResponseTopic,
    )
    from kafkaio.protocol.messages.delete_share_group_state import (
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
        DeleteStateData,
        DeleteStateResult,
    )
    from kafkaio.protocol.messages.delete_share_group_state import (
        PartitionData as DeleteShareGroupStateRequestPartitionData,
    )
    from kafkaio.protocol.messages.delete_share_group_state import (
        PartitionResult as DeleteShareGroupStateResponsePartitionResult,
    )
    from kafkaio.protocol.messages.delete_topics import (
        DeletableTopicResult,
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        DeleteTopicState,
    )
    from kafkaio.protocol.messages.describe_acls import (
        AclDescription,
        DescribeAclsRequest,
        DescribeAclsResource,
        DescribeAclsResponse,
    )
    from kafkaio.protocol.messages.describe_client_quotas import (
        ComponentData,
        DescribeClientQuotasRequest,
        DescribeClientQuotasResponse,
        EntityData,
        EntryData,
        ValueData,
    )
    from kafkaio.protocol.messages.describe_cluster import (
        DescribeClusterBroker,
        DescribeClusterRequest,
        DescribeClusterResponse,
    )
    from kafkaio.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResourceResult,
        DescribeConfigsResponse,
        DescribeConfigsResult,
        DescribeConfigsSynonym,
    )
    from kafkaio.protocol.messages.describe_delegation_token import (
        DescribedDelegationToken,
        DescribedDelegationTokenRenewer,
        DescribeDelegationTokenOwner,
        DescribeDelegationTokenRequest,
        DescribeDelegationTokenResponse,
    )
    from kafkaio.protocol.messages.describe_groups import (
        DescribedGroup as DescribeGroupsResponseDescribedGroup,
    )
    from kafkaio.protocol.messages.describe_groups import (
        DescribedGroupMember,
        DescribeGroupsRequest,
        DescribeGroupsResponse,
    )
    from kafkaio.protocol.messages.describe_log_dirs import (
        DescribableLogDirTopic,
        DescribeLogDirsPartition,
        DescribeLogDirsRequest,
        DescribeLogDirsResponse,
        DescribeLogDirsResult,
        DescribeLogDirsTopic,
    )
    from kafkaio.protocol.messages.describe_producers import (
        DescribeProducersRequest,
        DescribeProducersResponse,
        PartitionResponse,
        ProducerState,
        TopicResponse,
    )
    from kafkaio.protocol.messages.describe_producers import (
        TopicRequest as DescribeProducersRequestTopicRequest,
    )
    from kafkaio.protocol.messages.describe_quorum import (
        DescribeQuorumRequest,
        DescribeQuorumRequestPartitionData,
        DescribeQuorumRequestTopicData,
        DescribeQuorumResponse,
        DescribeQuorumResponsePartitionData,
        DescribeQuorumResponseTopicData,
        Node,
    )
    from kafkaio.protocol.messages.describe_quorum import (
        Listener as DescribeQuorumResponseListener,
    )
    from kafkaio.protocol.messages.describe_quorum import (
        ReplicaState as DescribeQuorumResponseReplicaState,
    )
    from kafkaio.protocol.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
        DescribeShareGroupOffsetsRequestTopic,
        DescribeShareGroupOffsetsResponse,
        DescribeShareGroupOffsetsResponseGroup,
        DescribeShareGroupOffsetsResponsePartition,
        DescribeShareGroupOffsetsResponseTopic,
    )
    from kafkaio.protocol.messages.describe_topic_partitions import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsRequestCursor,
        DescribeTopicPartitionsResponse,
        DescribeTopicPartitionsResponseCursor,
        DescribeTopicPartitionsResponsePartition,
        DescribeTopicPartitionsResponseTopic,
    )
    from kafkaio.protocol.messages.describe_topic_partitions import (
        TopicRequest as DescribeTopicPartitionsRequestTopicRequest,
    )
    from kafkaio.protocol.messages.describe_transactions import (
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
        TopicData,
    )
    from kafkaio.protocol.messages.describe_transactions import (
        TransactionState as DescribeTransactionsResponseTransactionState,
    )
    from kafkaio.protocol.messages.describe_user_scram_credentials import (
        CredentialInfo,
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
        DescribeUserScramCredentialsResult,
        UserName,
    )
    from kafkaio.protocol.messages.elect_leaders import (
        ElectLeadersRequest,
        ElectLeadersResponse,
        ReplicaElectionResult,
    )
    from kafkaio.protocol.messages.elect_leaders import (
        PartitionResult as ElectLeadersResponsePartitionResult,
    )
    from kafkaio.protocol.messages.elect_leaders import (
        TopicPartitions as ElectLeadersRequestTopicPartitions,
    )
    from kafkaio.protocol.messages.end_quorum_epoch import (
        EndQuorumEpochRequest,
        EndQuorumEpochRequestPartitionData,
        EndQuorumEpochRequestTopicData,
        EndQuorumEpochResponse,
        EndQuorumEpochResponsePartitionData,
        EndQuorumEpochResponseTopicData,
        ReplicaInfo,
    )
    from kafkaio.protocol.messages.end_quorum_epoch import (
        LeaderEndpoint as EndQuorumEpochRequestLeaderEndpoint,
    )
    from kafkaio.protocol.messages.end_quorum_epoch import (
        NodeEndpoint as EndQuorumEpochResponseNodeEndpoint,
    )
    from kafkaio.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
    from kafkaio.protocol.messages.end_txn_marker import EndTxnMarker
    from kafkaio.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
    from kafkaio.protocol.messages.expire_delegation_token import (
        ExpireDelegationTokenRequest,
        ExpireDelegationTokenResponse,
    )
    from kafkaio.protocol.messages.fetch import (
        AbortedTransaction,
        FetchableTopicResponse,
        FetchRequest,
        FetchResponse,
        SnapshotId,
    )
    from kafkaio.protocol.messages.fetch import (
        EpochEndOffset as FetchResponseEpochEndOffset,
    )
    from kafkaio.protocol.messages.fetch import (
        FetchPartition as FetchRequestFetchPartition,
    )
    from kafkaio.protocol.messages.fetch import FetchTopic as FetchRequestFetchTopic
    from kafkaio.protocol.messages.fetch import (
        ForgottenTopic as FetchRequestForgottenTopic,
    )
    from kafkaio.protocol.messages.fetch import (
        LeaderIdAndEpoch as FetchResponseLeaderIdAndEpoch,
    )
    from kafkaio.protocol.messages.fetch import (
        NodeEndpoint as FetchResponseNodeEndpoint,
    )
    from kafkaio.protocol.messages.fetch import (
        PartitionData as FetchResponsePartitionData,
    )
    from kafkaio.protocol.messages.fetch import ReplicaState as FetchRequestReplicaState
    from kafkaio.protocol.messages.fetch_snapshot import (
        FetchSnapshotRequest,
        FetchSnapshotRequestPartitionSnapshot,
        FetchSnapshotRequestSnapshotId,
        FetchSnapshotRequestTopicSnapshot,
        FetchSnapshotResponse,
        FetchSnapshotResponsePartitionSnapshot,
        FetchSnapshotResponseSnapshotId,
        FetchSnapshotResponseTopicSnapshot,
    )
    from kafkaio.protocol.messages.fetch_snapshot import (
        LeaderIdAndEpoch as FetchSnapshotResponseLeaderIdAndEpoch,
    )
    from kafkaio.protocol.messages.fetch_snapshot import (
        NodeEndpoint as FetchSnapshotResponseNodeEndpoint,
    )
    from kafkaio.protocol.messages.find_coordinator import (
        Coordinator,
        FindCoordinatorRequest,
        FindCoordinatorResponse,
    )
    from kafkaio.protocol.messages.get_telemetry_subscriptions import (
        GetTelemetrySubscriptionsRequest,
        GetTelemetrySubscriptionsResponse,
    )
    from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
    from kafkaio.protocol.messages.incremental_alter_configs import (
        AlterableConfig as IncrementalAlterConfigsRequestAlterableConfig,
    )
    from kafkaio.protocol.messages.incremental_alter_configs import (
        AlterConfigsResource as IncrementalAlterConfigsRequestAlterConfigsResource,
    )
    from kafkaio.protocol.messages.incremental_alter_configs import (
        AlterConfigsResourceResponse as IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    )
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
        InitializeStateData,
        InitializeStateResult,
    )
    from kafkaio.protocol.messages.initialize_share_group_state import (
        PartitionData as InitializeShareGroupStateRequestPartitionData,
    )
    from kafkaio.protocol.messages.initialize_share_group_state import (
        PartitionResult as InitializeShareGroupStateResponsePartitionResult,
    )
    from kafkaio.protocol.messages.join_group import (
        JoinGroupRequest,
        JoinGroupRequestProtocol,
        JoinGroupResponse,
        JoinGroupResponseMember,
    )
    from kafkaio.protocol.messages.kraft_version_record import KRaftVersionRecord
    from kafkaio.protocol.messages.leader_change_message import LeaderChangeMessage
    from kafkaio.protocol.messages.leader_change_message import (
        Voter as LeaderChangeMessageVoter,
    )
    from kafkaio.protocol.messages.leave_group import (
        LeaveGroupRequest,
        LeaveGroupResponse,
        MemberIdentity,
        MemberResponse,
    )
    from kafkaio.protocol.messages.list_config_resources import (
        ConfigResource,
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )
    from kafkaio.protocol.messages.list_groups import (
        ListedGroup,
        ListGroupsRequest,
        ListGroupsResponse,
    )
    from kafkaio.protocol.messages.list_offsets import (
        ListOffsetsPartition,
        ListOffsetsPartitionResponse,
        ListOffsetsRequest,
        ListOffsetsResponse,
        ListOffsetsTopic,
        ListOffsetsTopicResponse,
    )
    from kafkaio.protocol.messages.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
        ListPartitionReassignmentsTopics,
        OngoingPartitionReassignment,
        OngoingTopicReassignment,
    )
    from kafkaio.protocol.messages.list_transactions import (
        ListTransactionsRequest,
        ListTransactionsResponse,
    )
    from kafkaio.protocol.messages.list_transactions import (
        TransactionState as ListTransactionsResponseTransactionState,
    )
    from kafkaio.protocol.messages.metadata import (
        MetadataRequest,
        MetadataRequestTopic,
        MetadataResponse,
        MetadataResponseBroker,
        MetadataResponsePartition,
        MetadataResponseTopic,
    )
    from kafkaio.protocol.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
        OffsetCommitResponse,
        OffsetCommitResponsePartition,
        OffsetCommitResponseTopic,
    )
    from kafkaio.protocol.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
        OffsetDeleteResponse,
        OffsetDeleteResponsePartition,
        OffsetDeleteResponseTopic,
    )
    from kafkaio.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopic,
        OffsetFetchRequestTopics,
        OffsetFetchResponse,
        OffsetFetchResponseGroup,
        OffsetFetchResponsePartition,
        OffsetFetchResponsePartitions,
        OffsetFetchResponseTopic,
        OffsetFetchResponseTopics,
    )
    from kafkaio.protocol.messages.offset_for_leader_epoch import (
        EpochEndOffset as OffsetForLeaderEpochResponseEpochEndOffset,
    )
    from kafkaio.protocol.messages.offset_for_leader_epoch import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
        OffsetForLeaderPartition,
        OffsetForLeaderTopic,
        OffsetForLeaderTopicResult,
    )
    from kafkaio.protocol.messages.produce import (
        BatchIndexAndErrorMessage,
        PartitionProduceData,
        PartitionProduceResponse,
        ProduceRequest,
        ProduceResponse,
        TopicProduceData,
        TopicProduceResponse,
    )
    from kafkaio.protocol.messages.produce import (
        LeaderIdAndEpoch as ProduceResponseLeaderIdAndEpoch,
    )
    from kafkaio.protocol.messages.produce import (
        NodeEndpoint as ProduceResponseNodeEndpoint,
    )
    from kafkaio.protocol.messages.push_telemetry import (
        PushTelemetryRequest,
        PushTelemetryResponse,
    )
    from kafkaio.protocol.messages.read_share_group_state import (
        PartitionData as ReadShareGroupStateRequestPartitionData,
    )
    from kafkaio.protocol.messages.read_share_group_state import (
        PartitionResult as ReadShareGroupStateResponsePartitionResult,
    )
    from kafkaio.protocol.messages.read_share_group_state import (
        ReadShareGroupStateRequest,
        ReadShareGroupStateResponse,
        ReadStateData,
        ReadStateResult,
    )
    from kafkaio.protocol.messages.read_share_group_state import (
        StateBatch as ReadShareGroupStateResponseStateBatch,
    )
    from kafkaio.protocol.messages.read_share_group_state_summary import (
        PartitionData as ReadShareGroupStateSummaryRequestPartitionData,
    )
    from kafkaio.protocol.messages.read_share_group_state_summary import (
        PartitionResult as ReadShareGroupStateSummaryResponsePartitionResult,
    )
    from kafkaio.protocol.messages.read_share_group_state_summary import (
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryResponse,
        ReadStateSummaryData,
        ReadStateSummaryResult,
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
        AcknowledgementBatch as ShareAcknowledgeRequestAcknowledgementBatch,
    )
    from kafkaio.protocol.messages.share_acknowledge import (
        AcknowledgePartition,
        AcknowledgeTopic,
        ShareAcknowledgeRequest,
        ShareAcknowledgeResponse,
        ShareAcknowledgeTopicResponse,
    )
    from kafkaio.protocol.messages.share_acknowledge import (
        LeaderIdAndEpoch as ShareAcknowledgeResponseLeaderIdAndEpoch,
    )
    from kafkaio.protocol.messages.share_acknowledge import (
        NodeEndpoint as ShareAcknowledgeResponseNodeEndpoint,
    )
    from kafkaio.protocol.messages.share_acknowledge import (
        PartitionData as ShareAcknowledgeResponsePartitionData,
    )
    from kafkaio.protocol.messages.share_fetch import (
        AcknowledgementBatch as ShareFetchRequestAcknowledgementBatch,
    )
    from kafkaio.protocol.messages.share_fetch import (
        AcquiredRecords,
        ShareFetchableTopicResponse,
        ShareFetchRequest,
        ShareFetchResponse,
    )
    from kafkaio.protocol.messages.share_fetch import (
        FetchPartition as ShareFetchRequestFetchPartition,
    )
    from kafkaio.protocol.messages.share_fetch import (
        FetchTopic as ShareFetchRequestFetchTopic,
    )
    from kafkaio.protocol.messages.share_fetch import (
        ForgottenTopic as ShareFetchRequestForgottenTopic,
    )
    from kafkaio.protocol.messages.share_fetch import (
        LeaderIdAndEpoch as ShareFetchResponseLeaderIdAndEpoch,
    )
    from kafkaio.protocol.messages.share_fetch import (
        NodeEndpoint as ShareFetchResponseNodeEndpoint,
    )
    from kafkaio.protocol.messages.share_fetch import (
        PartitionData as ShareFetchResponsePartitionData,
    )
    from kafkaio.protocol.messages.share_group_describe import (
        Assignment as ShareGroupDescribeResponseAssignment,
    )
    from kafkaio.protocol.messages.share_group_describe import (
        DescribedGroup as ShareGroupDescribeResponseDescribedGroup,
    )
    from kafkaio.protocol.messages.share_group_describe import (
        Member as ShareGroupDescribeResponseMember,
    )
    from kafkaio.protocol.messages.share_group_describe import (
        ShareGroupDescribeRequest,
        ShareGroupDescribeResponse,
    )
    from kafkaio.protocol.messages.share_group_describe import (
        TopicPartitions as ShareGroupDescribeResponseTopicPartitions,
    )
    from kafkaio.protocol.messages.share_group_heartbeat import (
        Assignment as ShareGroupHeartbeatResponseAssignment,
    )
    from kafkaio.protocol.messages.share_group_heartbeat import (
        ShareGroupHeartbeatRequest,
        ShareGroupHeartbeatResponse,
    )
    from kafkaio.protocol.messages.share_group_heartbeat import (
        TopicPartitions as ShareGroupHeartbeatResponseTopicPartitions,
    )
    from kafkaio.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
    from kafkaio.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
    from kafkaio.protocol.messages.streams_group_describe import (
        Assignment as StreamsGroupDescribeResponseAssignment,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        DescribedGroup as StreamsGroupDescribeResponseDescribedGroup,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        Endpoint as StreamsGroupDescribeResponseEndpoint,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        KeyValue as StreamsGroupDescribeResponseKeyValue,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        Member as StreamsGroupDescribeResponseMember,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        StreamsGroupDescribeRequest,
        StreamsGroupDescribeResponse,
        TaskIds,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        Subtopology as StreamsGroupDescribeResponseSubtopology,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        TaskOffset as StreamsGroupDescribeResponseTaskOffset,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        TopicInfo as StreamsGroupDescribeResponseTopicInfo,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        Topology as StreamsGroupDescribeResponseTopology,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        TopologyDescription as StreamsGroupDescribeResponseTopologyDescription,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        TopologyDescriptionGlobalStore as StreamsGroupDescribeResponseTopologyDescriptionGlobalStore,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        TopologyDescriptionNode as StreamsGroupDescribeResponseTopologyDescriptionNode,
    )
    from kafkaio.protocol.messages.streams_group_describe import (
        TopologyDescriptionSubtopology as StreamsGroupDescribeResponseTopologyDescriptionSubtopology,
    )
    from kafkaio.protocol.messages.streams_group_heartbeat import (
        CopartitionGroup,
        EndpointToPartitions,
        Status,
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatRequestEndpoint,
        StreamsGroupHeartbeatRequestTaskIds,
        StreamsGroupHeartbeatResponse,
        StreamsGroupHeartbeatResponseEndpoint,
        StreamsGroupHeartbeatResponseTaskIds,
    )
    from kafkaio.protocol.messages.streams_group_heartbeat import (
        KeyValue as StreamsGroupHeartbeatRequestKeyValue,
    )
    from kafkaio.protocol.messages.streams_group_heartbeat import (
        Subtopology as StreamsGroupHeartbeatRequestSubtopology,
    )
    from kafkaio.protocol.messages.streams_group_heartbeat import (
        TaskOffset as StreamsGroupHeartbeatRequestTaskOffset,
    )
    from kafkaio.protocol.messages.streams_group_heartbeat import (
        TopicInfo as StreamsGroupHeartbeatRequestTopicInfo,
    )
    from kafkaio.protocol.messages.streams_group_heartbeat import (
        TopicPartition as StreamsGroupHeartbeatResponseTopicPartition,
    )
    from kafkaio.protocol.messages.streams_group_heartbeat import (
        Topology as StreamsGroupHeartbeatRequestTopology,
    )
    from kafkaio.protocol.messages.streams_group_topology_description_update import (
        StreamsGroupTopologyDescriptionUpdateRequest,
        StreamsGroupTopologyDescriptionUpdateResponse,
    )
    from kafkaio.protocol.messages.streams_group_topology_description_update import (
        TopologyDescription as StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription,
    )
    from kafkaio.protocol.messages.streams_group_topology_description_update import (
        TopologyDescriptionGlobalStore as StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore,
    )
    from kafkaio.protocol.messages.streams_group_topology_description_update import (
        TopologyDescriptionNode as StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode,
    )
    from kafkaio.protocol.messages.streams_group_topology_description_update import (
        TopologyDescriptionSubtopology as StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology,
    )
    from kafkaio.protocol.messages.sync_group import (
        SyncGroupRequest,
        SyncGroupRequestAssignment,
        SyncGroupResponse,
    )
    from kafkaio.protocol.messages.txn_offset_commit import (
        TxnOffsetCommitRequest,
        TxnOffsetCommitRequestPartition,
        TxnOffsetCommitRequestTopic,
        TxnOffsetCommitResponse,
        TxnOffsetCommitResponsePartition,
        TxnOffsetCommitResponseTopic,
    )
    from kafkaio.protocol.messages.unregister_broker import (
        UnregisterBrokerRequest,
        UnregisterBrokerResponse,
    )
    from kafkaio.protocol.messages.unregister_controller import (
        UnregisterControllerRequest,
        UnregisterControllerResponse,
    )
    from kafkaio.protocol.messages.update_features import (
        FeatureUpdateKey,
        UpdatableFeatureResult,
        UpdateFeaturesRequest,
        UpdateFeaturesResponse,
    )
    from kafkaio.protocol.messages.update_raft_voter import (
        CurrentLeader,
        UpdateRaftVoterRequest,
        UpdateRaftVoterResponse,
    )
    from kafkaio.protocol.messages.update_raft_voter import (
        KRaftVersionFeature as UpdateRaftVoterRequestKRaftVersionFeature,
    )
    from kafkaio.protocol.messages.update_raft_voter import (
        Listener as UpdateRaftVoterRequestListener,
    )
    from kafkaio.protocol.messages.vote import NodeEndpoint as VoteResponseNodeEndpoint
    from kafkaio.protocol.messages.vote import (
        VoteRequest,
        VoteRequestPartitionData,
        VoteRequestTopicData,
        VoteResponse,
        VoteResponsePartitionData,
        VoteResponseTopicData,
    )
    from kafkaio.protocol.messages.voters_record import Endpoint as VotersRecordEndpoint
    from kafkaio.protocol.messages.voters_record import (
        KRaftVersionFeature as VotersRecordKRaftVersionFeature,
    )
    from kafkaio.protocol.messages.voters_record import Voter as VotersRecordVoter
    from kafkaio.protocol.messages.voters_record import VotersRecord
    from kafkaio.protocol.messages.write_share_group_state import (
        PartitionData as WriteShareGroupStateRequestPartitionData,
    )
    from kafkaio.protocol.messages.write_share_group_state import (
        PartitionResult as WriteShareGroupStateResponsePartitionResult,
    )
    from kafkaio.protocol.messages.write_share_group_state import (
        StateBatch as WriteShareGroupStateRequestStateBatch,
    )
    from kafkaio.protocol.messages.write_share_group_state import (
        WriteShareGroupStateRequest,
        WriteShareGroupStateResponse,
        WriteStateData,
        WriteStateResult,
    )
    from kafkaio.protocol.messages.write_txn_markers import (
        WritableTxnMarker,
        WritableTxnMarkerPartitionResult,
        WritableTxnMarkerResult,
        WritableTxnMarkerTopic,
        WritableTxnMarkerTopicResult,
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
    )

    __all__ = [
        "AbortedTransaction",
        "AbortedTxn",
        "AcknowledgePartition",
        "AcknowledgeTopic",
        "AclCreation",
        "AclCreationResult",
        "AclDescription",
        "AcquiredRecords",
        "AddOffsetsToTxnRequest",
        "AddOffsetsToTxnResponse",
        "AddPartitionsToTxnPartitionResult",
        "AddPartitionsToTxnRequest",
        "AddPartitionsToTxnResponse",
        "AddPartitionsToTxnResult",
        "AddPartitionsToTxnTopic",
        "AddPartitionsToTxnTopicResult",
        "AddPartitionsToTxnTransaction",
        "AddRaftVoterRequest",
        "AddRaftVoterRequestListener",
        "AddRaftVoterResponse",
        "AllocateProducerIdsRequest",
        "AllocateProducerIdsResponse",
        "AlterClientQuotasRequest",
        "AlterClientQuotasRequestEntityData",
        "AlterClientQuotasRequestEntryData",
        "AlterClientQuotasResponse",
        "AlterClientQuotasResponseEntityData",
        "AlterClientQuotasResponseEntryData",
        "AlterConfigsRequest",
        "AlterConfigsRequestAlterConfigsResource",
        "AlterConfigsRequestAlterableConfig",
        "AlterConfigsResponse",
        "AlterConfigsResponseAlterConfigsResourceResponse",
        "AlterPartitionReassignmentsRequest",
        "AlterPartitionReassignmentsResponse",
        "AlterPartitionRequest",
        "AlterPartitionRequestPartitionData",
        "AlterPartitionRequestTopicData",
        "AlterPartitionResponse",
        "AlterPartitionResponsePartitionData",
        "AlterPartitionResponseTopicData",
        "AlterReplicaLogDir",
        "AlterReplicaLogDirPartitionResult",
        "AlterReplicaLogDirTopic",
        "AlterReplicaLogDirTopicResult",
        "AlterReplicaLogDirsRequest",
        "AlterReplicaLogDirsResponse",
        "AlterShareGroupOffsetsRequest",
        "AlterShareGroupOffsetsRequestPartition",
        "AlterShareGroupOffsetsRequestTopic",
        "AlterShareGroupOffsetsResponse",
        "AlterShareGroupOffsetsResponsePartition",
        "AlterShareGroupOffsetsResponseTopic",
        "AlterUserScramCredentialsRequest",
        "AlterUserScramCredentialsResponse",
        "AlterUserScramCredentialsResult",
        "ApiVersion",
        "ApiVersionsRequest",
        "ApiVersionsResponse",
        "AssignReplicasToDirsRequest",
        "AssignReplicasToDirsRequestDirectoryData",
        "AssignReplicasToDirsRequestPartitionData",
        "AssignReplicasToDirsRequestTopicData",
        "AssignReplicasToDirsResponse",
        "AssignReplicasToDirsResponseDirectoryData",
        "AssignReplicasToDirsResponsePartitionData",
        "AssignReplicasToDirsResponseTopicData",
        "BatchIndexAndErrorMessage",
        "BeginQuorumEpochRequest",
        "BeginQuorumEpochRequestLeaderEndpoint",
        "BeginQuorumEpochRequestPartitionData",
        "BeginQuorumEpochRequestTopicData",
        "BeginQuorumEpochResponse",
        "BeginQuorumEpochResponseNodeEndpoint",
        "BeginQuorumEpochResponsePartitionData",
        "BeginQuorumEpochResponseTopicData",
        "BrokerHeartbeatRequest",
        "BrokerHeartbeatResponse",
        "BrokerRegistrationRequest",
        "BrokerRegistrationRequestFeature",
        "BrokerRegistrationRequestListener",
        "BrokerRegistrationResponse",
        "BrokerState",
        "ComponentData",
        "ConfigResource",
        "ConsumerGroupDescribeRequest",
        "ConsumerGroupDescribeResponse",
        "ConsumerGroupDescribeResponseAssignment",
        "ConsumerGroupDescribeResponseDescribedGroup",
        "ConsumerGroupDescribeResponseMember",
        "ConsumerGroupDescribeResponseTopicPartitions",
        "ConsumerGroupHeartbeatRequest",
        "ConsumerGroupHeartbeatRequestTopicPartitions",
        "ConsumerGroupHeartbeatResponse",
        "ConsumerGroupHeartbeatResponseAssignment",
        "ConsumerGroupHeartbeatResponseTopicPartitions",
        "ConsumerProtocolAssignment",
        "ConsumerProtocolAssignmentTopicPartition",
        "ConsumerProtocolSubscription",
        "ConsumerProtocolSubscriptionTopicPartition",
        "ControlRecordTypeSchema",
        "ControllerRegistrationRequest",
        "ControllerRegistrationRequestFeature",
        "ControllerRegistrationRequestListener",
        "ControllerRegistrationResponse",
        "Coordinator",
        "CopartitionGroup",
        "CreatableRenewers",
        "CreatableReplicaAssignment",
        "CreatableTopic",
        "CreatableTopicConfig",
        "CreatableTopicConfigs",
        "CreatableTopicResult",
        "CreateAclsRequest",
        "CreateAclsResponse",
        "CreateDelegationTokenRequest",
        "CreateDelegationTokenResponse",
        "CreatePartitionsAssignment",
        "CreatePartitionsRequest",
        "CreatePartitionsResponse",
        "CreatePartitionsTopic",
        "CreatePartitionsTopicResult",
        "CreateTopicsRequest",
        "CreateTopicsResponse",
        "CredentialInfo",
        "CurrentLeader",
        "DefaultPrincipalData",
        "DeletableGroupResult",
        "DeletableTopicResult",
        "DeleteAclsFilter",
        "DeleteAclsFilterResult",
        "DeleteAclsMatchingAcl",
        "DeleteAclsRequest",
        "DeleteAclsResponse",
        "DeleteGroupsRequest",
        "DeleteGroupsResponse",
        "DeleteRecordsPartition",
        "DeleteRecordsPartitionResult",
        "DeleteRecordsRequest",
        "DeleteRecordsResponse",
        "DeleteRecordsTopic",
        "DeleteRecordsTopicResult",
        "DeleteShareGroupOffsetsRequest",
        "DeleteShareGroupOffsetsRequestTopic",
        "DeleteShareGroupOffsetsResponse",
        "DeleteShareGroupOffsetsResponseTopic",
        "DeleteShareGroupStateRequest",
        "DeleteShareGroupStateRequestPartitionData",
        "DeleteShareGroupStateResponse",
        "DeleteShareGroupStateResponsePartitionResult",
        "DeleteStateData",
        "DeleteStateResult",
        "DeleteTopicState",
        "DeleteTopicsRequest",
        "DeleteTopicsResponse",
        "DescribableLogDirTopic",
        "DescribeAclsRequest",
        "DescribeAclsResource",
        "DescribeAclsResponse",
        "DescribeClientQuotasRequest",
        "DescribeClientQuotasResponse",
        "DescribeClusterBroker",
        "DescribeClusterRequest",
        "DescribeClusterResponse",
        "DescribeConfigsRequest",
        "DescribeConfigsResource",
        "DescribeConfigsResourceResult",
        "DescribeConfigsResponse",
        "DescribeConfigsResult",
        "DescribeConfigsSynonym",
        "DescribeDelegationTokenOwner",
        "DescribeDelegationTokenRequest",
        "DescribeDelegationTokenResponse",
        "DescribeGroupsRequest",
        "DescribeGroupsResponse",
        "DescribeGroupsResponseDescribedGroup",
        "DescribeLogDirsPartition",
        "DescribeLogDirsRequest",
        "DescribeLogDirsResponse",
        "DescribeLogDirsResult",
        "DescribeLogDirsTopic",
        "DescribeProducersRequest",
        "DescribeProducersRequestTopicRequest",
        "DescribeProducersResponse",
        "DescribeQuorumRequest",
        "DescribeQuorumRequestPartitionData",
        "DescribeQuorumRequestTopicData",
        "DescribeQuorumResponse",
        "DescribeQuorumResponseListener",
        "DescribeQuorumResponsePartitionData",
        "DescribeQuorumResponseReplicaState",
        "DescribeQuorumResponseTopicData",
        "DescribeShareGroupOffsetsRequest",
        "DescribeShareGroupOffsetsRequestGroup",
        "DescribeShareGroupOffsetsRequestTopic",
        "DescribeShareGroupOffsetsResponse",
        "DescribeShareGroupOffsetsResponseGroup",
        "DescribeShareGroupOffsetsResponsePartition",
        "DescribeShareGroupOffsetsResponseTopic",
        "DescribeTopicPartitionsRequest",
        "DescribeTopicPartitionsRequestCursor",
        "DescribeTopicPartitionsRequestTopicRequest",
        "DescribeTopicPartitionsResponse",
        "DescribeTopicPartitionsResponseCursor",
        "DescribeTopicPartitionsResponsePartition",
        "DescribeTopicPartitionsResponseTopic",
        "DescribeTransactionsRequest",
        "DescribeTransactionsResponse",
        "DescribeTransactionsResponseTransactionState",
        "DescribeUserScramCredentialsRequest",
        "DescribeUserScramCredentialsResponse",
        "DescribeUserScramCredentialsResult",
        "DescribedDelegationToken",
        "DescribedDelegationTokenRenewer",
        "DescribedGroupMember",
        "ElectLeadersRequest",
        "ElectLeadersRequestTopicPartitions",
        "ElectLeadersResponse",
        "ElectLeadersResponsePartitionResult",
        "EndQuorumEpochRequest",
        "EndQuorumEpochRequestLeaderEndpoint",
        "EndQuorumEpochRequestPartitionData",
        "EndQuorumEpochRequestTopicData",
        "EndQuorumEpochResponse",
        "EndQuorumEpochResponseNodeEndpoint",
        "EndQuorumEpochResponsePartitionData",
        "EndQuorumEpochResponseTopicData",
        "EndTxnMarker",
        "EndTxnRequest",
        "EndTxnResponse",
        "EndpointToPartitions",
        "EntityData",
        "EntryData",
        "EnvelopeRequest",
        "EnvelopeResponse",
        "ExpireDelegationTokenRequest",
        "ExpireDelegationTokenResponse",
        "FeatureUpdateKey",
        "FetchRequest",
        "FetchRequestFetchPartition",
        "FetchRequestFetchTopic",
        "FetchRequestForgottenTopic",
        "FetchRequestReplicaState",
        "FetchResponse",
        "FetchResponseEpochEndOffset",
        "FetchResponseLeaderIdAndEpoch",
        "FetchResponseNodeEndpoint",
        "FetchResponsePartitionData",
        "FetchSnapshotRequest",
        "FetchSnapshotRequestPartitionSnapshot",
        "FetchSnapshotRequestSnapshotId",
        "FetchSnapshotRequestTopicSnapshot",
        "FetchSnapshotResponse",
        "FetchSnapshotResponseLeaderIdAndEpoch",
        "FetchSnapshotResponseNodeEndpoint",
        "FetchSnapshotResponsePartitionSnapshot",
        "FetchSnapshotResponseSnapshotId",
        "FetchSnapshotResponseTopicSnapshot",
        "FetchableTopicResponse",
        "FinalizedFeatureKey",
        "FindCoordinatorRequest",
        "FindCoordinatorResponse",
        "GetTelemetrySubscriptionsRequest",
        "GetTelemetrySubscriptionsResponse",
        "HeartbeatRequest",
        "HeartbeatResponse",
        "IncrementalAlterConfigsRequest",
        "IncrementalAlterConfigsRequestAlterConfigsResource",
        "IncrementalAlterConfigsRequestAlterableConfig",
        "IncrementalAlterConfigsResponse",
        "IncrementalAlterConfigsResponseAlterConfigsResourceResponse",
        "InitProducerIdRequest",
        "InitProducerIdResponse",
        "InitializeShareGroupStateRequest",
        "InitializeShareGroupStateRequestPartitionData",
        "InitializeShareGroupStateResponse",
        "InitializeShareGroupStateResponsePartitionResult",
        "InitializeStateData",
        "InitializeStateResult",
        "JoinGroupRequest",
        "JoinGroupRequestProtocol",
        "JoinGroupResponse",
        "JoinGroupResponseMember",
        "KRaftVersionRecord",
        "LeaderChangeMessage",
        "LeaderChangeMessageVoter",
        "LeaveGroupRequest",
        "LeaveGroupResponse",
        "ListConfigResourcesRequest",
        "ListConfigResourcesResponse",
        "ListGroupsRequest",
        "ListGroupsResponse",
        "ListOffsetsPartition",
        "ListOffsetsPartitionResponse",
        "ListOffsetsRequest",
        "ListOffsetsResponse",
        "ListOffsetsTopic",
        "ListOffsetsTopicResponse",
        "ListPartitionReassignmentsRequest",
        "ListPartitionReassignmentsResponse",
        "ListPartitionReassignmentsTopics",
        "ListTransactionsRequest",
        "ListTransactionsResponse",
        "ListTransactionsResponseTransactionState",
        "ListedGroup",
        "MemberIdentity",
        "MemberResponse",
        "MetadataRequest",
        "MetadataRequestTopic",
        "MetadataResponse",
        "MetadataResponseBroker",
        "MetadataResponsePartition",
        "MetadataResponseTopic",
        "Node",
        "OffsetCommitRequest",
        "OffsetCommitRequestPartition",
        "OffsetCommitRequestTopic",
        "OffsetCommitResponse",
        "OffsetCommitResponsePartition",
        "OffsetCommitResponseTopic",
        "OffsetDeleteRequest",
        "OffsetDeleteRequestPartition",
        "OffsetDeleteRequestTopic",
        "OffsetDeleteResponse",
        "OffsetDeleteResponsePartition",
        "OffsetDeleteResponseTopic",
        "OffsetFetchRequest",
        "OffsetFetchRequestGroup",
        "OffsetFetchRequestTopic",
        "OffsetFetchRequestTopics",
        "OffsetFetchResponse",
        "OffsetFetchResponseGroup",
        "OffsetFetchResponsePartition",
        "OffsetFetchResponsePartitions",
        "OffsetFetchResponseTopic",
        "OffsetFetchResponseTopics",
        "OffsetForLeaderEpochRequest",
        "OffsetForLeaderEpochResponse",
        "OffsetForLeaderEpochResponseEpochEndOffset",
        "OffsetForLeaderPartition",
        "OffsetForLeaderTopic",
        "OffsetForLeaderTopicResult",
        "OngoingPartitionReassignment",
        "OngoingTopicReassignment",
        "OpData",
        "PartitionProduceData",
        "PartitionProduceResponse",
        "PartitionResponse",
        "ProduceRequest",
        "ProduceResponse",
        "ProduceResponseLeaderIdAndEpoch",
        "ProduceResponseNodeEndpoint",
        "ProducerState",
        "PushTelemetryRequest",
        "PushTelemetryResponse",
        "ReadShareGroupStateRequest",
        "ReadShareGroupStateRequestPartitionData",
        "ReadShareGroupStateResponse",
        "ReadShareGroupStateResponsePartitionResult",
        "ReadShareGroupStateResponseStateBatch",
        "ReadShareGroupStateSummaryRequest",
        "ReadShareGroupStateSummaryRequestPartitionData",
        "ReadShareGroupStateSummaryResponse",
        "ReadShareGroupStateSummaryResponsePartitionResult",
        "ReadStateData",
        "ReadStateResult",
        "ReadStateSummaryData",
        "ReadStateSummaryResult",
        "ReassignablePartition",
        "ReassignablePartitionResponse",
        "ReassignableTopic",
        "ReassignableTopicResponse",
        "RemoveRaftVoterRequest",
        "RemoveRaftVoterResponse",
        "RenewDelegationTokenRequest",
        "RenewDelegationTokenResponse",
        "ReplicaElectionResult",
        "ReplicaInfo",
        "RequestHeader",
        "ResponseHeader",
        "SaslAuthenticateRequest",
        "SaslAuthenticateResponse",
        "SaslHandshakeRequest",
        "SaslHandshakeResponse",
        "ScramCredentialDeletion",
        "ScramCredentialUpsertion",
        "ShareAcknowledgeRequest",
        "ShareAcknowledgeRequestAcknowledgementBatch",
        "ShareAcknowledgeResponse",
        "ShareAcknowledgeResponseLeaderIdAndEpoch",
        "ShareAcknowledgeResponseNodeEndpoint",
        "ShareAcknowledgeResponsePartitionData",
        "ShareAcknowledgeTopicResponse",
        "ShareFetchRequest",
        "ShareFetchRequestAcknowledgementBatch",
        "ShareFetchRequestFetchPartition",
        "ShareFetchRequestFetchTopic",
        "ShareFetchRequestForgottenTopic",
        "ShareFetchResponse",
        "ShareFetchResponseLeaderIdAndEpoch",
        "ShareFetchResponseNodeEndpoint",
        "ShareFetchResponsePartitionData",
        "ShareFetchableTopicResponse",
        "ShareGroupDescribeRequest",
        "ShareGroupDescribeResponse",
        "ShareGroupDescribeResponseAssignment",
        "ShareGroupDescribeResponseDescribedGroup",
        "ShareGroupDescribeResponseMember",
        "ShareGroupDescribeResponseTopicPartitions",
        "ShareGroupHeartbeatRequest",
        "ShareGroupHeartbeatResponse",
        "ShareGroupHeartbeatResponseAssignment",
        "ShareGroupHeartbeatResponseTopicPartitions",
        "SnapshotFooterRecord",
        "SnapshotHeaderRecord",
        "SnapshotId",
        "Status",
        "StreamsGroupDescribeRequest",
        "StreamsGroupDescribeResponse",
        "StreamsGroupDescribeResponseAssignment",
        "StreamsGroupDescribeResponseDescribedGroup",
        "StreamsGroupDescribeResponseEndpoint",
        "StreamsGroupDescribeResponseKeyValue",
        "StreamsGroupDescribeResponseMember",
        "StreamsGroupDescribeResponseSubtopology",
        "StreamsGroupDescribeResponseTaskOffset",
        "StreamsGroupDescribeResponseTopicInfo",
        "StreamsGroupDescribeResponseTopology",
        "StreamsGroupDescribeResponseTopologyDescription",
        "StreamsGroupDescribeResponseTopologyDescriptionGlobalStore",
        "StreamsGroupDescribeResponseTopologyDescriptionNode",
        "StreamsGroupDescribeResponseTopologyDescriptionSubtopology",
        "StreamsGroupHeartbeatRequest",
        "StreamsGroupHeartbeatRequestEndpoint",
        "StreamsGroupHeartbeatRequestKeyValue",
        "StreamsGroupHeartbeatRequestSubtopology",
        "StreamsGroupHeartbeatRequestTaskIds",
        "StreamsGroupHeartbeatRequestTaskOffset",
        "StreamsGroupHeartbeatRequestTopicInfo",
        "StreamsGroupHeartbeatRequestTopology",
        "StreamsGroupHeartbeatResponse",
        "StreamsGroupHeartbeatResponseEndpoint",
        "StreamsGroupHeartbeatResponseTaskIds",
        "StreamsGroupHeartbeatResponseTopicPartition",
        "StreamsGroupTopologyDescriptionUpdateRequest",
        "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription",
        "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore",
        "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode",
        "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology",
        "StreamsGroupTopologyDescriptionUpdateResponse",
        "SupportedFeatureKey",
        "SyncGroupRequest",
        "SyncGroupRequestAssignment",
        "SyncGroupResponse",
        "TaskIds",
        "TopicData",
        "TopicProduceData",
        "TopicProduceResponse",
        "TopicResponse",
        "TxnOffsetCommitRequest",
        "TxnOffsetCommitRequestPartition",
        "TxnOffsetCommitRequestTopic",
        "TxnOffsetCommitResponse",
        "TxnOffsetCommitResponsePartition",
        "TxnOffsetCommitResponseTopic",
        "UnregisterBrokerRequest",
        "UnregisterBrokerResponse",
        "UnregisterControllerRequest",
        "UnregisterControllerResponse",
        "UpdatableFeatureResult",
        "UpdateFeaturesRequest",
        "UpdateFeaturesResponse",
        "UpdateRaftVoterRequest",
        "UpdateRaftVoterRequestKRaftVersionFeature",
        "UpdateRaftVoterRequestListener",
        "UpdateRaftVoterResponse",
        "UserName",
        "ValueData",
        "VoteRequest",
        "VoteRequestPartitionData",
        "VoteRequestTopicData",
        "VoteResponse",
        "VoteResponseNodeEndpoint",
        "VoteResponsePartitionData",
        "VoteResponseTopicData",
        "VotersRecord",
        "VotersRecordEndpoint",
        "VotersRecordKRaftVersionFeature",
        "VotersRecordVoter",
        "WritableTxnMarker",
        "WritableTxnMarkerPartitionResult",
        "WritableTxnMarkerResult",
        "WritableTxnMarkerTopic",
        "WritableTxnMarkerTopicResult",
        "WriteShareGroupStateRequest",
        "WriteShareGroupStateRequestPartitionData",
        "WriteShareGroupStateRequestStateBatch",
        "WriteShareGroupStateResponse",
        "WriteShareGroupStateResponsePartitionResult",
        "WriteStateData",
        "WriteStateResult",
        "WriteTxnMarkersRequest",
        "WriteTxnMarkersResponse",
    ]


def __getattr__(name: str) -> object:
    # The table is as large as the modules of ten APIs: programs that
    # import these modules never load it.
    if name == "__all__" or name[:1].isupper():
        from kafkaio.protocol.messages._homes import HOMES

        if name == "__all__":
            return list(HOMES)
        if name in HOMES:
            module, inner = HOMES[name]
            home = import_module(f"{__name__}.{module}")
            kind: object = getattr(home, inner)
            globals()[name] = kind
            return kind
    raise AttributeError(f"{__name__} has no message {name!r}")


def __dir__() -> list[str]:
    from kafkaio.protocol.messages._homes import HOMES

    return sorted({*globals(), *HOMES})
