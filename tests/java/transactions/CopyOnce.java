import java.time.Duration;
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
import org.apache.kafka.common.errors.ProducerFencedException;

/**
 * Copies a topic to another in transactions, each second one aborted first, and then has
 * itself fenced.
 *
 * <p>Arguments: bootstrap servers, input, output, number of records, group protocol. Prints
 * "committed N" for each transaction, and "fenced" at the end.
 */
public final class CopyOnce {
  public static void main(String[] args) throws Exception {
    int count = Integer.parseInt(args[3]);
    try (KafkaProducer<String, String> producer = producer(args[0]);
        KafkaConsumer<String, String> consumer = consumer(args[0], args[4])) {
      producer.initTransactions();
      consumer.subscribe(List.of(args[1]));
      int copied = 0;
      for (int number = 0; copied < count; number++) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
        if (records.isEmpty()) {
          continue;
        }
        if (number % 2 == 0) {
          copy(producer, consumer, records, args[2]);
          producer.abortTransaction();
        }
        copy(producer, consumer, records, args[2]);
        producer.commitTransaction();
        copied += records.count();
        System.out.println("committed " + copied);
      }
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(args[2], "never")).get();
      try (KafkaProducer<String, String> successor = producer(args[0])) {
        successor.initTransactions();
        try {
          producer.commitTransaction();
        } catch (ProducerFencedException fenced) {
          System.out.println("fenced");
        }
        successor.beginTransaction();
        successor.send(new ProducerRecord<>(args[2], "last"));
        successor.commitTransaction();
      }
    }
  }

  private static void copy(
      KafkaProducer<String, String> producer,
      KafkaConsumer<String, String> consumer,
      ConsumerRecords<String, String> records,
      String output) {
    producer.beginTransaction();
    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
    for (ConsumerRecord<String, String> record : records) {
      producer.send(new ProducerRecord<>(output, record.partition(), null, record.value()));
      offsets.put(
          new TopicPartition(record.topic(), record.partition()),
          new OffsetAndMetadata(record.offset() + 1));
    }
    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
  }

  private static KafkaProducer<String, String> producer(String servers) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", servers);
    properties.put("transactional.id", "copy");
    String strings = "org.apache.kafka.common.serialization.StringSerializer";
    properties.put("key.serializer", strings);
    properties.put("value.serializer", strings);
    return new KafkaProducer<>(properties);
  }

  private static KafkaConsumer<String, String> consumer(String servers, String protocol) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", servers);
    properties.put("group.id", "g");
    properties.put("group.protocol", protocol);
    properties.put("auto.offset.reset", "earliest");
    properties.put("enable.auto.commit", "false");
    properties.put("isolation.level", "read_committed");
    properties.put("max.poll.records", "50");
    String strings = "org.apache.kafka.common.serialization.StringDeserializer";
    properties.put("key.deserializer", strings);
    properties.put("value.deserializer", strings);
    return new KafkaConsumer<>(properties);
  }
}
