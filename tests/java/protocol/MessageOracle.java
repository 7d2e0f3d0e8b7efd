import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

/**
 * Says how Kafka's own classes encode and decode messages.
 *
 * <p>Each line of input is: class, tab, version of the JSON, tab, version on the wire, tab,
 * bytes in hex or "-", tab, JSON. The JSON is read into a message and encoded; the bytes, if
 * any, are decoded and encoded again. Each line of output is: the first result, tab, the
 * second. A result is hex, or "!" and the class and message of the exception.
 */
final class MessageOracle {
    private static final String PACKAGE = "org.apache.kafka.common.message.";

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        StringBuilder out = new StringBuilder();
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", 5);
            short jsonVersion = Short.parseShort(parts[1]);
            short version = Short.parseShort(parts[2]);
            JsonNode json = mapper.readTree(parts[4]);
            out.append(attempt(() -> encode(fromJson(parts[0], json, jsonVersion), version)));
            out.append('\t');
            if (parts[3].equals("-")) {
                out.append('-');
            } else {
                byte[] bytes = HexFormat.of().parseHex(parts[3]);
                out.append(attempt(() -> encode(fromBytes(parts[0], bytes, version), version)));
            }
            out.append('\n');
        }
        System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private interface Work {
        String run() throws Exception;
    }

    private static String attempt(Work work) {
        try {
            return work.run();
        } catch (InvocationTargetException error) {
            return describe(error.getCause());
        } catch (Exception error) {
            return describe(error);
        }
    }

    private static String describe(Throwable error) {
        String text = error.getClass().getSimpleName() + ": " + error.getMessage();
        return "!" + text.replaceAll("\\s+", " ");
    }

    private static Message fromJson(String name, JsonNode json, short version) throws Exception {
        Class<?> converter = Class.forName(PACKAGE + name + "JsonConverter");
        Method read = converter.getMethod("read", JsonNode.class, short.class);
        return (Message) read.invoke(null, json, version);
    }

    private static Message fromBytes(String name, byte[] bytes, short version) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Message message = (Message) Class.forName(PACKAGE + name)
            .getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(buffer.remaining() + " bytes are left over");
        }
        return message;
    }

    private static String encode(Message message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
