import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ClassicGroupDescription;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeConsumerGroupsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;

/** Asks Java's Admin of a topic, a broker and a group; prints a line for each fact. */
public final class Describe {
    private static final List<String> FACTS = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        String topic = args[1], group = args[2], broker = args[3];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            topics(admin, topic);
            configs(admin, new ConfigResource(ConfigResource.Type.TOPIC, topic));
            configs(admin, new ConfigResource(ConfigResource.Type.BROKER, broker));
            group(admin, group);
            offsets(admin, topic, group);
            directories(admin, topic);
            admin.listConfigResources().all().get().forEach(it -> fact("resource", it.type(), it.name()));
            admin.listPartitionReassignments().reassignments().get().forEach((tp, moved) ->
                fact("moving", tp, moved.replicas(), moved.addingReplicas(), moved.removingReplicas()));
        }
        Collections.sort(FACTS);
        FACTS.forEach(System.out::println);
    }

    private static void topics(Admin admin, String name) throws Exception {
        var listed = admin.listTopics(new ListTopicsOptions().listInternal(true)).namesToListings().get();
        listed.forEach((key, it) -> fact("listed", key, it.topicId(), it.isInternal()));
        var options = new DescribeTopicsOptions().includeAuthorizedOperations(true);
        var topic = admin.describeTopics(List.of(name), options).allTopicNames().get().get(name);
        fact("topic", topic.name(), topic.topicId(), topic.isInternal(), operations(topic.authorizedOperations()));
        topic.partitions().forEach(it -> fact("partition", it.partition(),
            it.leader() == null ? null : it.leader().id(), ids(it.replicas()), ids(it.isr()), ids(it.elr()),
            ids(it.lastKnownElr())));
    }

    private static void configs(Admin admin, ConfigResource resource) throws Exception {
        var options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        for (ConfigEntry it : admin.describeConfigs(List.of(resource), options).all().get().get(resource).entries()) {
            fact("config", resource.name(), it.name(), it.value(), it.source(), it.isReadOnly(), it.isSensitive(),
                it.isDefault(), it.type(), words(it.documentation()), it.synonyms().stream().map(s -> s.name() + "=" + s.value() + "@" + s.source())
                    .collect(Collectors.joining(";")));
        }
    }

    private static void group(Admin admin, String name) throws Exception {
        admin.listGroups().all().get().forEach(it -> fact("group", it.groupId(), it.type().get(), it.protocol(),
            it.groupState().get(), it.isSimpleConsumerGroup()));
        var options = new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true);
        var group = admin.describeConsumerGroups(List.of(name), options).all().get().get(name);
        fact("described", group.groupId(), group.type(), group.groupState(), group.partitionAssignor(),
            group.coordinator().id(), group.groupEpoch().orElse(null), group.targetAssignmentEpoch().orElse(null),
            group.isSimpleConsumerGroup(), operations(group.authorizedOperations()));
        group.members().forEach(it -> member("member", it));
        try {
            classic(admin.describeClassicGroups(List.of(name)).describedGroups().get(name).get());
        } catch (ExecutionException error) {
            fact("classic", name, Errors.forException(error.getCause()).code());
        }
    }

    private static void classic(ClassicGroupDescription group) {
        fact("classic", group.groupId(), group.protocol(), group.protocolData(), group.isSimpleConsumerGroup(),
            group.state(), group.coordinator().id());
        group.members().forEach(it -> member("classic member", it));
    }

    private static void member(String what, MemberDescription it) {
        fact(what, it.consumerId(), it.groupInstanceId().orElse(null), it.rackId().orElse(null), it.clientId(),
            it.host(), partitions(it.assignment().topicPartitions()),
            it.targetAssignment().map(a -> partitions(a.topicPartitions())).orElse(null),
            it.memberEpoch().orElse(null), it.upgraded().map(u -> !u).orElse(null));
    }

    private static void offsets(Admin admin, String topic, String group) throws Exception {
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((tp, it) ->
            fact("committed", tp, it.offset(), it.metadata(), it.leaderEpoch().orElse(-1)));
        TopicPartition tp = new TopicPartition(topic, 0);
        for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp(),
                OffsetSpec.forTimestamp(0), OffsetSpec.forTimestamp(Long.MAX_VALUE))) {
            var found = admin.listOffsets(Map.of(tp, spec)).all().get().get(tp);
            String kind = spec.getClass().getSimpleName();
            fact("offset", kind, found.offset(), found.timestamp(), found.leaderEpoch().orElse(-1));
        }
    }

    private static void directories(Admin admin, String topic) throws Exception {
        Collection<Integer> nodes = admin.describeCluster().nodes().get().stream().map(Node::id).toList();
        admin.describeLogDirs(nodes).allDescriptions().get().forEach((node, found) -> found.forEach((path, it) -> {
            fact("directory", node, path, it.error() == null, it.totalBytes().orElse(-1),
                it.usableBytes().isPresent(), it.isCordoned());
            it.replicaInfos().forEach((tp, replica) -> {
                if (tp.topic().equals(topic)) {
                    fact("replica", node, tp, replica.size(), replica.offsetLag(), replica.isFuture());
                }
            });
        }));
        var replicas = nodes.stream().map(node -> new TopicPartitionReplica(topic, 0, node)).toList();
        admin.describeReplicaLogDirs(replicas).all().get().forEach((replica, it) -> fact("placed", replica.brokerId(),
            it.getCurrentReplicaLogDir(), it.getCurrentReplicaOffsetLag(), it.getFutureReplicaLogDir(),
            it.getFutureReplicaOffsetLag()));
    }

    private static String words(String text) {
        return text == null ? null : text.strip().replaceAll("\\s+", " ");
    }

    private static String partitions(Set<TopicPartition> found) {
        return String.join(";", new TreeSet<>(found.stream().map(TopicPartition::toString).toList()));
    }

    private static String ids(Collection<Node> nodes) {
        return nodes == null ? "" : nodes.stream().map(Node::idString).collect(Collectors.joining(";"));
    }

    private static String operations(Set<AclOperation> operations) {
        return String.join(";", new TreeSet<>(operations.stream().map(Enum::name).toList()));
    }

    private static void fact(Object... parts) {
        List<String> texts = new ArrayList<>();
        for (Object part : parts) {
            texts.add(part instanceof Collection<?> many
                ? many.stream().map(String::valueOf).collect(Collectors.joining(";")) : String.valueOf(part));
        }
        FACTS.add(String.join("\t", texts));
    }
}
