import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicBoolean;

/** The standard input, whose end tells a program to end. */
final class Input {
  private Input() {}

  /** Returns what becomes true when the input ends. */
  static AtomicBoolean end() {
    AtomicBoolean ends = new AtomicBoolean();
    Thread watch =
        new Thread(
            () -> {
              try (var input = new BufferedReader(new InputStreamReader(System.in))) {
                while (input.readLine() != null) {}
              } catch (IOException error) {
                System.err.println(error);
              }
              ends.set(true);
            });
    watch.setDaemon(true);
    watch.start();
    return ends;
  }
}
