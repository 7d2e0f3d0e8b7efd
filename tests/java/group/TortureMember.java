import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/**
 * A member of a group under torture: it journals each record, and then commits it.
 *
 * <p>Arguments: bootstrap servers, group, topic, "consumer" or "classic", the member's name, its
 * journal, the classic session timeout and the longest time between two polls in milliseconds.
 * Leaves when its input ends.
 */
public final class TortureMember implements ConsumerRebalanceListener {
  private final String name;
  private final FileOutputStream journal;
  private final KafkaConsumer<byte[], String> consumer;
  private final Map<TopicPartition, OffsetAndMetadata> done = new HashMap<>();

  private TortureMember(String[] args) throws IOException {
    name = args[4];
    journal = new FileOutputStream(args[5], true);
    Properties properties = new Properties();
    properties.put("bootstrap.servers", args[0]);
    properties.put("group.id", args[1]);
    properties.put("client.id", name);
    if (args[3].equals("consumer")) {
      properties.put("group.protocol", "consumer");
    } else {
      properties.put(
          "partition.assignment.strategy",
          "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
      properties.put("heartbeat.interval.ms", "500");
      properties.put("session.timeout.ms", args[6]);
    }
    properties.put("max.poll.interval.ms", args[7]);
    properties.put("max.poll.records", "100");
    properties.put("enable.auto.commit", "false");
    properties.put("auto.offset.reset", "earliest");
    String types = "org.apache.kafka.common.serialization.";
    properties.put("key.deserializer", types + "ByteArrayDeserializer");
    properties.put("value.deserializer", types + "StringDeserializer");
    consumer = new KafkaConsumer<>(properties);
  }

  public static void main(String[] args) throws Exception {
    AtomicBoolean ends = Input.end();
    TortureMember member = new TortureMember(args);
    try {
      member.live(args[2], ends);
    } catch (RuntimeException error) {
      member.tell("failed " + error.toString().replace('\n', ' '));
      throw error;
    }
  }

  private void live(String topic, AtomicBoolean ends) {
    tell("joining java");
    try (consumer) {
      consumer.subscribe(List.of(topic), this);
      consumer.poll(Duration.ZERO);
      tell("joined");
      while (!ends.get() || !done.isEmpty()) {
        for (ConsumerRecord<byte[], String> record : consumer.poll(Duration.ofMillis(100))) {
          tell("did " + record.partition() + " " + record.offset() + " " + record.value());
          done.put(
              new TopicPartition(topic, record.partition()),
              new OffsetAndMetadata(record.offset() + 1));
        }
        commit();
      }
    }
    tell("left");
  }

  /** Commits what is done; while the group rebalances, the next call does. */
  private void commit() {
    if (done.isEmpty()) {
      return;
    }
    try {
      consumer.commitSync(done);
    } catch (RebalanceInProgressException error) {
      return;
    } catch (CommitFailedException error) {
      tell("refused");
      return;
    }
    StringBuilder line = new StringBuilder("committed");
    done.forEach(
        (tp, at) -> line.append(' ').append(tp.partition()).append(':').append(at.offset()));
    tell(line.toString());
    done.clear();
  }

  private void tell(String text) {
    String at = String.format("%.6f", System.nanoTime() / 1e9);
    try {
      journal.write((at + " " + name + " " + text + "\n").getBytes(StandardCharsets.UTF_8));
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  private void tellPartitions(String word, Collection<TopicPartition> partitions) {
    if (!partitions.isEmpty()) {
      StringBuilder line = new StringBuilder(word);
      partitions.forEach(tp -> line.append(' ').append(tp.partition()));
      tell(line.toString());
    }
  }

  @Override
  public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
    tellPartitions("assigned", partitions);
  }

  @Override
  public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
    commit();
    tellPartitions("revoked", partitions);
  }

  @Override
  public void onPartitionsLost(Collection<TopicPartition> partitions) {
    done.keySet().removeAll(partitions);
    tellPartitions("lost", partitions);
  }
}
