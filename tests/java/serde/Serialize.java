import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.Scanner;
import java.util.UUID;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/**
 * Writes values with Kafka's own serializers: a name and a value in Base64 on each line,
 * and prints the bytes in hexadecimal. What its deserializer reads must be the same value.
 */
public final class Serialize {
    private record Kind<T>(Serde<T> serde, Function<String, T> parse) {
        String write(String text) {
            T value = parse.apply(text);
            byte[] data = serde.serializer().serialize("t", value);
            T read = serde.deserializer().deserialize("t", data);
            if (!String.valueOf(read).equals(String.valueOf(value))) {
                throw new IllegalStateException(read + " is not " + value);
            }
            return HexFormat.of().formatHex(data);
        }
    }

    private static final Map<String, Kind<?>> KINDS = Map.of(
        "short", new Kind<>(Serdes.Short(), Short::valueOf),
        "integer", new Kind<>(Serdes.Integer(), Integer::valueOf),
        "long", new Kind<>(Serdes.Long(), Long::valueOf),
        "float", new Kind<>(Serdes.Float(), Float::valueOf),
        "double", new Kind<>(Serdes.Double(), Double::valueOf),
        "boolean", new Kind<>(Serdes.Boolean(), Boolean::valueOf),
        "uuid", new Kind<>(Serdes.UUID(), UUID::fromString),
        "string", new Kind<>(Serdes.String(), text -> text));

    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split(" ", -1);
            byte[] value = java.util.Base64.getDecoder().decode(parts[1]);
            System.out.println(
                KINDS.get(parts[0]).write(new String(value, StandardCharsets.UTF_8)));
        }
    }
}
