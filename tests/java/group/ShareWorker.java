import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;

/**
 * A worker of a share group that does with a record what its value says, and prints both value and
 * delivery count.
 *
 * <p>Arguments: bootstrap servers, group, topic. "good" is accepted, "bad" rejected, "later"
 * released at first and accepted then, "hold" kept: it polls no more. See
 * tests/support/share_workers.py. Leaves when its input ends.
 */
public final class ShareWorker {
  private ShareWorker() {}

  public static void main(String[] args) throws Exception {
    AtomicBoolean ends = Input.end();
    Properties options = new Properties();
    options.put("bootstrap.servers", args[0]);
    options.put("group.id", args[1]);
    options.put("share.acknowledgement.mode", "explicit");
    String string = "org.apache.kafka.common.serialization.StringDeserializer";
    options.put("key.deserializer", string);
    options.put("value.deserializer", string);
    try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(options)) {
      consumer.subscribe(List.of(args[2]));
      boolean holds = false;
      while (!ends.get()) {
        if (holds) {
          Thread.sleep(50);
          continue;
        }
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        consumer.poll(Duration.ofMillis(200)).forEach(records::add);
        for (ConsumerRecord<String, String> record : records) {
          short count = record.deliveryCount().orElse((short) 0);
          if (record.value().startsWith("hold")) {
            holds = true;
          } else {
            consumer.acknowledge(record, verdict(record.value(), count));
          }
          System.out.println(record.value() + " " + count);
        }
        if (!records.isEmpty()) {
          consumer.commitSync(Duration.ofSeconds(30)).values().forEach(ShareWorker::check);
        }
      }
    }
    System.out.println("left");
  }

  private static AcknowledgeType verdict(String value, short count) {
    if (value.startsWith("bad")) {
      return AcknowledgeType.REJECT;
    }
    boolean isEarly = value.startsWith("later") && count == 1;
    return isEarly ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
  }

  private static void check(java.util.Optional<? extends RuntimeException> answer) {
    if (answer.isPresent()) {
      throw answer.get();
    }
  }
}
