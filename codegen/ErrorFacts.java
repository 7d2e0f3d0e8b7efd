import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints the code, the name and the retriability of every error, as JSON. */
final class ErrorFacts {
    public static void main(String[] arguments) {
        StringBuilder out = new StringBuilder("[\n");
        String separator = "";
        for (Errors error : Errors.values()) {
            out.append(separator).append(String.format(
                "  {\"code\": %d, \"name\": \"%s\", \"retriable\": %b}",
                error.code(), error.name(), error.exception() instanceof RetriableException));
            separator = ",\n";
        }
        System.out.println(out.append("\n]"));
    }
}
