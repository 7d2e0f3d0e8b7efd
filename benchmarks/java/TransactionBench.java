import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What transactions.py has a client do, by the Java client. Compiled with the runner's Bench, whose
 * measured window it uses: the JIT warms up inside it.
 */
public final class TransactionBench {
  private static final int WARM = 5;
  private static final Duration MAX_WAIT = Duration.ofMillis(200);

  private TransactionBench() {}

  public static void main(String[] args) throws Exception {
    Bench.s = Bench.JSON.readTree(args[0]);
    Map<String, Object> result = Bench.str("kind").equals("transact") ? transact() : copy();
    System.out.println("RESULT " + Bench.JSON.writeValueAsString(result));
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static KafkaProducer<byte[], byte[]> producer(boolean isTransactional) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", Bench.str("bootstrap"));
    if (isTransactional) {
      properties.put("transactional.id", Bench.str("transactional_id"));
    }
    var producer =
        new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    if (isTransactional) {
      producer.initTransactions();
    }
    return producer;
  }

  private static Map<String, Object> transact() throws Exception {
    byte[][] pool = Bench.pool();
    int per = Bench.num("per");
    int count = Math.max(1, Bench.num("records") / per);
    double[] whole = new double[count];
    double[] acked = new double[count];
    var producer = producer(true);
    for (int n = 0; n < WARM; n++) {
      transaction(producer, pool, n, per);
    }
    var window = new Bench.Window();
    for (int n = 0; n < count; n++) {
      long began = System.nanoTime();
      long at = transaction(producer, pool, n, per);
      whole[n] = (System.nanoTime() - began) / 1e6;
      acked[n] = (at - began) / 1e6;
    }
    var figures = window.close();
    producer.close();
    figures.put("count", count * per);
    figures.put("warm", WARM * per);
    figures.put("transactions", count);
    figures.put("transaction_ms", Bench.spread(whole));
    if (Bench.flag("each")) {
      figures.put("acked_ms", Bench.spread(acked));
    }
    return figures;
  }

  /** One transaction; returns when all of its records were acknowledged, if that is measured. */
  private static long transaction(
      KafkaProducer<byte[], byte[]> producer, byte[][] pool, int n, int per) throws Exception {
    String topic = Bench.str("topic");
    boolean each = Bench.flag("each");
    long acked = 0;
    producer.beginTransaction();
    for (int i = 0; i < per; i++) {
      byte[] value = pool[(int) (((long) n * per + i) % pool.length)];
      producer.send(new ProducerRecord<>(topic, each ? i : null, null, value));
    }
    if (each) {
      producer.flush();
      acked = System.nanoTime();
    }
    producer.commitTransaction();
    return acked;
  }

  private static Map<String, Object> copy() throws Exception {
    int per = Bench.num("per");
    int expect = Bench.num("expect");
    int copied = 0;
    int transactions = 0;
    var producer = producer(per > 0);
    var consumer = consumer(per);
    consumer.subscribe(List.of(Bench.str("topic")));
    List<ConsumerRecord<byte[], byte[]>> held = new ArrayList<>();
    Bench.Window window = null;
    long due = 0;
    while (copied < expect) {
      ConsumerRecords<byte[], byte[]> found = consumer.poll(MAX_WAIT);
      if (window == null && !found.isEmpty()) {
        window = new Bench.Window();
      }
      if (held.isEmpty()) {
        due = System.nanoTime() + MAX_WAIT.toNanos();
      }
      found.forEach(held::add);
      boolean isFull = held.size() >= per || copied + held.size() >= expect;
      if (held.isEmpty() || !isFull && System.nanoTime() < due) {
        continue;
      }
      commit(producer, consumer, held, per > 0);
      copied += held.size();
      transactions += per > 0 ? 1 : 0;
      held.clear();
    }
    var figures = window.close();
    consumer.close();
    producer.close();
    figures.put("count", copied);
    figures.put("warm", 0);
    figures.put("transactions", transactions);
    return figures;
  }

  private static void commit(
      KafkaProducer<byte[], byte[]> producer,
      KafkaConsumer<byte[], byte[]> consumer,
      List<ConsumerRecord<byte[], byte[]>> records,
      boolean isTransactional) {
    if (isTransactional) {
      producer.beginTransaction();
    }
    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
    for (ConsumerRecord<byte[], byte[]> record : records) {
      producer.send(
          new ProducerRecord<>(Bench.str("output"), record.value()),
          (metadata, error) -> {
            if (error != null) {
              Bench.fail(error);
            }
          });
      offsets.put(
          new TopicPartition(record.topic(), record.partition()),
          new OffsetAndMetadata(record.offset() + 1));
    }
    if (isTransactional) {
      producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
      producer.commitTransaction();
    } else {
      producer.flush();
      consumer.commitAsync(offsets, null);
    }
  }

  private static KafkaConsumer<byte[], byte[]> consumer(int per) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", Bench.str("bootstrap"));
    properties.put("group.id", Bench.str("group"));
    properties.put("auto.offset.reset", "earliest");
    properties.put("isolation.level", "read_committed");
    properties.put("enable.auto.commit", "false");
    // A poll never returns more than the transaction may hold.
    properties.put("max.poll.records", String.valueOf(per > 0 ? Math.min(per, 1000) : 10_000));
    return new KafkaConsumer<>(
        properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }
}
