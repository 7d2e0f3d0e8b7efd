"""The names of the package for type checkers; see ``__init__.py``."""

from kafkaio.protocol.messages.aborted_txn import AbortedTxn as AbortedTxn
from kafkaio.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest as AddOffsetsToTxnRequest,
)
from kafkaio.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnResponse as AddOffsetsToTxnResponse,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult as AddPartitionsToTxnPartitionResult,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest as AddPartitionsToTxnRequest,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnResponse as AddPartitionsToTxnResponse,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnResult as AddPartitionsToTxnResult,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic as AddPartitionsToTxnTopic,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopicResult as AddPartitionsToTxnTopicResult,
)
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTransaction as AddPartitionsToTxnTransaction,
)
from kafkaio.protocol.messages.add_raft_voter import (
    AddRaftVoterRequest as AddRaftVoterRequest,
)
from kafkaio.protocol.messages.add_raft_voter import (
    AddRaftVoterResponse as AddRaftVoterResponse,
)
from kafkaio.protocol.messages.add_raft_voter import (
    Listener as AddRaftVoterRequestListener,
)
from kafkaio.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest as AllocateProducerIdsRequest,
)
from kafkaio.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsResponse as AllocateProducerIdsResponse,
)
from kafkaio.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest as AlterClientQuotasRequest,
)
from kafkaio.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequestEntityData as AlterClientQuotasRequestEntityData,
)
from kafkaio.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequestEntryData as AlterClientQuotasRequestEntryData,
)
from kafkaio.protocol.messages.alter_client_quotas import (
    AlterClientQuotasResponse as AlterClientQuotasResponse,
)
from kafkaio.protocol.messages.alter_client_quotas import (
    AlterClientQuotasResponseEntityData as AlterClientQuotasResponseEntityData,
)
from kafkaio.protocol.messages.alter_client_quotas import (
    AlterClientQuotasResponseEntryData as AlterClientQuotasResponseEntryData,
)
from kafkaio.protocol.messages.alter_client_quotas import OpData as OpData
from kafkaio.protocol.messages.alter_configs import (
    AlterableConfig as AlterConfigsRequestAlterableConfig,
)
from kafkaio.protocol.messages.alter_configs import (
    AlterConfigsRequest as AlterConfigsRequest,
)
from kafkaio.protocol.messages.alter_configs import (
    AlterConfigsResource as AlterConfigsRequestAlterConfigsResource,
)
from kafkaio.protocol.messages.alter_configs import (
    AlterConfigsResourceResponse as AlterConfigsResponseAlterConfigsResourceResponse,
)
from kafkaio.protocol.messages.alter_configs import (
    AlterConfigsResponse as AlterConfigsResponse,
)
from kafkaio.protocol.messages.alter_partition import (
    AlterPartitionRequest as AlterPartitionRequest,
)
from kafkaio.protocol.messages.alter_partition import (
    AlterPartitionRequestPartitionData as AlterPartitionRequestPartitionData,
)
from kafkaio.protocol.messages.alter_partition import (
    AlterPartitionRequestTopicData as AlterPartitionRequestTopicData,
)
from kafkaio.protocol.messages.alter_partition import (
    AlterPartitionResponse as AlterPartitionResponse,
)
from kafkaio.protocol.messages.alter_partition import (
    AlterPartitionResponsePartitionData as AlterPartitionResponsePartitionData,
)
from kafkaio.protocol.messages.alter_partition import (
    AlterPartitionResponseTopicData as AlterPartitionResponseTopicData,
)
from kafkaio.protocol.messages.alter_partition import BrokerState as BrokerState
from kafkaio.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest as AlterPartitionReassignmentsRequest,
)
from kafkaio.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse as AlterPartitionReassignmentsResponse,
)
from kafkaio.protocol.messages.alter_partition_reassignments import (
    ReassignablePartition as ReassignablePartition,
)
from kafkaio.protocol.messages.alter_partition_reassignments import (
    ReassignablePartitionResponse as ReassignablePartitionResponse,
)
from kafkaio.protocol.messages.alter_partition_reassignments import (
    ReassignableTopic as ReassignableTopic,
)
from kafkaio.protocol.messages.alter_partition_reassignments import (
    ReassignableTopicResponse as ReassignableTopicResponse,
)
from kafkaio.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir as AlterReplicaLogDir,
)
from kafkaio.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult as AlterReplicaLogDirPartitionResult,
)
from kafkaio.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest as AlterReplicaLogDirsRequest,
)
from kafkaio.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsResponse as AlterReplicaLogDirsResponse,
)
from kafkaio.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirTopic as AlterReplicaLogDirTopic,
)
from kafkaio.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirTopicResult as AlterReplicaLogDirTopicResult,
)
from kafkaio.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest as AlterShareGroupOffsetsRequest,
)
from kafkaio.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestPartition as AlterShareGroupOffsetsRequestPartition,
)
from kafkaio.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestTopic as AlterShareGroupOffsetsRequestTopic,
)
from kafkaio.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponse as AlterShareGroupOffsetsResponse,
)
from kafkaio.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponsePartition as AlterShareGroupOffsetsResponsePartition,
)
from kafkaio.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponseTopic as AlterShareGroupOffsetsResponseTopic,
)
from kafkaio.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest as AlterUserScramCredentialsRequest,
)
from kafkaio.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse as AlterUserScramCredentialsResponse,
)
from kafkaio.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResult as AlterUserScramCredentialsResult,
)
from kafkaio.protocol.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion as ScramCredentialDeletion,
)
from kafkaio.protocol.messages.alter_user_scram_credentials import (
    ScramCredentialUpsertion as ScramCredentialUpsertion,
)
from kafkaio.protocol.messages.api_versions import ApiVersion as ApiVersion
from kafkaio.protocol.messages.api_versions import (
    ApiVersionsRequest as ApiVersionsRequest,
)
from kafkaio.protocol.messages.api_versions import (
    ApiVersionsResponse as ApiVersionsResponse,
)
from kafkaio.protocol.messages.api_versions import (
    FinalizedFeatureKey as FinalizedFeatureKey,
)
from kafkaio.protocol.messages.api_versions import (
    SupportedFeatureKey as SupportedFeatureKey,
)
from kafkaio.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest as AssignReplicasToDirsRequest,
)
from kafkaio.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequestDirectoryData as AssignReplicasToDirsRequestDirectoryData,
)
from kafkaio.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequestPartitionData as AssignReplicasToDirsRequestPartitionData,
)
from kafkaio.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequestTopicData as AssignReplicasToDirsRequestTopicData,
)
from kafkaio.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsResponse as AssignReplicasToDirsResponse,
)
from kafkaio.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsResponseDirectoryData as AssignReplicasToDirsResponseDirectoryData,
)
from kafkaio.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsResponsePartitionData as AssignReplicasToDirsResponsePartitionData,
)
from kafkaio.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsResponseTopicData as AssignReplicasToDirsResponseTopicData,
)
from kafkaio.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest as BeginQuorumEpochRequest,
)
from kafkaio.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequestPartitionData as BeginQuorumEpochRequestPartitionData,
)
from kafkaio.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequestTopicData as BeginQuorumEpochRequestTopicData,
)
from kafkaio.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochResponse as BeginQuorumEpochResponse,
)
from kafkaio.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochResponsePartitionData as BeginQuorumEpochResponsePartitionData,
)
from kafkaio.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochResponseTopicData as BeginQuorumEpochResponseTopicData,
)
from kafkaio.protocol.messages.begin_quorum_epoch import (
    LeaderEndpoint as BeginQuorumEpochRequestLeaderEndpoint,
)
from kafkaio.protocol.messages.begin_quorum_epoch import (
    NodeEndpoint as BeginQuorumEpochResponseNodeEndpoint,
)
from kafkaio.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest as BrokerHeartbeatRequest,
)
from kafkaio.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatResponse as BrokerHeartbeatResponse,
)
from kafkaio.protocol.messages.broker_registration import (
    BrokerRegistrationRequest as BrokerRegistrationRequest,
)
from kafkaio.protocol.messages.broker_registration import (
    BrokerRegistrationResponse as BrokerRegistrationResponse,
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
    ConsumerGroupDescribeRequest as ConsumerGroupDescribeRequest,
)
from kafkaio.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse as ConsumerGroupDescribeResponse,
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
    ConsumerGroupHeartbeatRequest as ConsumerGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions as ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse as ConsumerGroupHeartbeatResponse,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponseTopicPartitions as ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kafkaio.protocol.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment as ConsumerProtocolAssignment,
)
from kafkaio.protocol.messages.consumer_protocol_assignment import (
    TopicPartition as ConsumerProtocolAssignmentTopicPartition,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription as ConsumerProtocolSubscription,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    TopicPartition as ConsumerProtocolSubscriptionTopicPartition,
)
from kafkaio.protocol.messages.control_record_type_schema import (
    ControlRecordTypeSchema as ControlRecordTypeSchema,
)
from kafkaio.protocol.messages.controller_registration import (
    ControllerRegistrationRequest as ControllerRegistrationRequest,
)
from kafkaio.protocol.messages.controller_registration import (
    ControllerRegistrationResponse as ControllerRegistrationResponse,
)
from kafkaio.protocol.messages.controller_registration import (
    Feature as ControllerRegistrationRequestFeature,
)
from kafkaio.protocol.messages.controller_registration import (
    Listener as ControllerRegistrationRequestListener,
)
from kafkaio.protocol.messages.create_acls import AclCreation as AclCreation
from kafkaio.protocol.messages.create_acls import AclCreationResult as AclCreationResult
from kafkaio.protocol.messages.create_acls import CreateAclsRequest as CreateAclsRequest
from kafkaio.protocol.messages.create_acls import (
    CreateAclsResponse as CreateAclsResponse,
)
from kafkaio.protocol.messages.create_delegation_token import (
    CreatableRenewers as CreatableRenewers,
)
from kafkaio.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest as CreateDelegationTokenRequest,
)
from kafkaio.protocol.messages.create_delegation_token import (
    CreateDelegationTokenResponse as CreateDelegationTokenResponse,
)
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsAssignment as CreatePartitionsAssignment,
)
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsRequest as CreatePartitionsRequest,
)
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsResponse as CreatePartitionsResponse,
)
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsTopic as CreatePartitionsTopic,
)
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsTopicResult as CreatePartitionsTopicResult,
)
from kafkaio.protocol.messages.create_topics import (
    CreatableReplicaAssignment as CreatableReplicaAssignment,
)
from kafkaio.protocol.messages.create_topics import CreatableTopic as CreatableTopic
from kafkaio.protocol.messages.create_topics import (
    CreatableTopicConfig as CreatableTopicConfig,
)
from kafkaio.protocol.messages.create_topics import (
    CreatableTopicConfigs as CreatableTopicConfigs,
)
from kafkaio.protocol.messages.create_topics import (
    CreatableTopicResult as CreatableTopicResult,
)
from kafkaio.protocol.messages.create_topics import (
    CreateTopicsRequest as CreateTopicsRequest,
)
from kafkaio.protocol.messages.create_topics import (
    CreateTopicsResponse as CreateTopicsResponse,
)
from kafkaio.protocol.messages.default_principal_data import (
    DefaultPrincipalData as DefaultPrincipalData,
)
from kafkaio.protocol.messages.delete_acls import DeleteAclsFilter as DeleteAclsFilter
from kafkaio.protocol.messages.delete_acls import (
    DeleteAclsFilterResult as DeleteAclsFilterResult,
)
from kafkaio.protocol.messages.delete_acls import (
    DeleteAclsMatchingAcl as DeleteAclsMatchingAcl,
)
from kafkaio.protocol.messages.delete_acls import DeleteAclsRequest as DeleteAclsRequest
from kafkaio.protocol.messages.delete_acls import (
    DeleteAclsResponse as DeleteAclsResponse,
)
from kafkaio.protocol.messages.delete_groups import (
    DeletableGroupResult as DeletableGroupResult,
)
from kafkaio.protocol.messages.delete_groups import (
    DeleteGroupsRequest as DeleteGroupsRequest,
)
from kafkaio.protocol.messages.delete_groups import (
    DeleteGroupsResponse as DeleteGroupsResponse,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition as DeleteRecordsPartition,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult as DeleteRecordsPartitionResult,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsRequest as DeleteRecordsRequest,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsResponse as DeleteRecordsResponse,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsTopic as DeleteRecordsTopic,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsTopicResult as DeleteRecordsTopicResult,
)
from kafkaio.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest as DeleteShareGroupOffsetsRequest,
)
from kafkaio.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequestTopic as DeleteShareGroupOffsetsRequestTopic,
)
from kafkaio.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponse as DeleteShareGroupOffsetsResponse,
)
from kafkaio.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponseTopic as DeleteShareGroupOffsetsResponseTopic,
)
from kafkaio.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest as DeleteShareGroupStateRequest,
)
from kafkaio.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateResponse as DeleteShareGroupStateResponse,
)
from kafkaio.protocol.messages.delete_share_group_state import (
    DeleteStateData as DeleteStateData,
)
from kafkaio.protocol.messages.delete_share_group_state import (
    DeleteStateResult as DeleteStateResult,
)
from kafkaio.protocol.messages.delete_share_group_state import (
    PartitionData as DeleteShareGroupStateRequestPartitionData,
)
from kafkaio.protocol.messages.delete_share_group_state import (
    PartitionResult as DeleteShareGroupStateResponsePartitionResult,
)
from kafkaio.protocol.messages.delete_topics import (
    DeletableTopicResult as DeletableTopicResult,
)
from kafkaio.protocol.messages.delete_topics import (
    DeleteTopicsRequest as DeleteTopicsRequest,
)
from kafkaio.protocol.messages.delete_topics import (
    DeleteTopicsResponse as DeleteTopicsResponse,
)
from kafkaio.protocol.messages.delete_topics import DeleteTopicState as DeleteTopicState
from kafkaio.protocol.messages.describe_acls import AclDescription as AclDescription
from kafkaio.protocol.messages.describe_acls import (
    DescribeAclsRequest as DescribeAclsRequest,
)
from kafkaio.protocol.messages.describe_acls import (
    DescribeAclsResource as DescribeAclsResource,
)
from kafkaio.protocol.messages.describe_acls import (
    DescribeAclsResponse as DescribeAclsResponse,
)
from kafkaio.protocol.messages.describe_client_quotas import (
    ComponentData as ComponentData,
)
from kafkaio.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest as DescribeClientQuotasRequest,
)
from kafkaio.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasResponse as DescribeClientQuotasResponse,
)
from kafkaio.protocol.messages.describe_client_quotas import EntityData as EntityData
from kafkaio.protocol.messages.describe_client_quotas import EntryData as EntryData
from kafkaio.protocol.messages.describe_client_quotas import ValueData as ValueData
from kafkaio.protocol.messages.describe_cluster import (
    DescribeClusterBroker as DescribeClusterBroker,
)
from kafkaio.protocol.messages.describe_cluster import (
    DescribeClusterRequest as DescribeClusterRequest,
)
from kafkaio.protocol.messages.describe_cluster import (
    DescribeClusterResponse as DescribeClusterResponse,
)
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest as DescribeConfigsRequest,
)
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsResource as DescribeConfigsResource,
)
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult as DescribeConfigsResourceResult,
)
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsResponse as DescribeConfigsResponse,
)
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsResult as DescribeConfigsResult,
)
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsSynonym as DescribeConfigsSynonym,
)
from kafkaio.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken as DescribedDelegationToken,
)
from kafkaio.protocol.messages.describe_delegation_token import (
    DescribedDelegationTokenRenewer as DescribedDelegationTokenRenewer,
)
from kafkaio.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner as DescribeDelegationTokenOwner,
)
from kafkaio.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest as DescribeDelegationTokenRequest,
)
from kafkaio.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenResponse as DescribeDelegationTokenResponse,
)
from kafkaio.protocol.messages.describe_groups import (
    DescribedGroup as DescribeGroupsResponseDescribedGroup,
)
from kafkaio.protocol.messages.describe_groups import (
    DescribedGroupMember as DescribedGroupMember,
)
from kafkaio.protocol.messages.describe_groups import (
    DescribeGroupsRequest as DescribeGroupsRequest,
)
from kafkaio.protocol.messages.describe_groups import (
    DescribeGroupsResponse as DescribeGroupsResponse,
)
from kafkaio.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic as DescribableLogDirTopic,
)
from kafkaio.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition as DescribeLogDirsPartition,
)
from kafkaio.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest as DescribeLogDirsRequest,
)
from kafkaio.protocol.messages.describe_log_dirs import (
    DescribeLogDirsResponse as DescribeLogDirsResponse,
)
from kafkaio.protocol.messages.describe_log_dirs import (
    DescribeLogDirsResult as DescribeLogDirsResult,
)
from kafkaio.protocol.messages.describe_log_dirs import (
    DescribeLogDirsTopic as DescribeLogDirsTopic,
)
from kafkaio.protocol.messages.describe_producers import (
    DescribeProducersRequest as DescribeProducersRequest,
)
from kafkaio.protocol.messages.describe_producers import (
    DescribeProducersResponse as DescribeProducersResponse,
)
from kafkaio.protocol.messages.describe_producers import (
    PartitionResponse as PartitionResponse,
)
from kafkaio.protocol.messages.describe_producers import ProducerState as ProducerState
from kafkaio.protocol.messages.describe_producers import (
    TopicRequest as DescribeProducersRequestTopicRequest,
)
from kafkaio.protocol.messages.describe_producers import TopicResponse as TopicResponse
from kafkaio.protocol.messages.describe_quorum import (
    DescribeQuorumRequest as DescribeQuorumRequest,
)
from kafkaio.protocol.messages.describe_quorum import (
    DescribeQuorumRequestPartitionData as DescribeQuorumRequestPartitionData,
)
from kafkaio.protocol.messages.describe_quorum import (
    DescribeQuorumRequestTopicData as DescribeQuorumRequestTopicData,
)
from kafkaio.protocol.messages.describe_quorum import (
    DescribeQuorumResponse as DescribeQuorumResponse,
)
from kafkaio.protocol.messages.describe_quorum import (
    DescribeQuorumResponsePartitionData as DescribeQuorumResponsePartitionData,
)
from kafkaio.protocol.messages.describe_quorum import (
    DescribeQuorumResponseTopicData as DescribeQuorumResponseTopicData,
)
from kafkaio.protocol.messages.describe_quorum import (
    Listener as DescribeQuorumResponseListener,
)
from kafkaio.protocol.messages.describe_quorum import Node as Node
from kafkaio.protocol.messages.describe_quorum import (
    ReplicaState as DescribeQuorumResponseReplicaState,
)
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest as DescribeShareGroupOffsetsRequest,
)
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestGroup as DescribeShareGroupOffsetsRequestGroup,
)
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestTopic as DescribeShareGroupOffsetsRequestTopic,
)
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse as DescribeShareGroupOffsetsResponse,
)
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseGroup as DescribeShareGroupOffsetsResponseGroup,
)
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponsePartition as DescribeShareGroupOffsetsResponsePartition,
)
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseTopic as DescribeShareGroupOffsetsResponseTopic,
)
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest as DescribeTopicPartitionsRequest,
)
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequestCursor as DescribeTopicPartitionsRequestCursor,
)
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse as DescribeTopicPartitionsResponse,
)
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponseCursor as DescribeTopicPartitionsResponseCursor,
)
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponsePartition as DescribeTopicPartitionsResponsePartition,
)
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponseTopic as DescribeTopicPartitionsResponseTopic,
)
from kafkaio.protocol.messages.describe_topic_partitions import (
    TopicRequest as DescribeTopicPartitionsRequestTopicRequest,
)
from kafkaio.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest as DescribeTransactionsRequest,
)
from kafkaio.protocol.messages.describe_transactions import (
    DescribeTransactionsResponse as DescribeTransactionsResponse,
)
from kafkaio.protocol.messages.describe_transactions import TopicData as TopicData
from kafkaio.protocol.messages.describe_transactions import (
    TransactionState as DescribeTransactionsResponseTransactionState,
)
from kafkaio.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo as CredentialInfo,
)
from kafkaio.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest as DescribeUserScramCredentialsRequest,
)
from kafkaio.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse as DescribeUserScramCredentialsResponse,
)
from kafkaio.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResult as DescribeUserScramCredentialsResult,
)
from kafkaio.protocol.messages.describe_user_scram_credentials import (
    UserName as UserName,
)
from kafkaio.protocol.messages.elect_leaders import (
    ElectLeadersRequest as ElectLeadersRequest,
)
from kafkaio.protocol.messages.elect_leaders import (
    ElectLeadersResponse as ElectLeadersResponse,
)
from kafkaio.protocol.messages.elect_leaders import (
    PartitionResult as ElectLeadersResponsePartitionResult,
)
from kafkaio.protocol.messages.elect_leaders import (
    ReplicaElectionResult as ReplicaElectionResult,
)
from kafkaio.protocol.messages.elect_leaders import (
    TopicPartitions as ElectLeadersRequestTopicPartitions,
)
from kafkaio.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest as EndQuorumEpochRequest,
)
from kafkaio.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequestPartitionData as EndQuorumEpochRequestPartitionData,
)
from kafkaio.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequestTopicData as EndQuorumEpochRequestTopicData,
)
from kafkaio.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochResponse as EndQuorumEpochResponse,
)
from kafkaio.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochResponsePartitionData as EndQuorumEpochResponsePartitionData,
)
from kafkaio.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochResponseTopicData as EndQuorumEpochResponseTopicData,
)
from kafkaio.protocol.messages.end_quorum_epoch import (
    LeaderEndpoint as EndQuorumEpochRequestLeaderEndpoint,
)
from kafkaio.protocol.messages.end_quorum_epoch import (
    NodeEndpoint as EndQuorumEpochResponseNodeEndpoint,
)
from kafkaio.protocol.messages.end_quorum_epoch import ReplicaInfo as ReplicaInfo
from kafkaio.protocol.messages.end_txn import EndTxnRequest as EndTxnRequest
from kafkaio.protocol.messages.end_txn import EndTxnResponse as EndTxnResponse
from kafkaio.protocol.messages.end_txn_marker import EndTxnMarker as EndTxnMarker
from kafkaio.protocol.messages.envelope import EnvelopeRequest as EnvelopeRequest
from kafkaio.protocol.messages.envelope import EnvelopeResponse as EnvelopeResponse
from kafkaio.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest as ExpireDelegationTokenRequest,
)
from kafkaio.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenResponse as ExpireDelegationTokenResponse,
)
from kafkaio.protocol.messages.fetch import AbortedTransaction as AbortedTransaction
from kafkaio.protocol.messages.fetch import (
    EpochEndOffset as FetchResponseEpochEndOffset,
)
from kafkaio.protocol.messages.fetch import (
    FetchableTopicResponse as FetchableTopicResponse,
)
from kafkaio.protocol.messages.fetch import FetchPartition as FetchRequestFetchPartition
from kafkaio.protocol.messages.fetch import FetchRequest as FetchRequest
from kafkaio.protocol.messages.fetch import FetchResponse as FetchResponse
from kafkaio.protocol.messages.fetch import FetchTopic as FetchRequestFetchTopic
from kafkaio.protocol.messages.fetch import ForgottenTopic as FetchRequestForgottenTopic
from kafkaio.protocol.messages.fetch import (
    LeaderIdAndEpoch as FetchResponseLeaderIdAndEpoch,
)
from kafkaio.protocol.messages.fetch import NodeEndpoint as FetchResponseNodeEndpoint
from kafkaio.protocol.messages.fetch import PartitionData as FetchResponsePartitionData
from kafkaio.protocol.messages.fetch import ReplicaState as FetchRequestReplicaState
from kafkaio.protocol.messages.fetch import SnapshotId as SnapshotId
from kafkaio.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest as FetchSnapshotRequest,
)
from kafkaio.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequestPartitionSnapshot as FetchSnapshotRequestPartitionSnapshot,
)
from kafkaio.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequestSnapshotId as FetchSnapshotRequestSnapshotId,
)
from kafkaio.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequestTopicSnapshot as FetchSnapshotRequestTopicSnapshot,
)
from kafkaio.protocol.messages.fetch_snapshot import (
    FetchSnapshotResponse as FetchSnapshotResponse,
)
from kafkaio.protocol.messages.fetch_snapshot import (
    FetchSnapshotResponsePartitionSnapshot as FetchSnapshotResponsePartitionSnapshot,
)
from kafkaio.protocol.messages.fetch_snapshot import (
    FetchSnapshotResponseSnapshotId as FetchSnapshotResponseSnapshotId,
)
from kafkaio.protocol.messages.fetch_snapshot import (
    FetchSnapshotResponseTopicSnapshot as FetchSnapshotResponseTopicSnapshot,
)
from kafkaio.protocol.messages.fetch_snapshot import (
    LeaderIdAndEpoch as FetchSnapshotResponseLeaderIdAndEpoch,
)
from kafkaio.protocol.messages.fetch_snapshot import (
    NodeEndpoint as FetchSnapshotResponseNodeEndpoint,
)
from kafkaio.protocol.messages.find_coordinator import Coordinator as Coordinator
from kafkaio.protocol.messages.find_coordinator import (
    FindCoordinatorRequest as FindCoordinatorRequest,
)
from kafkaio.protocol.messages.find_coordinator import (
    FindCoordinatorResponse as FindCoordinatorResponse,
)
from kafkaio.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest as GetTelemetrySubscriptionsRequest,
)
from kafkaio.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsResponse as GetTelemetrySubscriptionsResponse,
)
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest as HeartbeatRequest
from kafkaio.protocol.messages.heartbeat import HeartbeatResponse as HeartbeatResponse
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
    IncrementalAlterConfigsRequest as IncrementalAlterConfigsRequest,
)
from kafkaio.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse as IncrementalAlterConfigsResponse,
)
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest as InitProducerIdRequest,
)
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdResponse as InitProducerIdResponse,
)
from kafkaio.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest as InitializeShareGroupStateRequest,
)
from kafkaio.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateResponse as InitializeShareGroupStateResponse,
)
from kafkaio.protocol.messages.initialize_share_group_state import (
    InitializeStateData as InitializeStateData,
)
from kafkaio.protocol.messages.initialize_share_group_state import (
    InitializeStateResult as InitializeStateResult,
)
from kafkaio.protocol.messages.initialize_share_group_state import (
    PartitionData as InitializeShareGroupStateRequestPartitionData,
)
from kafkaio.protocol.messages.initialize_share_group_state import (
    PartitionResult as InitializeShareGroupStateResponsePartitionResult,
)
from kafkaio.protocol.messages.join_group import JoinGroupRequest as JoinGroupRequest
from kafkaio.protocol.messages.join_group import (
    JoinGroupRequestProtocol as JoinGroupRequestProtocol,
)
from kafkaio.protocol.messages.join_group import JoinGroupResponse as JoinGroupResponse
from kafkaio.protocol.messages.join_group import (
    JoinGroupResponseMember as JoinGroupResponseMember,
)
from kafkaio.protocol.messages.kraft_version_record import (
    KRaftVersionRecord as KRaftVersionRecord,
)
from kafkaio.protocol.messages.leader_change_message import (
    LeaderChangeMessage as LeaderChangeMessage,
)
from kafkaio.protocol.messages.leader_change_message import (
    Voter as LeaderChangeMessageVoter,
)
from kafkaio.protocol.messages.leave_group import LeaveGroupRequest as LeaveGroupRequest
from kafkaio.protocol.messages.leave_group import (
    LeaveGroupResponse as LeaveGroupResponse,
)
from kafkaio.protocol.messages.leave_group import MemberIdentity as MemberIdentity
from kafkaio.protocol.messages.leave_group import MemberResponse as MemberResponse
from kafkaio.protocol.messages.list_config_resources import (
    ConfigResource as ConfigResource,
)
from kafkaio.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest as ListConfigResourcesRequest,
)
from kafkaio.protocol.messages.list_config_resources import (
    ListConfigResourcesResponse as ListConfigResourcesResponse,
)
from kafkaio.protocol.messages.list_groups import ListedGroup as ListedGroup
from kafkaio.protocol.messages.list_groups import ListGroupsRequest as ListGroupsRequest
from kafkaio.protocol.messages.list_groups import (
    ListGroupsResponse as ListGroupsResponse,
)
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition as ListOffsetsPartition,
)
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse as ListOffsetsPartitionResponse,
)
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsRequest as ListOffsetsRequest,
)
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsResponse as ListOffsetsResponse,
)
from kafkaio.protocol.messages.list_offsets import ListOffsetsTopic as ListOffsetsTopic
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsTopicResponse as ListOffsetsTopicResponse,
)
from kafkaio.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest as ListPartitionReassignmentsRequest,
)
from kafkaio.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse as ListPartitionReassignmentsResponse,
)
from kafkaio.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsTopics as ListPartitionReassignmentsTopics,
)
from kafkaio.protocol.messages.list_partition_reassignments import (
    OngoingPartitionReassignment as OngoingPartitionReassignment,
)
from kafkaio.protocol.messages.list_partition_reassignments import (
    OngoingTopicReassignment as OngoingTopicReassignment,
)
from kafkaio.protocol.messages.list_transactions import (
    ListTransactionsRequest as ListTransactionsRequest,
)
from kafkaio.protocol.messages.list_transactions import (
    ListTransactionsResponse as ListTransactionsResponse,
)
from kafkaio.protocol.messages.list_transactions import (
    TransactionState as ListTransactionsResponseTransactionState,
)
from kafkaio.protocol.messages.metadata import MetadataRequest as MetadataRequest
from kafkaio.protocol.messages.metadata import (
    MetadataRequestTopic as MetadataRequestTopic,
)
from kafkaio.protocol.messages.metadata import MetadataResponse as MetadataResponse
from kafkaio.protocol.messages.metadata import (
    MetadataResponseBroker as MetadataResponseBroker,
)
from kafkaio.protocol.messages.metadata import (
    MetadataResponsePartition as MetadataResponsePartition,
)
from kafkaio.protocol.messages.metadata import (
    MetadataResponseTopic as MetadataResponseTopic,
)
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequest as OffsetCommitRequest,
)
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition as OffsetCommitRequestPartition,
)
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequestTopic as OffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitResponse as OffsetCommitResponse,
)
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitResponsePartition as OffsetCommitResponsePartition,
)
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitResponseTopic as OffsetCommitResponseTopic,
)
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteRequest as OffsetDeleteRequest,
)
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition as OffsetDeleteRequestPartition,
)
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteRequestTopic as OffsetDeleteRequestTopic,
)
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteResponse as OffsetDeleteResponse,
)
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteResponsePartition as OffsetDeleteResponsePartition,
)
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteResponseTopic as OffsetDeleteResponseTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequest as OffsetFetchRequest,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup as OffsetFetchRequestGroup,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequestTopic as OffsetFetchRequestTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequestTopics as OffsetFetchRequestTopics,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponse as OffsetFetchResponse,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponseGroup as OffsetFetchResponseGroup,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponsePartition as OffsetFetchResponsePartition,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponsePartitions as OffsetFetchResponsePartitions,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponseTopic as OffsetFetchResponseTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchResponseTopics as OffsetFetchResponseTopics,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset as OffsetForLeaderEpochResponseEpochEndOffset,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest as OffsetForLeaderEpochRequest,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochResponse as OffsetForLeaderEpochResponse,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderPartition as OffsetForLeaderPartition,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderTopic as OffsetForLeaderTopic,
)
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderTopicResult as OffsetForLeaderTopicResult,
)
from kafkaio.protocol.messages.produce import (
    BatchIndexAndErrorMessage as BatchIndexAndErrorMessage,
)
from kafkaio.protocol.messages.produce import (
    LeaderIdAndEpoch as ProduceResponseLeaderIdAndEpoch,
)
from kafkaio.protocol.messages.produce import (
    NodeEndpoint as ProduceResponseNodeEndpoint,
)
from kafkaio.protocol.messages.produce import (
    PartitionProduceData as PartitionProduceData,
)
from kafkaio.protocol.messages.produce import (
    PartitionProduceResponse as PartitionProduceResponse,
)
from kafkaio.protocol.messages.produce import ProduceRequest as ProduceRequest
from kafkaio.protocol.messages.produce import ProduceResponse as ProduceResponse
from kafkaio.protocol.messages.produce import TopicProduceData as TopicProduceData
from kafkaio.protocol.messages.produce import (
    TopicProduceResponse as TopicProduceResponse,
)
from kafkaio.protocol.messages.push_telemetry import (
    PushTelemetryRequest as PushTelemetryRequest,
)
from kafkaio.protocol.messages.push_telemetry import (
    PushTelemetryResponse as PushTelemetryResponse,
)
from kafkaio.protocol.messages.read_share_group_state import (
    PartitionData as ReadShareGroupStateRequestPartitionData,
)
from kafkaio.protocol.messages.read_share_group_state import (
    PartitionResult as ReadShareGroupStateResponsePartitionResult,
)
from kafkaio.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest as ReadShareGroupStateRequest,
)
from kafkaio.protocol.messages.read_share_group_state import (
    ReadShareGroupStateResponse as ReadShareGroupStateResponse,
)
from kafkaio.protocol.messages.read_share_group_state import (
    ReadStateData as ReadStateData,
)
from kafkaio.protocol.messages.read_share_group_state import (
    ReadStateResult as ReadStateResult,
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
    ReadShareGroupStateSummaryRequest as ReadShareGroupStateSummaryRequest,
)
from kafkaio.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryResponse as ReadShareGroupStateSummaryResponse,
)
from kafkaio.protocol.messages.read_share_group_state_summary import (
    ReadStateSummaryData as ReadStateSummaryData,
)
from kafkaio.protocol.messages.read_share_group_state_summary import (
    ReadStateSummaryResult as ReadStateSummaryResult,
)
from kafkaio.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest as RemoveRaftVoterRequest,
)
from kafkaio.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterResponse as RemoveRaftVoterResponse,
)
from kafkaio.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest as RenewDelegationTokenRequest,
)
from kafkaio.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenResponse as RenewDelegationTokenResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader as RequestHeader
from kafkaio.protocol.messages.response_header import ResponseHeader as ResponseHeader
from kafkaio.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest as SaslAuthenticateRequest,
)
from kafkaio.protocol.messages.sasl_authenticate import (
    SaslAuthenticateResponse as SaslAuthenticateResponse,
)
from kafkaio.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest as SaslHandshakeRequest,
)
from kafkaio.protocol.messages.sasl_handshake import (
    SaslHandshakeResponse as SaslHandshakeResponse,
)
from kafkaio.protocol.messages.share_acknowledge import (
    AcknowledgementBatch as ShareAcknowledgeRequestAcknowledgementBatch,
)
from kafkaio.protocol.messages.share_acknowledge import (
    AcknowledgePartition as AcknowledgePartition,
)
from kafkaio.protocol.messages.share_acknowledge import (
    AcknowledgeTopic as AcknowledgeTopic,
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
from kafkaio.protocol.messages.share_acknowledge import (
    ShareAcknowledgeRequest as ShareAcknowledgeRequest,
)
from kafkaio.protocol.messages.share_acknowledge import (
    ShareAcknowledgeResponse as ShareAcknowledgeResponse,
)
from kafkaio.protocol.messages.share_acknowledge import (
    ShareAcknowledgeTopicResponse as ShareAcknowledgeTopicResponse,
)
from kafkaio.protocol.messages.share_fetch import (
    AcknowledgementBatch as ShareFetchRequestAcknowledgementBatch,
)
from kafkaio.protocol.messages.share_fetch import AcquiredRecords as AcquiredRecords
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
from kafkaio.protocol.messages.share_fetch import (
    ShareFetchableTopicResponse as ShareFetchableTopicResponse,
)
from kafkaio.protocol.messages.share_fetch import ShareFetchRequest as ShareFetchRequest
from kafkaio.protocol.messages.share_fetch import (
    ShareFetchResponse as ShareFetchResponse,
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
    ShareGroupDescribeRequest as ShareGroupDescribeRequest,
)
from kafkaio.protocol.messages.share_group_describe import (
    ShareGroupDescribeResponse as ShareGroupDescribeResponse,
)
from kafkaio.protocol.messages.share_group_describe import (
    TopicPartitions as ShareGroupDescribeResponseTopicPartitions,
)
from kafkaio.protocol.messages.share_group_heartbeat import (
    Assignment as ShareGroupHeartbeatResponseAssignment,
)
from kafkaio.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest as ShareGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatResponse as ShareGroupHeartbeatResponse,
)
from kafkaio.protocol.messages.share_group_heartbeat import (
    TopicPartitions as ShareGroupHeartbeatResponseTopicPartitions,
)
from kafkaio.protocol.messages.snapshot_footer_record import (
    SnapshotFooterRecord as SnapshotFooterRecord,
)
from kafkaio.protocol.messages.snapshot_header_record import (
    SnapshotHeaderRecord as SnapshotHeaderRecord,
)
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
    StreamsGroupDescribeRequest as StreamsGroupDescribeRequest,
)
from kafkaio.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeResponse as StreamsGroupDescribeResponse,
)
from kafkaio.protocol.messages.streams_group_describe import (
    Subtopology as StreamsGroupDescribeResponseSubtopology,
)
from kafkaio.protocol.messages.streams_group_describe import TaskIds as TaskIds
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
    CopartitionGroup as CopartitionGroup,
)
from kafkaio.protocol.messages.streams_group_heartbeat import (
    EndpointToPartitions as EndpointToPartitions,
)
from kafkaio.protocol.messages.streams_group_heartbeat import (
    KeyValue as StreamsGroupHeartbeatRequestKeyValue,
)
from kafkaio.protocol.messages.streams_group_heartbeat import Status as Status
from kafkaio.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest as StreamsGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequestEndpoint as StreamsGroupHeartbeatRequestEndpoint,
)
from kafkaio.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequestTaskIds as StreamsGroupHeartbeatRequestTaskIds,
)
from kafkaio.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatResponse as StreamsGroupHeartbeatResponse,
)
from kafkaio.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatResponseEndpoint as StreamsGroupHeartbeatResponseEndpoint,
)
from kafkaio.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatResponseTaskIds as StreamsGroupHeartbeatResponseTaskIds,
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
    StreamsGroupTopologyDescriptionUpdateRequest as StreamsGroupTopologyDescriptionUpdateRequest,
)
from kafkaio.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateResponse as StreamsGroupTopologyDescriptionUpdateResponse,
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
from kafkaio.protocol.messages.sync_group import SyncGroupRequest as SyncGroupRequest
from kafkaio.protocol.messages.sync_group import (
    SyncGroupRequestAssignment as SyncGroupRequestAssignment,
)
from kafkaio.protocol.messages.sync_group import SyncGroupResponse as SyncGroupResponse
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest as TxnOffsetCommitRequest,
)
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition as TxnOffsetCommitRequestPartition,
)
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequestTopic as TxnOffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse as TxnOffsetCommitResponse,
)
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponsePartition as TxnOffsetCommitResponsePartition,
)
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponseTopic as TxnOffsetCommitResponseTopic,
)
from kafkaio.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest as UnregisterBrokerRequest,
)
from kafkaio.protocol.messages.unregister_broker import (
    UnregisterBrokerResponse as UnregisterBrokerResponse,
)
from kafkaio.protocol.messages.unregister_controller import (
    UnregisterControllerRequest as UnregisterControllerRequest,
)
from kafkaio.protocol.messages.unregister_controller import (
    UnregisterControllerResponse as UnregisterControllerResponse,
)
from kafkaio.protocol.messages.update_features import (
    FeatureUpdateKey as FeatureUpdateKey,
)
from kafkaio.protocol.messages.update_features import (
    UpdatableFeatureResult as UpdatableFeatureResult,
)
from kafkaio.protocol.messages.update_features import (
    UpdateFeaturesRequest as UpdateFeaturesRequest,
)
from kafkaio.protocol.messages.update_features import (
    UpdateFeaturesResponse as UpdateFeaturesResponse,
)
from kafkaio.protocol.messages.update_raft_voter import CurrentLeader as CurrentLeader
from kafkaio.protocol.messages.update_raft_voter import (
    KRaftVersionFeature as UpdateRaftVoterRequestKRaftVersionFeature,
)
from kafkaio.protocol.messages.update_raft_voter import (
    Listener as UpdateRaftVoterRequestListener,
)
from kafkaio.protocol.messages.update_raft_voter import (
    UpdateRaftVoterRequest as UpdateRaftVoterRequest,
)
from kafkaio.protocol.messages.update_raft_voter import (
    UpdateRaftVoterResponse as UpdateRaftVoterResponse,
)
from kafkaio.protocol.messages.vote import NodeEndpoint as VoteResponseNodeEndpoint
from kafkaio.protocol.messages.vote import VoteRequest as VoteRequest
from kafkaio.protocol.messages.vote import (
    VoteRequestPartitionData as VoteRequestPartitionData,
)
from kafkaio.protocol.messages.vote import VoteRequestTopicData as VoteRequestTopicData
from kafkaio.protocol.messages.vote import VoteResponse as VoteResponse
from kafkaio.protocol.messages.vote import (
    VoteResponsePartitionData as VoteResponsePartitionData,
)
from kafkaio.protocol.messages.vote import (
    VoteResponseTopicData as VoteResponseTopicData,
)
from kafkaio.protocol.messages.voters_record import Endpoint as VotersRecordEndpoint
from kafkaio.protocol.messages.voters_record import (
    KRaftVersionFeature as VotersRecordKRaftVersionFeature,
)
from kafkaio.protocol.messages.voters_record import Voter as VotersRecordVoter
from kafkaio.protocol.messages.voters_record import VotersRecord as VotersRecord
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
    WriteShareGroupStateRequest as WriteShareGroupStateRequest,
)
from kafkaio.protocol.messages.write_share_group_state import (
    WriteShareGroupStateResponse as WriteShareGroupStateResponse,
)
from kafkaio.protocol.messages.write_share_group_state import (
    WriteStateData as WriteStateData,
)
from kafkaio.protocol.messages.write_share_group_state import (
    WriteStateResult as WriteStateResult,
)
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarker as WritableTxnMarker,
)
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult as WritableTxnMarkerPartitionResult,
)
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarkerResult as WritableTxnMarkerResult,
)
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarkerTopic as WritableTxnMarkerTopic,
)
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarkerTopicResult as WritableTxnMarkerTopicResult,
)
from kafkaio.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest as WriteTxnMarkersRequest,
)
from kafkaio.protocol.messages.write_txn_markers import (
    WriteTxnMarkersResponse as WriteTxnMarkersResponse,
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
