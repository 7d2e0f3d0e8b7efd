import java.lang.reflect.Method;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;

/** Prints the name of each operation of Java's Admin, each once. */
public final class Operations {
    public static void main(String[] args) {
        TreeSet<String> names = new TreeSet<>();
        for (Method method : Admin.class.getMethods()) {
            if (method.getDeclaringClass() == Admin.class) {
                names.add(method.getName());
            }
        }
        names.forEach(System.out::println);
    }
}
