import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/**
 * A member of a consumer group that says what it has been assigned.
 *
 * <p>Arguments: bootstrap servers, group, topic, assignors by name, separated by commas, or
 * "consumer" for the protocol of KIP-848.
 * Prints "assigned 0 1 2" each time its partitions change, and "record value" for each
 * record. Ends when its input does.
 */
public final class GroupMember {
  public static void main(String[] args) throws Exception {
    AtomicBoolean ends = Input.end();
    Properties properties = new Properties();
    properties.put("bootstrap.servers", args[0]);
    properties.put("group.id", args[1]);
    if (args[3].equals("consumer")) {
      properties.put("group.protocol", "consumer");
    } else {
      properties.put("partition.assignment.strategy", assignors(args[3]));
      properties.put("heartbeat.interval.ms", "300");
    }
    properties.put("auto.offset.reset", "earliest");
    String bytes = "org.apache.kafka.common.serialization.StringDeserializer";
    properties.put("key.deserializer", bytes);
    properties.put("value.deserializer", bytes);
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties)) {
      consumer.subscribe(List.of(args[2]));
      String before = "";
      while (!ends.get()) {
        for (ConsumerRecord<String, String> record :
            consumer.poll(Duration.ofMillis(100))) {
          System.out.println("record " + record.value());
        }
        TreeSet<Integer> numbers = new TreeSet<>();
        consumer.assignment().forEach(tp -> numbers.add(tp.partition()));
        StringBuilder now = new StringBuilder("assigned");
        numbers.forEach(number -> now.append(' ').append(number));
        if (!now.toString().equals(before)) {
          before = now.toString();
          System.out.println(before);
        }
      }
    }
  }

  private static String assignors(String names) {
    String all = "org.apache.kafka.clients.consumer.";
    Map<String, String> classes =
        Map.of(
            "cooperative-sticky", "CooperativeStickyAssignor",
            "range", "RangeAssignor",
            "roundrobin", "RoundRobinAssignor",
            "sticky", "StickyAssignor");
    return Arrays.stream(names.split(","))
        .map(name -> all + classes.get(name))
        .collect(Collectors.joining(","));
  }
}
