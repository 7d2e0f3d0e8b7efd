import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Says in text what Kafka's own reader finds in batches: a line per batch and record. */
final class Dump {
    private static final HexFormat HEX = HexFormat.of();

    private Dump() {
    }

    static String of(Iterable<? extends RecordBatch> batches) {
        StringBuilder out = new StringBuilder();
        for (RecordBatch batch : batches) {
            batch.ensureValid();
            out.append(line(batch)).append('\n');
            int count = 0;
            for (Record record : batch) {
                record.ensureValid();
                out.append(line(record)).append('\n');
                count++;
                if (batch.isControlBatch()) {
                    out.append("control ")
                        .append(ControlRecordType.parseTypeId(record.key()))
                        .append('\n');
                }
            }
            out.append("records ").append(count).append('\n');
        }
        return out.toString();
    }

    private static String line(RecordBatch batch) {
        return String.join(" ", "batch",
            "base=" + batch.baseOffset(),
            "last=" + batch.lastOffset(),
            "next=" + batch.nextOffset(),
            "magic=" + batch.magic(),
            "codec=" + batch.compressionType().id,
            "type=" + batch.timestampType().id,
            "max=" + batch.maxTimestamp(),
            "pid=" + batch.producerId(),
            "epoch=" + batch.producerEpoch(),
            "seq=" + batch.baseSequence(),
            "txn=" + batch.isTransactional(),
            "control=" + batch.isControlBatch(),
            "leader=" + batch.partitionLeaderEpoch(),
            "horizon=" + (batch.deleteHorizonMs().isPresent()
                ? batch.deleteHorizonMs().getAsLong() : "none"),
            "size=" + batch.sizeInBytes());
    }

    private static String line(Record record) {
        StringBuilder out = new StringBuilder("record ");
        out.append(record.offset()).append(' ').append(record.timestamp());
        out.append(' ').append(hex(record.key()));
        out.append(' ').append(hex(record.value()));
        for (Header header : record.headers()) {
            byte[] value = header.value();
            out.append(' ')
                .append(HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8)))
                .append('=')
                .append(value == null ? "null" : HEX.formatHex(value));
        }
        return out.toString();
    }

    private static String hex(ByteBuffer field) {
        if (field == null) {
            return "null";
        }
        byte[] bytes = new byte[field.remaining()];
        field.duplicate().get(bytes);
        return "0x" + HEX.formatHex(bytes);
    }
}
