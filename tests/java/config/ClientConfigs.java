import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;

/** Prints the options of Java's clients and their defaults, a line each. */
public class ClientConfigs {
    public static void main(String[] args) {
        print("producer", ProducerConfig.configDef());
        print("consumer", ConsumerConfig.configDef());
        print("admin", AdminClientConfig.configDef());
    }

    private static void print(String kind, ConfigDef options) {
        Map<String, ConfigDef.ConfigKey> keys = new TreeMap<>(options.configKeys());
        keys.forEach((name, key) -> {
            String value = key.hasDefault() ? String.valueOf(key.defaultValue) : "";
            System.out.println(kind + "\t" + name + "\t" + value);
        });
    }
}
