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

#: The module of each class, and the name it has there.
_HOMES = {
    "AbortedTransaction": ("fetch", "AbortedTransaction"),
    "AbortedTxn": ("aborted_txn", "AbortedTxn"),
    "AcknowledgePartition": ("share_acknowledge", "AcknowledgePartition"),
    "AcknowledgeTopic": ("share_acknowledge", "AcknowledgeTopic"),
    "AclCreation": ("create_acls", "AclCreation"),
    "AclCreationResult": ("create_acls", "AclCreationResult"),
    "AclDescription": ("describe_acls", "AclDescription"),
    "AcquiredRecords": ("share_fetch", "AcquiredRecords"),
    "AddOffsetsToTxnRequest": ("add_offsets_to_txn", "AddOffsetsToTxnRequest"),
    "AddOffsetsToTxnResponse": ("add_offsets_to_txn", "AddOffsetsToTxnResponse"),
    "AddPartitionsToTxnPartitionResult": (
        "add_partitions_to_txn",
        "AddPartitionsToTxnPartitionResult",
    ),
    "AddPartitionsToTxnRequest": ("add_partitions_to_txn", "AddPartitionsToTxnRequest"),
    "AddPartitionsToTxnResponse": (
        "add_partitions_to_txn",
        "AddPartitionsToTxnResponse",
    ),
    "AddPartitionsToTxnResult": ("add_partitions_to_txn", "AddPartitionsToTxnResult"),
    "AddPartitionsToTxnTopic": ("add_partitions_to_txn", "AddPartitionsToTxnTopic"),
    "AddPartitionsToTxnTopicResult": (
        "add_partitions_to_txn",
        "AddPartitionsToTxnTopicResult",
    ),
    "AddPartitionsToTxnTransaction": (
        "add_partitions_to_txn",
        "AddPartitionsToTxnTransaction",
    ),
    "AddRaftVoterRequest": ("add_raft_voter", "AddRaftVoterRequest"),
    "AddRaftVoterRequestListener": ("add_raft_voter", "Listener"),
    "AddRaftVoterResponse": ("add_raft_voter", "AddRaftVoterResponse"),
    "AllocateProducerIdsRequest": (
        "allocate_producer_ids",
        "AllocateProducerIdsRequest",
    ),
    "AllocateProducerIdsResponse": (
        "allocate_producer_ids",
        "AllocateProducerIdsResponse",
    ),
    "AlterClientQuotasRequest": ("alter_client_quotas", "AlterClientQuotasRequest"),
    "AlterClientQuotasRequestEntityData": (
        "alter_client_quotas",
        "AlterClientQuotasRequestEntityData",
    ),
    "AlterClientQuotasRequestEntryData": (
        "alter_client_quotas",
        "AlterClientQuotasRequestEntryData",
    ),
    "AlterClientQuotasResponse": ("alter_client_quotas", "AlterClientQuotasResponse"),
    "AlterClientQuotasResponseEntityData": (
        "alter_client_quotas",
        "AlterClientQuotasResponseEntityData",
    ),
    "AlterClientQuotasResponseEntryData": (
        "alter_client_quotas",
        "AlterClientQuotasResponseEntryData",
    ),
    "AlterConfigsRequest": ("alter_configs", "AlterConfigsRequest"),
    "AlterConfigsRequestAlterConfigsResource": (
        "alter_configs",
        "AlterConfigsResource",
    ),
    "AlterConfigsRequestAlterableConfig": ("alter_configs", "AlterableConfig"),
    "AlterConfigsResponse": ("alter_configs", "AlterConfigsResponse"),
    "AlterConfigsResponseAlterConfigsResourceResponse": (
        "alter_configs",
        "AlterConfigsResourceResponse",
    ),
    "AlterPartitionReassignmentsRequest": (
        "alter_partition_reassignments",
        "AlterPartitionReassignmentsRequest",
    ),
    "AlterPartitionReassignmentsResponse": (
        "alter_partition_reassignments",
        "AlterPartitionReassignmentsResponse",
    ),
    "AlterPartitionRequest": ("alter_partition", "AlterPartitionRequest"),
    "AlterPartitionRequestPartitionData": (
        "alter_partition",
        "AlterPartitionRequestPartitionData",
    ),
    "AlterPartitionRequestTopicData": (
        "alter_partition",
        "AlterPartitionRequestTopicData",
    ),
    "AlterPartitionResponse": ("alter_partition", "AlterPartitionResponse"),
    "AlterPartitionResponsePartitionData": (
        "alter_partition",
        "AlterPartitionResponsePartitionData",
    ),
    "AlterPartitionResponseTopicData": (
        "alter_partition",
        "AlterPartitionResponseTopicData",
    ),
    "AlterReplicaLogDir": ("alter_replica_log_dirs", "AlterReplicaLogDir"),
    "AlterReplicaLogDirPartitionResult": (
        "alter_replica_log_dirs",
        "AlterReplicaLogDirPartitionResult",
    ),
    "AlterReplicaLogDirTopic": ("alter_replica_log_dirs", "AlterReplicaLogDirTopic"),
    "AlterReplicaLogDirTopicResult": (
        "alter_replica_log_dirs",
        "AlterReplicaLogDirTopicResult",
    ),
    "AlterReplicaLogDirsRequest": (
        "alter_replica_log_dirs",
        "AlterReplicaLogDirsRequest",
    ),
    "AlterReplicaLogDirsResponse": (
        "alter_replica_log_dirs",
        "AlterReplicaLogDirsResponse",
    ),
    "AlterShareGroupOffsetsRequest": (
        "alter_share_group_offsets",
        "AlterShareGroupOffsetsRequest",
    ),
    "AlterShareGroupOffsetsRequestPartition": (
        "alter_share_group_offsets",
        "AlterShareGroupOffsetsRequestPartition",
    ),
    "AlterShareGroupOffsetsRequestTopic": (
        "alter_share_group_offsets",
        "AlterShareGroupOffsetsRequestTopic",
    ),
    "AlterShareGroupOffsetsResponse": (
        "alter_share_group_offsets",
        "AlterShareGroupOffsetsResponse",
    ),
    "AlterShareGroupOffsetsResponsePartition": (
        "alter_share_group_offsets",
        "AlterShareGroupOffsetsResponsePartition",
    ),
    "AlterShareGroupOffsetsResponseTopic": (
        "alter_share_group_offsets",
        "AlterShareGroupOffsetsResponseTopic",
    ),
    "AlterUserScramCredentialsRequest": (
        "alter_user_scram_credentials",
        "AlterUserScramCredentialsRequest",
    ),
    "AlterUserScramCredentialsResponse": (
        "alter_user_scram_credentials",
        "AlterUserScramCredentialsResponse",
    ),
    "AlterUserScramCredentialsResult": (
        "alter_user_scram_credentials",
        "AlterUserScramCredentialsResult",
    ),
    "ApiVersion": ("api_versions", "ApiVersion"),
    "ApiVersionsRequest": ("api_versions", "ApiVersionsRequest"),
    "ApiVersionsResponse": ("api_versions", "ApiVersionsResponse"),
    "AssignReplicasToDirsRequest": (
        "assign_replicas_to_dirs",
        "AssignReplicasToDirsRequest",
    ),
    "AssignReplicasToDirsRequestDirectoryData": (
        "assign_replicas_to_dirs",
        "AssignReplicasToDirsRequestDirectoryData",
    ),
    "AssignReplicasToDirsRequestPartitionData": (
        "assign_replicas_to_dirs",
        "AssignReplicasToDirsRequestPartitionData",
    ),
    "AssignReplicasToDirsRequestTopicData": (
        "assign_replicas_to_dirs",
        "AssignReplicasToDirsRequestTopicData",
    ),
    "AssignReplicasToDirsResponse": (
        "assign_replicas_to_dirs",
        "AssignReplicasToDirsResponse",
    ),
    "AssignReplicasToDirsResponseDirectoryData": (
        "assign_replicas_to_dirs",
        "AssignReplicasToDirsResponseDirectoryData",
    ),
    "AssignReplicasToDirsResponsePartitionData": (
        "assign_replicas_to_dirs",
        "AssignReplicasToDirsResponsePartitionData",
    ),
    "AssignReplicasToDirsResponseTopicData": (
        "assign_replicas_to_dirs",
        "AssignReplicasToDirsResponseTopicData",
    ),
    "BatchIndexAndErrorMessage": ("produce", "BatchIndexAndErrorMessage"),
    "BeginQuorumEpochRequest": ("begin_quorum_epoch", "BeginQuorumEpochRequest"),
    "BeginQuorumEpochRequestLeaderEndpoint": ("begin_quorum_epoch", "LeaderEndpoint"),
    "BeginQuorumEpochRequestPartitionData": (
        "begin_quorum_epoch",
        "BeginQuorumEpochRequestPartitionData",
    ),
    "BeginQuorumEpochRequestTopicData": (
        "begin_quorum_epoch",
        "BeginQuorumEpochRequestTopicData",
    ),
    "BeginQuorumEpochResponse": ("begin_quorum_epoch", "BeginQuorumEpochResponse"),
    "BeginQuorumEpochResponseNodeEndpoint": ("begin_quorum_epoch", "NodeEndpoint"),
    "BeginQuorumEpochResponsePartitionData": (
        "begin_quorum_epoch",
        "BeginQuorumEpochResponsePartitionData",
    ),
    "BeginQuorumEpochResponseTopicData": (
        "begin_quorum_epoch",
        "BeginQuorumEpochResponseTopicData",
    ),
    "BrokerHeartbeatRequest": ("broker_heartbeat", "BrokerHeartbeatRequest"),
    "BrokerHeartbeatResponse": ("broker_heartbeat", "BrokerHeartbeatResponse"),
    "BrokerRegistrationRequest": ("broker_registration", "BrokerRegistrationRequest"),
    "BrokerRegistrationRequestFeature": ("broker_registration", "Feature"),
    "BrokerRegistrationRequestListener": ("broker_registration", "Listener"),
    "BrokerRegistrationResponse": ("broker_registration", "BrokerRegistrationResponse"),
    "BrokerState": ("alter_partition", "BrokerState"),
    "ComponentData": ("describe_client_quotas", "ComponentData"),
    "ConfigResource": ("list_config_resources", "ConfigResource"),
    "ConsumerGroupDescribeRequest": (
        "consumer_group_describe",
        "ConsumerGroupDescribeRequest",
    ),
    "ConsumerGroupDescribeResponse": (
        "consumer_group_describe",
        "ConsumerGroupDescribeResponse",
    ),
    "ConsumerGroupDescribeResponseAssignment": (
        "consumer_group_describe",
        "Assignment",
    ),
    "ConsumerGroupDescribeResponseDescribedGroup": (
        "consumer_group_describe",
        "DescribedGroup",
    ),
    "ConsumerGroupDescribeResponseMember": ("consumer_group_describe", "Member"),
    "ConsumerGroupDescribeResponseTopicPartitions": (
        "consumer_group_describe",
        "TopicPartitions",
    ),
    "ConsumerGroupHeartbeatRequest": (
        "consumer_group_heartbeat",
        "ConsumerGroupHeartbeatRequest",
    ),
    "ConsumerGroupHeartbeatRequestTopicPartitions": (
        "consumer_group_heartbeat",
        "ConsumerGroupHeartbeatRequestTopicPartitions",
    ),
    "ConsumerGroupHeartbeatResponse": (
        "consumer_group_heartbeat",
        "ConsumerGroupHeartbeatResponse",
    ),
    "ConsumerGroupHeartbeatResponseAssignment": (
        "consumer_group_heartbeat",
        "Assignment",
    ),
    "ConsumerGroupHeartbeatResponseTopicPartitions": (
        "consumer_group_heartbeat",
        "ConsumerGroupHeartbeatResponseTopicPartitions",
    ),
    "ConsumerProtocolAssignment": (
        "consumer_protocol_assignment",
        "ConsumerProtocolAssignment",
    ),
    "ConsumerProtocolAssignmentTopicPartition": (
        "consumer_protocol_assignment",
        "TopicPartition",
    ),
    "ConsumerProtocolSubscription": (
        "consumer_protocol_subscription",
        "ConsumerProtocolSubscription",
    ),
    "ConsumerProtocolSubscriptionTopicPartition": (
        "consumer_protocol_subscription",
        "TopicPartition",
    ),
    "ControlRecordTypeSchema": (
        "control_record_type_schema",
        "ControlRecordTypeSchema",
    ),
    "ControllerRegistrationRequest": (
        "controller_registration",
        "ControllerRegistrationRequest",
    ),
    "ControllerRegistrationRequestFeature": ("controller_registration", "Feature"),
    "ControllerRegistrationRequestListener": ("controller_registration", "Listener"),
    "ControllerRegistrationResponse": (
        "controller_registration",
        "ControllerRegistrationResponse",
    ),
    "Coordinator": ("find_coordinator", "Coordinator"),
    "CopartitionGroup": ("streams_group_heartbeat", "CopartitionGroup"),
    "CreatableRenewers": ("create_delegation_token", "CreatableRenewers"),
    "CreatableReplicaAssignment": ("create_topics", "CreatableReplicaAssignment"),
    "CreatableTopic": ("create_topics", "CreatableTopic"),
    "CreatableTopicConfig": ("create_topics", "CreatableTopicConfig"),
    "CreatableTopicConfigs": ("create_topics", "CreatableTopicConfigs"),
    "CreatableTopicResult": ("create_topics", "CreatableTopicResult"),
    "CreateAclsRequest": ("create_acls", "CreateAclsRequest"),
    "CreateAclsResponse": ("create_acls", "CreateAclsResponse"),
    "CreateDelegationTokenRequest": (
        "create_delegation_token",
        "CreateDelegationTokenRequest",
    ),
    "CreateDelegationTokenResponse": (
        "create_delegation_token",
        "CreateDelegationTokenResponse",
    ),
    "CreatePartitionsAssignment": ("create_partitions", "CreatePartitionsAssignment"),
    "CreatePartitionsRequest": ("create_partitions", "CreatePartitionsRequest"),
    "CreatePartitionsResponse": ("create_partitions", "CreatePartitionsResponse"),
    "CreatePartitionsTopic": ("create_partitions", "CreatePartitionsTopic"),
    "CreatePartitionsTopicResult": ("create_partitions", "CreatePartitionsTopicResult"),
    "CreateTopicsRequest": ("create_topics", "CreateTopicsRequest"),
    "CreateTopicsResponse": ("create_topics", "CreateTopicsResponse"),
    "CredentialInfo": ("describe_user_scram_credentials", "CredentialInfo"),
    "CurrentLeader": ("update_raft_voter", "CurrentLeader"),
    "DefaultPrincipalData": ("default_principal_data", "DefaultPrincipalData"),
    "DeletableGroupResult": ("delete_groups", "DeletableGroupResult"),
    "DeletableTopicResult": ("delete_topics", "DeletableTopicResult"),
    "DeleteAclsFilter": ("delete_acls", "DeleteAclsFilter"),
    "DeleteAclsFilterResult": ("delete_acls", "DeleteAclsFilterResult"),
    "DeleteAclsMatchingAcl": ("delete_acls", "DeleteAclsMatchingAcl"),
    "DeleteAclsRequest": ("delete_acls", "DeleteAclsRequest"),
    "DeleteAclsResponse": ("delete_acls", "DeleteAclsResponse"),
    "DeleteGroupsRequest": ("delete_groups", "DeleteGroupsRequest"),
    "DeleteGroupsResponse": ("delete_groups", "DeleteGroupsResponse"),
    "DeleteRecordsPartition": ("delete_records", "DeleteRecordsPartition"),
    "DeleteRecordsPartitionResult": ("delete_records", "DeleteRecordsPartitionResult"),
    "DeleteRecordsRequest": ("delete_records", "DeleteRecordsRequest"),
    "DeleteRecordsResponse": ("delete_records", "DeleteRecordsResponse"),
    "DeleteRecordsTopic": ("delete_records", "DeleteRecordsTopic"),
    "DeleteRecordsTopicResult": ("delete_records", "DeleteRecordsTopicResult"),
    "DeleteShareGroupOffsetsRequest": (
        "delete_share_group_offsets",
        "DeleteShareGroupOffsetsRequest",
    ),
    "DeleteShareGroupOffsetsRequestTopic": (
        "delete_share_group_offsets",
        "DeleteShareGroupOffsetsRequestTopic",
    ),
    "DeleteShareGroupOffsetsResponse": (
        "delete_share_group_offsets",
        "DeleteShareGroupOffsetsResponse",
    ),
    "DeleteShareGroupOffsetsResponseTopic": (
        "delete_share_group_offsets",
        "DeleteShareGroupOffsetsResponseTopic",
    ),
    "DeleteShareGroupStateRequest": (
        "delete_share_group_state",
        "DeleteShareGroupStateRequest",
    ),
    "DeleteShareGroupStateRequestPartitionData": (
        "delete_share_group_state",
        "PartitionData",
    ),
    "DeleteShareGroupStateResponse": (
        "delete_share_group_state",
        "DeleteShareGroupStateResponse",
    ),
    "DeleteShareGroupStateResponsePartitionResult": (
        "delete_share_group_state",
        "PartitionResult",
    ),
    "DeleteStateData": ("delete_share_group_state", "DeleteStateData"),
    "DeleteStateResult": ("delete_share_group_state", "DeleteStateResult"),
    "DeleteTopicState": ("delete_topics", "DeleteTopicState"),
    "DeleteTopicsRequest": ("delete_topics", "DeleteTopicsRequest"),
    "DeleteTopicsResponse": ("delete_topics", "DeleteTopicsResponse"),
    "DescribableLogDirTopic": ("describe_log_dirs", "DescribableLogDirTopic"),
    "DescribeAclsRequest": ("describe_acls", "DescribeAclsRequest"),
    "DescribeAclsResource": ("describe_acls", "DescribeAclsResource"),
    "DescribeAclsResponse": ("describe_acls", "DescribeAclsResponse"),
    "DescribeClientQuotasRequest": (
        "describe_client_quotas",
        "DescribeClientQuotasRequest",
    ),
    "DescribeClientQuotasResponse": (
        "describe_client_quotas",
        "DescribeClientQuotasResponse",
    ),
    "DescribeClusterBroker": ("describe_cluster", "DescribeClusterBroker"),
    "DescribeClusterRequest": ("describe_cluster", "DescribeClusterRequest"),
    "DescribeClusterResponse": ("describe_cluster", "DescribeClusterResponse"),
    "DescribeConfigsRequest": ("describe_configs", "DescribeConfigsRequest"),
    "DescribeConfigsResource": ("describe_configs", "DescribeConfigsResource"),
    "DescribeConfigsResourceResult": (
        "describe_configs",
        "DescribeConfigsResourceResult",
    ),
    "DescribeConfigsResponse": ("describe_configs", "DescribeConfigsResponse"),
    "DescribeConfigsResult": ("describe_configs", "DescribeConfigsResult"),
    "DescribeConfigsSynonym": ("describe_configs", "DescribeConfigsSynonym"),
    "DescribeDelegationTokenOwner": (
        "describe_delegation_token",
        "DescribeDelegationTokenOwner",
    ),
    "DescribeDelegationTokenRequest": (
        "describe_delegation_token",
        "DescribeDelegationTokenRequest",
    ),
    "DescribeDelegationTokenResponse": (
        "describe_delegation_token",
        "DescribeDelegationTokenResponse",
    ),
    "DescribeGroupsRequest": ("describe_groups", "DescribeGroupsRequest"),
    "DescribeGroupsResponse": ("describe_groups", "DescribeGroupsResponse"),
    "DescribeGroupsResponseDescribedGroup": ("describe_groups", "DescribedGroup"),
    "DescribeLogDirsPartition": ("describe_log_dirs", "DescribeLogDirsPartition"),
    "DescribeLogDirsRequest": ("describe_log_dirs", "DescribeLogDirsRequest"),
    "DescribeLogDirsResponse": ("describe_log_dirs", "DescribeLogDirsResponse"),
    "DescribeLogDirsResult": ("describe_log_dirs", "DescribeLogDirsResult"),
    "DescribeLogDirsTopic": ("describe_log_dirs", "DescribeLogDirsTopic"),
    "DescribeProducersRequest": ("describe_producers", "DescribeProducersRequest"),
    "DescribeProducersRequestTopicRequest": ("describe_producers", "TopicRequest"),
    "DescribeProducersResponse": ("describe_producers", "DescribeProducersResponse"),
    "DescribeQuorumRequest": ("describe_quorum", "DescribeQuorumRequest"),
    "DescribeQuorumRequestPartitionData": (
        "describe_quorum",
        "DescribeQuorumRequestPartitionData",
    ),
    "DescribeQuorumRequestTopicData": (
        "describe_quorum",
        "DescribeQuorumRequestTopicData",
    ),
    "DescribeQuorumResponse": ("describe_quorum", "DescribeQuorumResponse"),
    "DescribeQuorumResponseListener": ("describe_quorum", "Listener"),
    "DescribeQuorumResponsePartitionData": (
        "describe_quorum",
        "DescribeQuorumResponsePartitionData",
    ),
    "DescribeQuorumResponseReplicaState": ("describe_quorum", "ReplicaState"),
    "DescribeQuorumResponseTopicData": (
        "describe_quorum",
        "DescribeQuorumResponseTopicData",
    ),
    "DescribeShareGroupOffsetsRequest": (
        "describe_share_group_offsets",
        "DescribeShareGroupOffsetsRequest",
    ),
    "DescribeShareGroupOffsetsRequestGroup": (
        "describe_share_group_offsets",
        "DescribeShareGroupOffsetsRequestGroup",
    ),
    "DescribeShareGroupOffsetsRequestTopic": (
        "describe_share_group_offsets",
        "DescribeShareGroupOffsetsRequestTopic",
    ),
    "DescribeShareGroupOffsetsResponse": (
        "describe_share_group_offsets",
        "DescribeShareGroupOffsetsResponse",
    ),
    "DescribeShareGroupOffsetsResponseGroup": (
        "describe_share_group_offsets",
        "DescribeShareGroupOffsetsResponseGroup",
    ),
    "DescribeShareGroupOffsetsResponsePartition": (
        "describe_share_group_offsets",
        "DescribeShareGroupOffsetsResponsePartition",
    ),
    "DescribeShareGroupOffsetsResponseTopic": (
        "describe_share_group_offsets",
        "DescribeShareGroupOffsetsResponseTopic",
    ),
    "DescribeTopicPartitionsRequest": (
        "describe_topic_partitions",
        "DescribeTopicPartitionsRequest",
    ),
    "DescribeTopicPartitionsRequestCursor": (
        "describe_topic_partitions",
        "DescribeTopicPartitionsRequestCursor",
    ),
    "DescribeTopicPartitionsRequestTopicRequest": (
        "describe_topic_partitions",
        "TopicRequest",
    ),
    "DescribeTopicPartitionsResponse": (
        "describe_topic_partitions",
        "DescribeTopicPartitionsResponse",
    ),
    "DescribeTopicPartitionsResponseCursor": (
        "describe_topic_partitions",
        "DescribeTopicPartitionsResponseCursor",
    ),
    "DescribeTopicPartitionsResponsePartition": (
        "describe_topic_partitions",
        "DescribeTopicPartitionsResponsePartition",
    ),
    "DescribeTopicPartitionsResponseTopic": (
        "describe_topic_partitions",
        "DescribeTopicPartitionsResponseTopic",
    ),
    "DescribeTransactionsRequest": (
        "describe_transactions",
        "DescribeTransactionsRequest",
    ),
    "DescribeTransactionsResponse": (
        "describe_transactions",
        "DescribeTransactionsResponse",
    ),
    "DescribeTransactionsResponseTransactionState": (
        "describe_transactions",
        "TransactionState",
    ),
    "DescribeUserScramCredentialsRequest": (
        "describe_user_scram_credentials",
        "DescribeUserScramCredentialsRequest",
    ),
    "DescribeUserScramCredentialsResponse": (
        "describe_user_scram_credentials",
        "DescribeUserScramCredentialsResponse",
    ),
    "DescribeUserScramCredentialsResult": (
        "describe_user_scram_credentials",
        "DescribeUserScramCredentialsResult",
    ),
    "DescribedDelegationToken": (
        "describe_delegation_token",
        "DescribedDelegationToken",
    ),
    "DescribedDelegationTokenRenewer": (
        "describe_delegation_token",
        "DescribedDelegationTokenRenewer",
    ),
    "DescribedGroupMember": ("describe_groups", "DescribedGroupMember"),
    "ElectLeadersRequest": ("elect_leaders", "ElectLeadersRequest"),
    "ElectLeadersRequestTopicPartitions": ("elect_leaders", "TopicPartitions"),
    "ElectLeadersResponse": ("elect_leaders", "ElectLeadersResponse"),
    "ElectLeadersResponsePartitionResult": ("elect_leaders", "PartitionResult"),
    "EndQuorumEpochRequest": ("end_quorum_epoch", "EndQuorumEpochRequest"),
    "EndQuorumEpochRequestLeaderEndpoint": ("end_quorum_epoch", "LeaderEndpoint"),
    "EndQuorumEpochRequestPartitionData": (
        "end_quorum_epoch",
        "EndQuorumEpochRequestPartitionData",
    ),
    "EndQuorumEpochRequestTopicData": (
        "end_quorum_epoch",
        "EndQuorumEpochRequestTopicData",
    ),
    "EndQuorumEpochResponse": ("end_quorum_epoch", "EndQuorumEpochResponse"),
    "EndQuorumEpochResponseNodeEndpoint": ("end_quorum_epoch", "NodeEndpoint"),
    "EndQuorumEpochResponsePartitionData": (
        "end_quorum_epoch",
        "EndQuorumEpochResponsePartitionData",
    ),
    "EndQuorumEpochResponseTopicData": (
        "end_quorum_epoch",
        "EndQuorumEpochResponseTopicData",
    ),
    "EndTxnMarker": ("end_txn_marker", "EndTxnMarker"),
    "EndTxnRequest": ("end_txn", "EndTxnRequest"),
    "EndTxnResponse": ("end_txn", "EndTxnResponse"),
    "EndpointToPartitions": ("streams_group_heartbeat", "EndpointToPartitions"),
    "EntityData": ("describe_client_quotas", "EntityData"),
    "EntryData": ("describe_client_quotas", "EntryData"),
    "EnvelopeRequest": ("envelope", "EnvelopeRequest"),
    "EnvelopeResponse": ("envelope", "EnvelopeResponse"),
    "ExpireDelegationTokenRequest": (
        "expire_delegation_token",
        "ExpireDelegationTokenRequest",
    ),
    "ExpireDelegationTokenResponse": (
        "expire_delegation_token",
        "ExpireDelegationTokenResponse",
    ),
    "FeatureUpdateKey": ("update_features", "FeatureUpdateKey"),
    "FetchRequest": ("fetch", "FetchRequest"),
    "FetchRequestFetchPartition": ("fetch", "FetchPartition"),
    "FetchRequestFetchTopic": ("fetch", "FetchTopic"),
    "FetchRequestForgottenTopic": ("fetch", "ForgottenTopic"),
    "FetchRequestReplicaState": ("fetch", "ReplicaState"),
    "FetchResponse": ("fetch", "FetchResponse"),
    "FetchResponseEpochEndOffset": ("fetch", "EpochEndOffset"),
    "FetchResponseLeaderIdAndEpoch": ("fetch", "LeaderIdAndEpoch"),
    "FetchResponseNodeEndpoint": ("fetch", "NodeEndpoint"),
    "FetchResponsePartitionData": ("fetch", "PartitionData"),
    "FetchSnapshotRequest": ("fetch_snapshot", "FetchSnapshotRequest"),
    "FetchSnapshotRequestPartitionSnapshot": (
        "fetch_snapshot",
        "FetchSnapshotRequestPartitionSnapshot",
    ),
    "FetchSnapshotRequestSnapshotId": (
        "fetch_snapshot",
        "FetchSnapshotRequestSnapshotId",
    ),
    "FetchSnapshotRequestTopicSnapshot": (
        "fetch_snapshot",
        "FetchSnapshotRequestTopicSnapshot",
    ),
    "FetchSnapshotResponse": ("fetch_snapshot", "FetchSnapshotResponse"),
    "FetchSnapshotResponseLeaderIdAndEpoch": ("fetch_snapshot", "LeaderIdAndEpoch"),
    "FetchSnapshotResponseNodeEndpoint": ("fetch_snapshot", "NodeEndpoint"),
    "FetchSnapshotResponsePartitionSnapshot": (
        "fetch_snapshot",
        "FetchSnapshotResponsePartitionSnapshot",
    ),
    "FetchSnapshotResponseSnapshotId": (
        "fetch_snapshot",
        "FetchSnapshotResponseSnapshotId",
    ),
    "FetchSnapshotResponseTopicSnapshot": (
        "fetch_snapshot",
        "FetchSnapshotResponseTopicSnapshot",
    ),
    "FetchableTopicResponse": ("fetch", "FetchableTopicResponse"),
    "FinalizedFeatureKey": ("api_versions", "FinalizedFeatureKey"),
    "FindCoordinatorRequest": ("find_coordinator", "FindCoordinatorRequest"),
    "FindCoordinatorResponse": ("find_coordinator", "FindCoordinatorResponse"),
    "GetTelemetrySubscriptionsRequest": (
        "get_telemetry_subscriptions",
        "GetTelemetrySubscriptionsRequest",
    ),
    "GetTelemetrySubscriptionsResponse": (
        "get_telemetry_subscriptions",
        "GetTelemetrySubscriptionsResponse",
    ),
    "HeartbeatRequest": ("heartbeat", "HeartbeatRequest"),
    "HeartbeatResponse": ("heartbeat", "HeartbeatResponse"),
    "IncrementalAlterConfigsRequest": (
        "incremental_alter_configs",
        "IncrementalAlterConfigsRequest",
    ),
    "IncrementalAlterConfigsRequestAlterConfigsResource": (
        "incremental_alter_configs",
        "AlterConfigsResource",
    ),
    "IncrementalAlterConfigsRequestAlterableConfig": (
        "incremental_alter_configs",
        "AlterableConfig",
    ),
    "IncrementalAlterConfigsResponse": (
        "incremental_alter_configs",
        "IncrementalAlterConfigsResponse",
    ),
    "IncrementalAlterConfigsResponseAlterConfigsResourceResponse": (
        "incremental_alter_configs",
        "AlterConfigsResourceResponse",
    ),
    "InitProducerIdRequest": ("init_producer_id", "InitProducerIdRequest"),
    "InitProducerIdResponse": ("init_producer_id", "InitProducerIdResponse"),
    "InitializeShareGroupStateRequest": (
        "initialize_share_group_state",
        "InitializeShareGroupStateRequest",
    ),
    "InitializeShareGroupStateRequestPartitionData": (
        "initialize_share_group_state",
        "PartitionData",
    ),
    "InitializeShareGroupStateResponse": (
        "initialize_share_group_state",
        "InitializeShareGroupStateResponse",
    ),
    "InitializeShareGroupStateResponsePartitionResult": (
        "initialize_share_group_state",
        "PartitionResult",
    ),
    "InitializeStateData": ("initialize_share_group_state", "InitializeStateData"),
    "InitializeStateResult": ("initialize_share_group_state", "InitializeStateResult"),
    "JoinGroupRequest": ("join_group", "JoinGroupRequest"),
    "JoinGroupRequestProtocol": ("join_group", "JoinGroupRequestProtocol"),
    "JoinGroupResponse": ("join_group", "JoinGroupResponse"),
    "JoinGroupResponseMember": ("join_group", "JoinGroupResponseMember"),
    "KRaftVersionRecord": ("kraft_version_record", "KRaftVersionRecord"),
    "LeaderChangeMessage": ("leader_change_message", "LeaderChangeMessage"),
    "LeaderChangeMessageVoter": ("leader_change_message", "Voter"),
    "LeaveGroupRequest": ("leave_group", "LeaveGroupRequest"),
    "LeaveGroupResponse": ("leave_group", "LeaveGroupResponse"),
    "ListConfigResourcesRequest": (
        "list_config_resources",
        "ListConfigResourcesRequest",
    ),
    "ListConfigResourcesResponse": (
        "list_config_resources",
        "ListConfigResourcesResponse",
    ),
    "ListGroupsRequest": ("list_groups", "ListGroupsRequest"),
    "ListGroupsResponse": ("list_groups", "ListGroupsResponse"),
    "ListOffsetsPartition": ("list_offsets", "ListOffsetsPartition"),
    "ListOffsetsPartitionResponse": ("list_offsets", "ListOffsetsPartitionResponse"),
    "ListOffsetsRequest": ("list_offsets", "ListOffsetsRequest"),
    "ListOffsetsResponse": ("list_offsets", "ListOffsetsResponse"),
    "ListOffsetsTopic": ("list_offsets", "ListOffsetsTopic"),
    "ListOffsetsTopicResponse": ("list_offsets", "ListOffsetsTopicResponse"),
    "ListPartitionReassignmentsRequest": (
        "list_partition_reassignments",
        "ListPartitionReassignmentsRequest",
    ),
    "ListPartitionReassignmentsResponse": (
        "list_partition_reassignments",
        "ListPartitionReassignmentsResponse",
    ),
    "ListPartitionReassignmentsTopics": (
        "list_partition_reassignments",
        "ListPartitionReassignmentsTopics",
    ),
    "ListTransactionsRequest": ("list_transactions", "ListTransactionsRequest"),
    "ListTransactionsResponse": ("list_transactions", "ListTransactionsResponse"),
    "ListTransactionsResponseTransactionState": (
        "list_transactions",
        "TransactionState",
    ),
    "ListedGroup": ("list_groups", "ListedGroup"),
    "MemberIdentity": ("leave_group", "MemberIdentity"),
    "MemberResponse": ("leave_group", "MemberResponse"),
    "MetadataRequest": ("metadata", "MetadataRequest"),
    "MetadataRequestTopic": ("metadata", "MetadataRequestTopic"),
    "MetadataResponse": ("metadata", "MetadataResponse"),
    "MetadataResponseBroker": ("metadata", "MetadataResponseBroker"),
    "MetadataResponsePartition": ("metadata", "MetadataResponsePartition"),
    "MetadataResponseTopic": ("metadata", "MetadataResponseTopic"),
    "Node": ("describe_quorum", "Node"),
    "OffsetCommitRequest": ("offset_commit", "OffsetCommitRequest"),
    "OffsetCommitRequestPartition": ("offset_commit", "OffsetCommitRequestPartition"),
    "OffsetCommitRequestTopic": ("offset_commit", "OffsetCommitRequestTopic"),
    "OffsetCommitResponse": ("offset_commit", "OffsetCommitResponse"),
    "OffsetCommitResponsePartition": ("offset_commit", "OffsetCommitResponsePartition"),
    "OffsetCommitResponseTopic": ("offset_commit", "OffsetCommitResponseTopic"),
    "OffsetDeleteRequest": ("offset_delete", "OffsetDeleteRequest"),
    "OffsetDeleteRequestPartition": ("offset_delete", "OffsetDeleteRequestPartition"),
    "OffsetDeleteRequestTopic": ("offset_delete", "OffsetDeleteRequestTopic"),
    "OffsetDeleteResponse": ("offset_delete", "OffsetDeleteResponse"),
    "OffsetDeleteResponsePartition": ("offset_delete", "OffsetDeleteResponsePartition"),
    "OffsetDeleteResponseTopic": ("offset_delete", "OffsetDeleteResponseTopic"),
    "OffsetFetchRequest": ("offset_fetch", "OffsetFetchRequest"),
    "OffsetFetchRequestGroup": ("offset_fetch", "OffsetFetchRequestGroup"),
    "OffsetFetchRequestTopic": ("offset_fetch", "OffsetFetchRequestTopic"),
    "OffsetFetchRequestTopics": ("offset_fetch", "OffsetFetchRequestTopics"),
    "OffsetFetchResponse": ("offset_fetch", "OffsetFetchResponse"),
    "OffsetFetchResponseGroup": ("offset_fetch", "OffsetFetchResponseGroup"),
    "OffsetFetchResponsePartition": ("offset_fetch", "OffsetFetchResponsePartition"),
    "OffsetFetchResponsePartitions": ("offset_fetch", "OffsetFetchResponsePartitions"),
    "OffsetFetchResponseTopic": ("offset_fetch", "OffsetFetchResponseTopic"),
    "OffsetFetchResponseTopics": ("offset_fetch", "OffsetFetchResponseTopics"),
    "OffsetForLeaderEpochRequest": (
        "offset_for_leader_epoch",
        "OffsetForLeaderEpochRequest",
    ),
    "OffsetForLeaderEpochResponse": (
        "offset_for_leader_epoch",
        "OffsetForLeaderEpochResponse",
    ),
    "OffsetForLeaderEpochResponseEpochEndOffset": (
        "offset_for_leader_epoch",
        "EpochEndOffset",
    ),
    "OffsetForLeaderPartition": ("offset_for_leader_epoch", "OffsetForLeaderPartition"),
    "OffsetForLeaderTopic": ("offset_for_leader_epoch", "OffsetForLeaderTopic"),
    "OffsetForLeaderTopicResult": (
        "offset_for_leader_epoch",
        "OffsetForLeaderTopicResult",
    ),
    "OngoingPartitionReassignment": (
        "list_partition_reassignments",
        "OngoingPartitionReassignment",
    ),
    "OngoingTopicReassignment": (
        "list_partition_reassignments",
        "OngoingTopicReassignment",
    ),
    "OpData": ("alter_client_quotas", "OpData"),
    "PartitionProduceData": ("produce", "PartitionProduceData"),
    "PartitionProduceResponse": ("produce", "PartitionProduceResponse"),
    "PartitionResponse": ("describe_producers", "PartitionResponse"),
    "ProduceRequest": ("produce", "ProduceRequest"),
    "ProduceResponse": ("produce", "ProduceResponse"),
    "ProduceResponseLeaderIdAndEpoch": ("produce", "LeaderIdAndEpoch"),
    "ProduceResponseNodeEndpoint": ("produce", "NodeEndpoint"),
    "ProducerState": ("describe_producers", "ProducerState"),
    "PushTelemetryRequest": ("push_telemetry", "PushTelemetryRequest"),
    "PushTelemetryResponse": ("push_telemetry", "PushTelemetryResponse"),
    "ReadShareGroupStateRequest": (
        "read_share_group_state",
        "ReadShareGroupStateRequest",
    ),
    "ReadShareGroupStateRequestPartitionData": (
        "read_share_group_state",
        "PartitionData",
    ),
    "ReadShareGroupStateResponse": (
        "read_share_group_state",
        "ReadShareGroupStateResponse",
    ),
    "ReadShareGroupStateResponsePartitionResult": (
        "read_share_group_state",
        "PartitionResult",
    ),
    "ReadShareGroupStateResponseStateBatch": ("read_share_group_state", "StateBatch"),
    "ReadShareGroupStateSummaryRequest": (
        "read_share_group_state_summary",
        "ReadShareGroupStateSummaryRequest",
    ),
    "ReadShareGroupStateSummaryRequestPartitionData": (
        "read_share_group_state_summary",
        "PartitionData",
    ),
    "ReadShareGroupStateSummaryResponse": (
        "read_share_group_state_summary",
        "ReadShareGroupStateSummaryResponse",
    ),
    "ReadShareGroupStateSummaryResponsePartitionResult": (
        "read_share_group_state_summary",
        "PartitionResult",
    ),
    "ReadStateData": ("read_share_group_state", "ReadStateData"),
    "ReadStateResult": ("read_share_group_state", "ReadStateResult"),
    "ReadStateSummaryData": ("read_share_group_state_summary", "ReadStateSummaryData"),
    "ReadStateSummaryResult": (
        "read_share_group_state_summary",
        "ReadStateSummaryResult",
    ),
    "ReassignablePartition": ("alter_partition_reassignments", "ReassignablePartition"),
    "ReassignablePartitionResponse": (
        "alter_partition_reassignments",
        "ReassignablePartitionResponse",
    ),
    "ReassignableTopic": ("alter_partition_reassignments", "ReassignableTopic"),
    "ReassignableTopicResponse": (
        "alter_partition_reassignments",
        "ReassignableTopicResponse",
    ),
    "RemoveRaftVoterRequest": ("remove_raft_voter", "RemoveRaftVoterRequest"),
    "RemoveRaftVoterResponse": ("remove_raft_voter", "RemoveRaftVoterResponse"),
    "RenewDelegationTokenRequest": (
        "renew_delegation_token",
        "RenewDelegationTokenRequest",
    ),
    "RenewDelegationTokenResponse": (
        "renew_delegation_token",
        "RenewDelegationTokenResponse",
    ),
    "ReplicaElectionResult": ("elect_leaders", "ReplicaElectionResult"),
    "ReplicaInfo": ("end_quorum_epoch", "ReplicaInfo"),
    "RequestHeader": ("request_header", "RequestHeader"),
    "ResponseHeader": ("response_header", "ResponseHeader"),
    "SaslAuthenticateRequest": ("sasl_authenticate", "SaslAuthenticateRequest"),
    "SaslAuthenticateResponse": ("sasl_authenticate", "SaslAuthenticateResponse"),
    "SaslHandshakeRequest": ("sasl_handshake", "SaslHandshakeRequest"),
    "SaslHandshakeResponse": ("sasl_handshake", "SaslHandshakeResponse"),
    "ScramCredentialDeletion": (
        "alter_user_scram_credentials",
        "ScramCredentialDeletion",
    ),
    "ScramCredentialUpsertion": (
        "alter_user_scram_credentials",
        "ScramCredentialUpsertion",
    ),
    "ShareAcknowledgeRequest": ("share_acknowledge", "ShareAcknowledgeRequest"),
    "ShareAcknowledgeRequestAcknowledgementBatch": (
        "share_acknowledge",
        "AcknowledgementBatch",
    ),
    "ShareAcknowledgeResponse": ("share_acknowledge", "ShareAcknowledgeResponse"),
    "ShareAcknowledgeResponseLeaderIdAndEpoch": (
        "share_acknowledge",
        "LeaderIdAndEpoch",
    ),
    "ShareAcknowledgeResponseNodeEndpoint": ("share_acknowledge", "NodeEndpoint"),
    "ShareAcknowledgeResponsePartitionData": ("share_acknowledge", "PartitionData"),
    "ShareAcknowledgeTopicResponse": (
        "share_acknowledge",
        "ShareAcknowledgeTopicResponse",
    ),
    "ShareFetchRequest": ("share_fetch", "ShareFetchRequest"),
    "ShareFetchRequestAcknowledgementBatch": ("share_fetch", "AcknowledgementBatch"),
    "ShareFetchRequestFetchPartition": ("share_fetch", "FetchPartition"),
    "ShareFetchRequestFetchTopic": ("share_fetch", "FetchTopic"),
    "ShareFetchRequestForgottenTopic": ("share_fetch", "ForgottenTopic"),
    "ShareFetchResponse": ("share_fetch", "ShareFetchResponse"),
    "ShareFetchResponseLeaderIdAndEpoch": ("share_fetch", "LeaderIdAndEpoch"),
    "ShareFetchResponseNodeEndpoint": ("share_fetch", "NodeEndpoint"),
    "ShareFetchResponsePartitionData": ("share_fetch", "PartitionData"),
    "ShareFetchableTopicResponse": ("share_fetch", "ShareFetchableTopicResponse"),
    "ShareGroupDescribeRequest": ("share_group_describe", "ShareGroupDescribeRequest"),
    "ShareGroupDescribeResponse": (
        "share_group_describe",
        "ShareGroupDescribeResponse",
    ),
    "ShareGroupDescribeResponseAssignment": ("share_group_describe", "Assignment"),
    "ShareGroupDescribeResponseDescribedGroup": (
        "share_group_describe",
        "DescribedGroup",
    ),
    "ShareGroupDescribeResponseMember": ("share_group_describe", "Member"),
    "ShareGroupDescribeResponseTopicPartitions": (
        "share_group_describe",
        "TopicPartitions",
    ),
    "ShareGroupHeartbeatRequest": (
        "share_group_heartbeat",
        "ShareGroupHeartbeatRequest",
    ),
    "ShareGroupHeartbeatResponse": (
        "share_group_heartbeat",
        "ShareGroupHeartbeatResponse",
    ),
    "ShareGroupHeartbeatResponseAssignment": ("share_group_heartbeat", "Assignment"),
    "ShareGroupHeartbeatResponseTopicPartitions": (
        "share_group_heartbeat",
        "TopicPartitions",
    ),
    "SnapshotFooterRecord": ("snapshot_footer_record", "SnapshotFooterRecord"),
    "SnapshotHeaderRecord": ("snapshot_header_record", "SnapshotHeaderRecord"),
    "SnapshotId": ("fetch", "SnapshotId"),
    "Status": ("streams_group_heartbeat", "Status"),
    "StreamsGroupDescribeRequest": (
        "streams_group_describe",
        "StreamsGroupDescribeRequest",
    ),
    "StreamsGroupDescribeResponse": (
        "streams_group_describe",
        "StreamsGroupDescribeResponse",
    ),
    "StreamsGroupDescribeResponseAssignment": ("streams_group_describe", "Assignment"),
    "StreamsGroupDescribeResponseDescribedGroup": (
        "streams_group_describe",
        "DescribedGroup",
    ),
    "StreamsGroupDescribeResponseEndpoint": ("streams_group_describe", "Endpoint"),
    "StreamsGroupDescribeResponseKeyValue": ("streams_group_describe", "KeyValue"),
    "StreamsGroupDescribeResponseMember": ("streams_group_describe", "Member"),
    "StreamsGroupDescribeResponseSubtopology": (
        "streams_group_describe",
        "Subtopology",
    ),
    "StreamsGroupDescribeResponseTaskOffset": ("streams_group_describe", "TaskOffset"),
    "StreamsGroupDescribeResponseTopicInfo": ("streams_group_describe", "TopicInfo"),
    "StreamsGroupDescribeResponseTopology": ("streams_group_describe", "Topology"),
    "StreamsGroupDescribeResponseTopologyDescription": (
        "streams_group_describe",
        "TopologyDescription",
    ),
    "StreamsGroupDescribeResponseTopologyDescriptionGlobalStore": (
        "streams_group_describe",
        "TopologyDescriptionGlobalStore",
    ),
    "StreamsGroupDescribeResponseTopologyDescriptionNode": (
        "streams_group_describe",
        "TopologyDescriptionNode",
    ),
    "StreamsGroupDescribeResponseTopologyDescriptionSubtopology": (
        "streams_group_describe",
        "TopologyDescriptionSubtopology",
    ),
    "StreamsGroupHeartbeatRequest": (
        "streams_group_heartbeat",
        "StreamsGroupHeartbeatRequest",
    ),
    "StreamsGroupHeartbeatRequestEndpoint": (
        "streams_group_heartbeat",
        "StreamsGroupHeartbeatRequestEndpoint",
    ),
    "StreamsGroupHeartbeatRequestKeyValue": ("streams_group_heartbeat", "KeyValue"),
    "StreamsGroupHeartbeatRequestSubtopology": (
        "streams_group_heartbeat",
        "Subtopology",
    ),
    "StreamsGroupHeartbeatRequestTaskIds": (
        "streams_group_heartbeat",
        "StreamsGroupHeartbeatRequestTaskIds",
    ),
    "StreamsGroupHeartbeatRequestTaskOffset": ("streams_group_heartbeat", "TaskOffset"),
    "StreamsGroupHeartbeatRequestTopicInfo": ("streams_group_heartbeat", "TopicInfo"),
    "StreamsGroupHeartbeatRequestTopology": ("streams_group_heartbeat", "Topology"),
    "StreamsGroupHeartbeatResponse": (
        "streams_group_heartbeat",
        "StreamsGroupHeartbeatResponse",
    ),
    "StreamsGroupHeartbeatResponseEndpoint": (
        "streams_group_heartbeat",
        "StreamsGroupHeartbeatResponseEndpoint",
    ),
    "StreamsGroupHeartbeatResponseTaskIds": (
        "streams_group_heartbeat",
        "StreamsGroupHeartbeatResponseTaskIds",
    ),
    "StreamsGroupHeartbeatResponseTopicPartition": (
        "streams_group_heartbeat",
        "TopicPartition",
    ),
    "StreamsGroupTopologyDescriptionUpdateRequest": (
        "streams_group_topology_description_update",
        "StreamsGroupTopologyDescriptionUpdateRequest",
    ),
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription": (
        "streams_group_topology_description_update",
        "TopologyDescription",
    ),
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore": (
        "streams_group_topology_description_update",
        "TopologyDescriptionGlobalStore",
    ),
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode": (
        "streams_group_topology_description_update",
        "TopologyDescriptionNode",
    ),
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology": (
        "streams_group_topology_description_update",
        "TopologyDescriptionSubtopology",
    ),
    "StreamsGroupTopologyDescriptionUpdateResponse": (
        "streams_group_topology_description_update",
        "StreamsGroupTopologyDescriptionUpdateResponse",
    ),
    "SupportedFeatureKey": ("api_versions", "SupportedFeatureKey"),
    "SyncGroupRequest": ("sync_group", "SyncGroupRequest"),
    "SyncGroupRequestAssignment": ("sync_group", "SyncGroupRequestAssignment"),
    "SyncGroupResponse": ("sync_group", "SyncGroupResponse"),
    "TaskIds": ("streams_group_describe", "TaskIds"),
    "TopicData": ("describe_transactions", "TopicData"),
    "TopicProduceData": ("produce", "TopicProduceData"),
    "TopicProduceResponse": ("produce", "TopicProduceResponse"),
    "TopicResponse": ("describe_producers", "TopicResponse"),
    "TxnOffsetCommitRequest": ("txn_offset_commit", "TxnOffsetCommitRequest"),
    "TxnOffsetCommitRequestPartition": (
        "txn_offset_commit",
        "TxnOffsetCommitRequestPartition",
    ),
    "TxnOffsetCommitRequestTopic": ("txn_offset_commit", "TxnOffsetCommitRequestTopic"),
    "TxnOffsetCommitResponse": ("txn_offset_commit", "TxnOffsetCommitResponse"),
    "TxnOffsetCommitResponsePartition": (
        "txn_offset_commit",
        "TxnOffsetCommitResponsePartition",
    ),
    "TxnOffsetCommitResponseTopic": (
        "txn_offset_commit",
        "TxnOffsetCommitResponseTopic",
    ),
    "UnregisterBrokerRequest": ("unregister_broker", "UnregisterBrokerRequest"),
    "UnregisterBrokerResponse": ("unregister_broker", "UnregisterBrokerResponse"),
    "UnregisterControllerRequest": (
        "unregister_controller",
        "UnregisterControllerRequest",
    ),
    "UnregisterControllerResponse": (
        "unregister_controller",
        "UnregisterControllerResponse",
    ),
    "UpdatableFeatureResult": ("update_features", "UpdatableFeatureResult"),
    "UpdateFeaturesRequest": ("update_features", "UpdateFeaturesRequest"),
    "UpdateFeaturesResponse": ("update_features", "UpdateFeaturesResponse"),
    "UpdateRaftVoterRequest": ("update_raft_voter", "UpdateRaftVoterRequest"),
    "UpdateRaftVoterRequestKRaftVersionFeature": (
        "update_raft_voter",
        "KRaftVersionFeature",
    ),
    "UpdateRaftVoterRequestListener": ("update_raft_voter", "Listener"),
    "UpdateRaftVoterResponse": ("update_raft_voter", "UpdateRaftVoterResponse"),
    "UserName": ("describe_user_scram_credentials", "UserName"),
    "ValueData": ("describe_client_quotas", "ValueData"),
    "VoteRequest": ("vote", "VoteRequest"),
    "VoteRequestPartitionData": ("vote", "VoteRequestPartitionData"),
    "VoteRequestTopicData": ("vote", "VoteRequestTopicData"),
    "VoteResponse": ("vote", "VoteResponse"),
    "VoteResponseNodeEndpoint": ("vote", "NodeEndpoint"),
    "VoteResponsePartitionData": ("vote", "VoteResponsePartitionData"),
    "VoteResponseTopicData": ("vote", "VoteResponseTopicData"),
    "VotersRecord": ("voters_record", "VotersRecord"),
    "VotersRecordEndpoint": ("voters_record", "Endpoint"),
    "VotersRecordKRaftVersionFeature": ("voters_record", "KRaftVersionFeature"),
    "VotersRecordVoter": ("voters_record", "Voter"),
    "WritableTxnMarker": ("write_txn_markers", "WritableTxnMarker"),
    "WritableTxnMarkerPartitionResult": (
        "write_txn_markers",
        "WritableTxnMarkerPartitionResult",
    ),
    "WritableTxnMarkerResult": ("write_txn_markers", "WritableTxnMarkerResult"),
    "WritableTxnMarkerTopic": ("write_txn_markers", "WritableTxnMarkerTopic"),
    "WritableTxnMarkerTopicResult": (
        "write_txn_markers",
        "WritableTxnMarkerTopicResult",
    ),
    "WriteShareGroupStateRequest": (
        "write_share_group_state",
        "WriteShareGroupStateRequest",
    ),
    "WriteShareGroupStateRequestPartitionData": (
        "write_share_group_state",
        "PartitionData",
    ),
    "WriteShareGroupStateRequestStateBatch": ("write_share_group_state", "StateBatch"),
    "WriteShareGroupStateResponse": (
        "write_share_group_state",
        "WriteShareGroupStateResponse",
    ),
    "WriteShareGroupStateResponsePartitionResult": (
        "write_share_group_state",
        "PartitionResult",
    ),
    "WriteStateData": ("write_share_group_state", "WriteStateData"),
    "WriteStateResult": ("write_share_group_state", "WriteStateResult"),
    "WriteTxnMarkersRequest": ("write_txn_markers", "WriteTxnMarkersRequest"),
    "WriteTxnMarkersResponse": ("write_txn_markers", "WriteTxnMarkersResponse"),
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"{__name__} has no message {name!r}")
    module = import_module(f"{__name__}.{home[0]}")
    found: object = getattr(module, home[1])
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
