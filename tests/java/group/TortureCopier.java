import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * A member of a group under torture that copies records in transactions (KIP-447).
 *
 * <p>Arguments: those of TortureMember, then the output topic, its partitions, the transactional id
 * and the transaction timeout in milliseconds. After each failure it begins anew, with a new
 * producer and a new consumer. Leaves when its input ends.
 */
public final class TortureCopier {
  private final String[] args;
  private final FileOutputStream journal;
  private final AtomicBoolean ends;

  private TortureCopier(String[] args, AtomicBoolean ends) throws IOException {
    this.args = args;
    this.ends = ends;
    journal = new FileOutputStream(args[5], true);
  }

  public static void main(String[] args) throws Exception {
    TortureCopier copier = new TortureCopier(args, Input.end());
    copier.tell("joining java");
    while (!copier.ends.get()) {
      try (var producer = copier.producer();
          var consumer = copier.consumer()) {
        copier.copy(producer, consumer);
      } catch (KafkaException error) {
        copier.tell("again " + error.toString().replace('\n', ' '));
        Thread.sleep(200);
      }
    }
    copier.tell("left");
  }

  private void copy(KafkaProducer<byte[], byte[]> producer, KafkaConsumer<byte[], byte[]> consumer) {
    insist(producer::initTransactions);
    consumer.subscribe(List.of(args[2]));
    tell("joined");
    while (!ends.get()) {
      ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
      if (records.isEmpty()) {
        continue;
      }
      producer.beginTransaction();
      Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
      for (ConsumerRecord<byte[], byte[]> record : records) {
        producer.send(copyOf(record));
        offsets.put(
            new TopicPartition(record.topic(), record.partition()),
            new OffsetAndMetadata(record.offset() + 1));
      }
      insist(() -> producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata()));
      insist(producer::commitTransaction);
    }
  }

  private ProducerRecord<byte[], byte[]> copyOf(ConsumerRecord<byte[], byte[]> record) {
    int key = Integer.parseInt(new String(record.key(), StandardCharsets.UTF_8));
    String value = new String(record.value(), StandardCharsets.UTF_8) + " " + args[4];
    return new ProducerRecord<>(
        args[8],
        key % Integer.parseInt(args[9]),
        record.key(),
        value.getBytes(StandardCharsets.UTF_8));
  }

  /** A call that timed out goes on, and is waited for by the same call. */
  private void insist(Runnable call) {
    while (true) {
      try {
        call.run();
        return;
      } catch (TimeoutException error) {
        tell("timeout");
        if (ends.get()) {
          throw error;
        }
      }
    }
  }

  private KafkaProducer<byte[], byte[]> producer() {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", args[0]);
    properties.put("client.id", args[4]);
    properties.put("transactional.id", args[10]);
    properties.put("transaction.timeout.ms", args[11]);
    properties.put("max.block.ms", "20000");
    String type = "org.apache.kafka.common.serialization.ByteArraySerializer";
    properties.put("key.serializer", type);
    properties.put("value.serializer", type);
    return new KafkaProducer<>(properties);
  }

  private KafkaConsumer<byte[], byte[]> consumer() {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", args[0]);
    properties.put("group.id", args[1]);
    properties.put("client.id", args[4]);
    if (args[3].equals("consumer")) {
      properties.put("group.protocol", "consumer");
    } else {
      String assignor = args[3].equals("eager") ? "RangeAssignor" : "CooperativeStickyAssignor";
      properties.put(
          "partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
      properties.put("heartbeat.interval.ms", "500");
      properties.put("session.timeout.ms", args[6]);
    }
    properties.put("max.poll.interval.ms", args[7]);
    properties.put("max.poll.records", "200");
    properties.put("enable.auto.commit", "false");
    properties.put("isolation.level", "read_committed");
    properties.put("auto.offset.reset", "earliest");
    String type = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
    properties.put("key.deserializer", type);
    properties.put("value.deserializer", type);
    return new KafkaConsumer<>(properties);
  }

  private void tell(String text) {
    String at = String.format("%.6f", System.nanoTime() / 1e9);
    try {
      journal.write((at + " " + args[4] + " " + text + "\n").getBytes(StandardCharsets.UTF_8));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
