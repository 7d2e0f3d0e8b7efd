import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;

/**
 * A member of a share group: it journals the records that it gets, accepts each, and journals
 * what the leader answered.
 *
 * <p>Arguments: bootstrap servers, group, topic, the member's name, its journal, the most records
 * of a poll. The journal has a line of JSON for each event; see tests/support/share_peers.py.
 * Leaves when its input ends.
 */
public final class ShareMember {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private final String name;
  private final FileOutputStream journal;

  private ShareMember(String name, String path) throws IOException {
    this.name = name;
    this.journal = new FileOutputStream(path, true);
  }

  public static void main(String[] args) throws Exception {
    AtomicBoolean ends = Input.end();
    ShareMember member = new ShareMember(args[3], args[4]);
    try {
      member.live(args, ends);
    } catch (RuntimeException error) {
      member.tell("failed", quoted(error.toString()));
      throw error;
    }
  }

  private static Properties options(String[] args) {
    Properties options = new Properties();
    options.put("bootstrap.servers", args[0]);
    options.put("group.id", args[1]);
    options.put("client.id", args[3]);
    options.put("share.acknowledgement.mode", "explicit");
    options.put("max.poll.records", args[5]);
    String types = "org.apache.kafka.common.serialization.";
    options.put("key.deserializer", types + "ByteArrayDeserializer");
    options.put("value.deserializer", types + "StringDeserializer");
    return options;
  }

  private void live(String[] args, AtomicBoolean ends) throws IOException {
    while (!ends.get()) {
      try {
        join(args, ends);
      } catch (IllegalStateException error) {
        // Java's consumer may count a record as not acknowledged that it has not returned, when
        // its locks ran out. It cannot be used any more; another one takes its place.
        tell("again", quoted(error.toString()));
      }
    }
    tell("left", "[]");
  }

  private void join(String[] args, AtomicBoolean ends) throws IOException {
    try (KafkaShareConsumer<byte[], String> consumer = new KafkaShareConsumer<>(options(args))) {
      consumer.subscribe(List.of(args[2]));
      tell("started", "[]");
      while (!ends.get()) {
        List<ConsumerRecord<byte[], String>> records = new ArrayList<>();
        consumer.poll(Duration.ofMillis(200)).forEach(records::add);
        if (!records.isEmpty()) {
          accept(consumer, records);
        }
      }
    }
  }

  private void accept(
      KafkaShareConsumer<byte[], String> consumer, List<ConsumerRecord<byte[], String>> records)
      throws IOException {
    List<String> got = new ArrayList<>();
    for (ConsumerRecord<byte[], String> record : records) {
      String count = record.deliveryCount().map(String::valueOf).orElse("0");
      got.add(place(record, record.value() + ", " + count));
    }
    tell("got", got.toString());
    for (ConsumerRecord<byte[], String> record : records) {
      consumer.acknowledge(record, AcknowledgeType.ACCEPT);
    }
    Map<TopicIdPartition, Optional<KafkaException>> answers = consumer.commitSync(PATIENCE);
    List<String> accepted = new ArrayList<>();
    List<String> refused = new ArrayList<>();
    for (ConsumerRecord<byte[], String> record : records) {
      Optional<KafkaException> answer = null;
      for (Map.Entry<TopicIdPartition, Optional<KafkaException>> entry : answers.entrySet()) {
        if (entry.getKey().partition() == record.partition()) {
          answer = entry.getValue();
        }
      }
      if (answer == null) {
        refused.add(place(record, quoted("no answer")));
      } else if (answer.isPresent()) {
        refused.add(place(record, quoted(answer.get().toString())));
      } else {
        accepted.add(place(record, record.value()));
      }
    }
    tell("accepted", accepted.toString());
    if (!refused.isEmpty()) {
      tell("refused", refused.toString());
    }
  }

  private static String place(ConsumerRecord<byte[], String> record, String rest) {
    return "[" + record.partition() + ", " + record.offset() + ", " + rest + "]";
  }

  private static String quoted(String text) {
    return '"' + text.replace('\\', '/').replace('"', '\'').replace('\n', ' ') + '"';
  }

  /** Writes a line; it is in the kernel's hands when this returns. */
  private void tell(String event, String what) throws IOException {
    String line =
        String.format(
            "{\"at\": %.6f, \"member\": \"%s\", \"event\": \"%s\", \"what\": %s}%n",
            System.nanoTime() / 1e9, name, event, what);
    journal.write(line.getBytes(StandardCharsets.UTF_8));
  }
}
