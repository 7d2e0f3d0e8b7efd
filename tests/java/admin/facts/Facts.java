import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.protocol.Errors;

/** Prints a line for each fact: its parts with tabs between them. */
final class Facts {
    private Facts() {
    }

    static void fact(Object... parts) {
        List<String> texts = new ArrayList<>();
        for (Object part : parts) {
            texts.add(part instanceof Collection<?> many
                ? many.stream().map(String::valueOf).collect(Collectors.joining(";")) : String.valueOf(part));
        }
        System.out.println(String.join("\t", texts));
    }

    /** Prints with which code a call was refused; 0 if it was not. */
    static void refusal(KafkaFuture<?> asked, String... what) throws InterruptedException {
        List<Object> parts = new ArrayList<>(List.of("refused"));
        parts.addAll(List.of(what));
        try {
            asked.get();
            parts.add(0);
        } catch (ExecutionException error) {
            parts.add(Errors.forException(error.getCause()).code());
        }
        fact(parts.toArray());
    }
}
