import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/** A plug-in of controllers: no topic is called "forbidden", and retention.ms is not changed. */
public final class Policy implements CreateTopicPolicy, AlterConfigPolicy {
    @Override
    public void validate(CreateTopicPolicy.RequestMetadata topic) {
        if (topic.topic().equals("forbidden")) {
            throw new PolicyViolationException("such a topic is not allowed");
        }
    }

    @Override
    public void validate(AlterConfigPolicy.RequestMetadata change) {
        if (change.configs().containsKey("retention.ms")) {
            throw new PolicyViolationException("such a change is not allowed");
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {
    }

    @Override
    public void close() {
    }
}
