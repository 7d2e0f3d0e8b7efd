import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** Reads sasl.jaas.config as Kafka's client does: one text in Base64 on each line. */
public final class ReadJaas {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            System.out.println(read(new String(Base64.getDecoder().decode(lines.nextLine()),
                java.nio.charset.StandardCharsets.UTF_8)));
        }
    }

    /** Returns the class and the options in Base64, or nothing if it is refused. */
    private static String read(String text) {
        try {
            List<AppConfigurationEntry> entries = JaasContext.loadClientContext(
                Map.of("sasl.jaas.config", new Password(text))).configurationEntries();
            StringBuilder found = new StringBuilder(word(entries.get(0).getLoginModuleName()));
            new TreeMap<String, Object>(entries.get(0).getOptions()).forEach(
                (name, value) -> found.append(' ').append(word(name)).append(' ')
                    .append(word((String) value)));
            return found.toString();
        } catch (IllegalArgumentException | NullPointerException
                | org.apache.kafka.common.KafkaException refused) { // null: a number as a name
            return "";
        }
    }

    private static String word(String text) {
        return "." + Base64.getEncoder().encodeToString(
            text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }
}
