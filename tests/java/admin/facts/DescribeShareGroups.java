import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeShareGroupsOptions;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.common.TopicPartition;

/** Asks Java's Admin of share groups, one with members and one without; prints a line for each fact. */
public final class DescribeShareGroups {
    public static void main(String[] args) throws Exception {
        String topic = args[1], busy = args[2], idle = args[3];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            groups(admin, List.of(busy, idle));
            offsets(admin, List.of(busy, idle));
            refusals(admin, topic, busy, idle);
        }
    }

    private static void groups(Admin admin, List<String> names) throws Exception {
        admin.listGroups(ListGroupsOptions.forShareGroups()).all().get().forEach(it ->
            Facts.fact("group", it.groupId(), it.type().get(), it.protocol(), it.groupState().get()));
        var options = new DescribeShareGroupsOptions().includeAuthorizedOperations(true);
        admin.describeShareGroups(names, options).all().get().values().forEach(group -> {
            Facts.fact("described", group.groupId(), group.groupState(), group.coordinator().id(), group.groupEpoch(),
                group.targetAssignmentEpoch(), group.authorizedOperations().stream().map(Enum::name).sorted()
                    .collect(Collectors.joining(";")));
            group.members().forEach(it -> Facts.fact("member", it.consumerId(), it.rackId().orElse(null), it.clientId(),
                it.host(), it.memberEpoch(), partitions(it.assignment().topicPartitions())));
        });
    }

    private static void offsets(Admin admin, List<String> names) throws Exception {
        var found = admin.listShareGroupOffsets(names.stream().collect(Collectors.toMap(
            name -> name, name -> new ListShareGroupOffsetsSpec())));
        for (String name : names) {
            found.partitionsToOffsetInfo(name).get().forEach((tp, it) -> Facts.fact("offset", name, tp,
                it == null ? null : it.startOffset(), it == null ? null : it.leaderEpoch().orElse(null),
                it == null ? null : it.lag().orElse(null)));
        }
    }

    private static void refusals(Admin admin, String topic, String busy, String idle) throws Exception {
        TopicPartition there = new TopicPartition(topic, 0), missing = new TopicPartition("no-such-topic", 0);
        Facts.refusal(admin.describeShareGroups(List.of("no")).describedGroups().get("no"), "describe", "no");
        Facts.refusal(admin.deleteShareGroups(List.of(busy)).deletedGroups().get(busy), "delete", busy);
        Facts.refusal(admin.deleteShareGroups(List.of("no")).deletedGroups().get("no"), "delete", "no");
        Facts.refusal(admin.alterShareGroupOffsets(busy, Map.of(there, 0L)).partitionResult(there), "alter", busy);
        Facts.refusal(admin.alterShareGroupOffsets(idle, Map.of(missing, 0L)).partitionResult(missing), "alter", idle);
        Facts.refusal(admin.deleteShareGroupOffsets(busy, Set.of(topic)).topicResult(topic), "forget", busy);
        Facts.refusal(admin.deleteShareGroupOffsets(idle, Set.of("no-such-topic")).topicResult("no-such-topic"),
            "forget", idle);
        Facts.refusal(admin.deleteShareGroupOffsets("no", Set.of(topic)).topicResult(topic), "forget", "no");
    }

    private static String partitions(Set<TopicPartition> found) {
        return String.join(";", new TreeSet<>(found.stream().map(TopicPartition::toString).toList()));
    }
}
