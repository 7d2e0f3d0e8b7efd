import java.util.Map;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;

/**
 * Prints facts about the configs of brokers and groups, as JSON.
 *
 * Of each config: type, default, valid values, then the update mode of a broker's or
 * the broker's synonym of a group's. DescribeConfigs tells of a broker's internal ones
 * only where they were set. Of each topic config: the broker configs that give
 * its default, each with what it makes of the value 1.
 */
final class ConfigFacts {
    public static void main(String[] arguments) {
        Map<String, String> modes = new TreeMap<>();
        modes.putAll(DynamicBrokerConfig.dynamicConfigUpdateModes());
        DynamicBrokerConfig.DYNAMIC_SECURITY_CONFIGS.forEach(
            name -> modes.put(name, "per-listener"));
        KafkaConfig.configDef().names().forEach(
            name -> modes.putIfAbsent(name, "read-only"));
        Map<String, String> synonyms = new TreeMap<>();
        GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach(
            (name, synonym) -> synonyms.put(name, synonym.orElse(null)));
        System.out.println("{\"broker\": {");
        print(KafkaConfig.configDef(), modes, false);
        System.out.println("}, \"internal\": {");
        print(KafkaConfig.configDef(), modes, true);
        System.out.println("}, \"group\": {");
        print(GroupConfig.CONFIG_DEF, synonyms, false);
        System.out.println("}, \"topic\": {");
        String separator = "";
        for (var entry : new TreeMap<>(
                ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS).entrySet()) {
            StringBuilder row = new StringBuilder();
            for (var synonym : entry.getValue()) {
                row.append(row.length() > 0 ? ", " : "").append(String.format("[%s, %s]",
                    quoted(synonym.name()), quoted(synonym.converter().apply("1"))));
            }
            System.out.printf("%s%s: [%s]", separator, quoted(entry.getKey()), row);
            separator = ",\n";
        }
        System.out.println("}}");
    }

    private static void print(
            ConfigDef definition, Map<String, String> last, boolean internal) {
        String separator = "";
        for (var key : new TreeMap<>(definition.configKeys()).values()) {
            if (key.internalConfig != internal) {
                continue;
            }
            String value = key.hasDefault()
                ? ConfigDef.convertToString(key.defaultValue, key.type) : null;
            String valid = key.validator == null ? null : key.validator.toString();
            System.out.printf("%s%s: [%s, %s, %s, %s]", separator, quoted(key.name),
                quoted(key.type.toString().toLowerCase()), quoted(value), quoted(valid),
                quoted(last.get(key.name)));
            separator = ",\n";
        }
        System.out.println();
    }

    private static String quoted(String text) {
        return text == null ? "null"
            : '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
