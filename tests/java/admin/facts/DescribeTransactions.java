import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeProducersOptions;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.common.TopicPartition;

/** Asks Java's Admin of transactions, or has it fence producers; prints a line for each fact. */
public final class DescribeTransactions {
    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[1]))) {
            if (args[0].equals("fence")) {
                fence(admin, Arrays.asList(args).subList(2, args.length));
                return;
            }
            String topic = args[2], elsewhere = args[3], prefix = args[4];
            listings(admin, prefix, Long.parseLong(args[5]));
            descriptions(admin, Arrays.asList(args).subList(6, args.length));
            producers(admin, topic, "producer", new DescribeProducersOptions());
            for (int broker : List.of(1, 2, 3)) {
                producers(admin, topic, "at " + broker, new DescribeProducersOptions().brokerId(broker));
            }
            refusals(admin, new TopicPartition(elsewhere, 0));
        }
    }

    private static void listings(Admin admin, String prefix, long producerId) throws Exception {
        var open = Set.of(TransactionState.ONGOING);
        var ended = Set.of(TransactionState.COMPLETE_ABORT, TransactionState.COMPLETE_COMMIT);
        listed(admin, "all", prefix, new ListTransactionsOptions());
        listed(admin, "open", prefix, new ListTransactionsOptions().filterStates(open));
        listed(admin, "ended", prefix, new ListTransactionsOptions().filterStates(ended));
        listed(admin, "producer", prefix, new ListTransactionsOptions().filterProducerIds(Set.of(producerId)));
        listed(admin, "any age", prefix, new ListTransactionsOptions().filterOnDuration(0));
        listed(admin, "an hour", prefix, new ListTransactionsOptions().filterOnDuration(3_600_000));
        listed(admin, "pattern", prefix, new ListTransactionsOptions().filterOnTransactionalIdPattern(".*-aborted"));
        listed(admin, "part", prefix, new ListTransactionsOptions().filterOnTransactionalIdPattern("aborted"));
        listed(admin, "several", prefix, new ListTransactionsOptions().filterStates(open).filterOnDuration(0)
            .filterOnTransactionalIdPattern(prefix + ".*"));
        listed(admin, "none", prefix, new ListTransactionsOptions().filterStates(ended)
            .filterProducerIds(Set.of(producerId)));
    }

    private static void listed(Admin admin, String filter, String prefix, ListTransactionsOptions options)
            throws Exception {
        admin.listTransactions(options).allByBrokerId().get().forEach((broker, found) -> found.forEach(it -> {
            if (it.transactionalId().startsWith(prefix)) {
                Facts.fact("listed", filter, broker, it.transactionalId(), it.producerId(), it.state());
            }
        }));
    }

    private static void descriptions(Admin admin, List<String> names) throws Exception {
        admin.describeTransactions(names).all().get().forEach((name, it) -> {
            Facts.fact("described", name, it.coordinatorId(), it.state(), it.producerId(), it.producerEpoch(),
                it.transactionTimeoutMs(), it.topicPartitions().stream().map(TopicPartition::toString).sorted()
                    .collect(Collectors.joining(";")));
            it.transactionStartTimeMs().ifPresent(time -> Facts.fact("began", name, time));
        });
    }

    private static void producers(Admin admin, String topic, String what, DescribeProducersOptions options)
            throws Exception {
        var tps = List.of(0, 1, 2).stream().map(number -> new TopicPartition(topic, number)).toList();
        admin.describeProducers(tps, options).all().get().forEach((tp, found) -> found.activeProducers().forEach(it ->
            Facts.fact(what, tp, it.producerId(), it.producerEpoch(), it.lastSequence(), it.lastTimestamp(),
                it.coordinatorEpoch().isPresent() ? it.coordinatorEpoch().getAsInt() : null,
                it.currentTransactionStartOffset().isPresent() ? it.currentTransactionStartOffset().getAsLong()
                    : null)));
    }

    private static void fence(Admin admin, List<String> names) throws Exception {
        var fenced = admin.fenceProducers(names);
        fenced.all().get();
        for (String name : names) {
            Facts.fact("fenced", name, fenced.producerId(name).get(), fenced.epochId(name).get());
        }
    }

    private static void refusals(Admin admin, TopicPartition elsewhere) throws Exception {
        var third = new DescribeProducersOptions().brokerId(3);
        Facts.refusal(admin.describeProducers(List.of(elsewhere), third).partitionResult(elsewhere), "producers");
        Facts.refusal(admin.describeTransactions(List.of("no")).description("no"), "describe");
        Facts.refusal(admin.listTransactions(
            new ListTransactionsOptions().filterOnTransactionalIdPattern("(")).all(), "pattern");
    }
}
