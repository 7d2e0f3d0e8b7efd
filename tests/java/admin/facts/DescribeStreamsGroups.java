import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeStreamsGroupsOptions;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec;
import org.apache.kafka.clients.admin.StreamsGroupMemberAssignment;
import org.apache.kafka.clients.admin.StreamsGroupMemberDescription;
import org.apache.kafka.clients.admin.StreamsGroupSubtopologyDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Asks Java's Admin of streams groups, one with members and one without; prints a line for each fact.
 * Then it changes the offsets of the one without, and prints what these are.
 */
public final class DescribeStreamsGroups {
    public static void main(String[] args) throws Exception {
        String topic = args[1], busy = args[2], idle = args[3];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            groups(admin, List.of(busy, idle));
            offsets(admin, "offset", List.of(busy, idle), topic);
            refusals(admin, topic, busy, idle);
            change(admin, topic, idle);
            offsets(admin, "changed", List.of(idle), topic);
        }
    }

    private static void groups(Admin admin, List<String> names) throws Exception {
        admin.listGroups(ListGroupsOptions.forStreamsGroups()).all().get().forEach(it ->
            Facts.fact("group", it.groupId(), it.type().get(), it.protocol(), it.groupState().get(),
                it.isSimpleConsumerGroup()));
        var options = new DescribeStreamsGroupsOptions().includeAuthorizedOperations(true);
        admin.describeStreamsGroups(names, options).all().get().values().forEach(group -> {
            String name = group.groupId();
            Facts.fact("described", name, group.groupState(), group.coordinator().id(), group.groupEpoch(),
                group.targetAssignmentEpoch(), group.topologyEpoch(), group.authorizedOperations().stream()
                    .map(Enum::name).sorted().collect(Collectors.joining(";")));
            group.subtopologies().forEach(it -> subtopology(name, it));
            group.members().forEach(it -> member(name, it));
        });
    }

    private static void subtopology(String group, StreamsGroupSubtopologyDescription it) {
        Facts.fact("subtopology", group, it.subtopologyId(), it.sourceTopics(), it.repartitionSinkTopics());
        topics(group, "changelog", it.subtopologyId(), it.stateChangelogTopics());
        topics(group, "repartition", it.subtopologyId(), it.repartitionSourceTopics());
    }

    private static void topics(String group, String what, String subtopology,
            Map<String, StreamsGroupSubtopologyDescription.TopicInfo> topics) {
        topics.forEach((name, it) -> Facts.fact(what, group, subtopology, name, it.partitions(), it.replicationFactor(),
            sorted(it.topicConfigs())));
    }

    private static void member(String group, StreamsGroupMemberDescription it) {
        Facts.fact("member", group, it.memberId(), it.instanceId().orElse(null), it.clientId(), it.clientHost(),
            it.rackId().orElse(null), it.memberEpoch(), it.topologyEpoch(), it.processId(),
            it.userEndpoint().map(e -> e.host() + ":" + e.port()).orElse(null), sorted(it.clientTags()),
            it.isClassic());
        tasks("assigned", it.memberId(), it.assignment());
        tasks("target", it.memberId(), it.targetAssignment());
        it.taskOffsets().forEach(o ->
            Facts.fact("task offset", it.memberId(), o.subtopologyId(), o.partition(), o.offset()));
        it.taskEndOffsets().forEach(o ->
            Facts.fact("task end", it.memberId(), o.subtopologyId(), o.partition(), o.offset()));
    }

    private static void tasks(String what, String member, StreamsGroupMemberAssignment it) {
        tasks(what, member, "active", it.activeTasks());
        tasks(what, member, "standby", it.standbyTasks());
        tasks(what, member, "warmup", it.warmupTasks());
    }

    private static void tasks(String what, String member, String kind,
            List<StreamsGroupMemberAssignment.TaskIds> tasks) {
        tasks.forEach(it ->
            Facts.fact(what, member, kind, it.subtopologyId(), it.partitions().stream().sorted().toList()));
    }

    private static void offsets(Admin admin, String what, List<String> names, String topic) throws Exception {
        var tps = List.of(0, 1, 2).stream().map(number -> new TopicPartition(topic, number)).toList();
        var all = names.stream().collect(Collectors.toMap(name -> name, name -> new ListStreamsGroupOffsetsSpec()));
        var these = names.stream().collect(Collectors.toMap(
            name -> name, name -> new ListStreamsGroupOffsetsSpec().topicPartitions(tps)));
        offsets(what, admin.listStreamsGroupOffsets(all).all().get());
        offsets(what + " of these", admin.listStreamsGroupOffsets(these).all().get());
    }

    private static void offsets(String what, Map<String, Map<TopicPartition, OffsetAndMetadata>> found) {
        found.forEach((name, offsets) -> offsets.forEach((tp, it) -> Facts.fact(what, name, tp,
            it == null ? null : it.offset(), it == null ? null : it.metadata(),
            it == null ? null : it.leaderEpoch().orElse(-1))));
    }

    private static void refusals(Admin admin, String topic, String busy, String idle) throws Exception {
        TopicPartition there = new TopicPartition(topic, 0), missing = new TopicPartition("no-such-topic", 0);
        var zero = new OffsetAndMetadata(0);
        Facts.refusal(admin.describeStreamsGroups(List.of("no")).describedGroups().get("no"), "describe", "no");
        Facts.refusal(admin.deleteStreamsGroups(List.of(busy)).deletedGroups().get(busy), "delete", busy);
        Facts.refusal(admin.deleteStreamsGroups(List.of("no")).deletedGroups().get("no"), "delete", "no");
        Facts.refusal(admin.alterStreamsGroupOffsets(busy, Map.of(there, zero)).partitionResult(there), "alter", busy);
        Facts.refusal(admin.deleteStreamsGroupOffsets(busy, Set.of(there)).partitionResult(there), "forget", busy);
        Facts.refusal(admin.deleteStreamsGroupOffsets(idle, Set.of(missing)).partitionResult(missing), "forget", idle);
        Facts.refusal(admin.deleteStreamsGroupOffsets("no", Set.of(there)).partitionResult(there), "forget", "no");
    }

    private static void change(Admin admin, String topic, String idle) throws Exception {
        TopicPartition first = new TopicPartition(topic, 0), last = new TopicPartition(topic, 2);
        admin.alterStreamsGroupOffsets(idle, Map.of(last, new OffsetAndMetadata(7, "by Java"))).all().get();
        admin.deleteStreamsGroupOffsets(idle, Set.of(first)).all().get();
    }

    private static String sorted(Map<String, String> pairs) {
        return new TreeMap<>(pairs).entrySet().stream().map(Object::toString).collect(Collectors.joining(";"));
    }
}
