import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * Says how Kafka's own assignors divide.
 *
 * <p>A line has the assignor, the racks of each partition's replicas, and the members with their
 * static name, topics, rack and user data: "range a=x+y,x b= / m1::a,b:x: m2:static:a::" is
 * answered by "m1=a-0,b-0 m2=a-1".
 */
public final class AssignorOracle {
  public static void main(String[] args) throws Exception {
    var input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      System.out.println(answer(line));
    }
  }

  private static String answer(String line) {
    String[] halves = line.split(" / ");
    String[] words = halves[0].split(" ");
    Map<String, List<PartitionInfo>> partitions = new HashMap<>();
    for (int i = 1; i < words.length; i++) {
      String[] pair = words[i].split("=", 2);
      partitions.put(pair[0], infos(pair[0], pair[1]));
    }
    Map<String, Subscription> members = new HashMap<>();
    for (String member : halves[1].split(" ")) {
      String[] parts = member.split(":", -1);
      ByteBuffer data =
          parts[4].isEmpty() ? null : ByteBuffer.wrap(HexFormat.of().parseHex(parts[4]));
      Optional<String> rack = Optional.of(parts[3]).filter(name -> !name.isEmpty());
      var subscription =
          new Subscription(List.of(parts[2].split(",")), data, List.of(), -1, rack);
      if (!parts[1].isEmpty()) {
        subscription.setGroupInstanceId(Optional.of(parts[1]));
      }
      members.put(parts[0], subscription);
    }
    return new TreeMap<>(assignor(words[0]).assignPartitions(partitions, members))
        .entrySet().stream()
            .map(
                entry ->
                    entry.getKey()
                        + "="
                        + entry.getValue().stream()
                            .map(Object::toString)
                            .sorted()
                            .collect(Collectors.joining(",")))
            .collect(Collectors.joining(" "));
  }

  private static AbstractPartitionAssignor assignor(String name) {
    return switch (name) {
      case "range" -> new RangeAssignor();
      case "roundrobin" -> new RoundRobinAssignor();
      case "sticky" -> new StickyAssignor();
      default -> throw new IllegalArgumentException(name);
    };
  }

  private static List<PartitionInfo> infos(String topic, String racks) {
    List<PartitionInfo> found = new ArrayList<>();
    for (String places : racks.split(",", -1)) {
      Node[] replicas =
          Arrays.stream(places.split("\\+"))
              .map(rack -> new Node(rack.hashCode(), "host", 1, rack.isEmpty() ? null : rack))
              .toArray(Node[]::new);
      found.add(new PartitionInfo(topic, found.size(), replicas[0], replicas, replicas));
    }
    return found;
  }
}
