import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;

/**
 * Says how Kafka's own assignors divide.
 *
 * <p>A line "range a=3 b=1 / m1::a,b m2:static:a" is answered by "m1=a-0,a-1,b-0 m2=a-2".
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
    AbstractPartitionAssignor assignor =
        words[0].equals("range") ? new RangeAssignor() : new RoundRobinAssignor();
    Map<String, Integer> counts = new HashMap<>();
    for (int i = 1; i < words.length; i++) {
      String[] pair = words[i].split("=");
      counts.put(pair[0], Integer.parseInt(pair[1]));
    }
    Map<String, Subscription> members = new HashMap<>();
    for (String member : halves[1].split(" ")) {
      String[] parts = member.split(":", -1);
      Subscription subscription = new Subscription(List.of(parts[2].split(",")));
      if (!parts[1].isEmpty()) {
        subscription.setGroupInstanceId(Optional.of(parts[1]));
      }
      members.put(parts[0], subscription);
    }
    return new TreeMap<>(assignor.assign(counts, members))
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
}
