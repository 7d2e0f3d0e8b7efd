import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/**
 * Reads the batches in {@code <directory>/ours/*.bin} and writes batches of its own to
 * {@code <directory>/java/*.bin}; beside each file goes a {@code .txt} that says what
 * Kafka's reader finds in it. What is in memory and what is in a file must read alike.
 */
public final class RecordsProof {
    private static final long NOW = 1_700_000_000_000L;
    private static final long PRODUCER_ID = 4_611_686_018_427_387_904L;

    private final Path target;

    private RecordsProof(Path target) {
        this.target = target;
    }

    public static void main(String[] args) throws IOException {
        Path directory = Path.of(args[0]);
        try (Stream<Path> files = Files.list(directory.resolve("ours"))) {
            for (Path file : files.filter(f -> f.toString().endsWith(".bin")).toList()) {
                describe(file);
            }
        }
        RecordsProof proof = new RecordsProof(
            Files.createDirectories(directory.resolve("java")));
        proof.writeCurrent();
        proof.writeHighLevels();
        proof.writeMarkers();
        proof.writeCompacted();
        proof.writeLegacy();
    }

    private static void describe(Path file) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file));
        String inMemory = Dump.of(MemoryRecords.readableRecords(bytes).batches());
        try (FileRecords records = FileRecords.open(new File(file.toString()), false)) {
            if (!Dump.of(records.batches()).equals(inMemory)) {
                throw new IllegalStateException(file + " reads differently from disk");
            }
        }
        String name = file.getFileName().toString().replace(".bin", ".txt");
        Files.writeString(file.resolveSibling(name), inMemory);
    }

    private void write(String name, ByteBuffer records) throws IOException {
        byte[] bytes = new byte[records.remaining()];
        records.duplicate().get(bytes);
        Path file = target.resolve(name + ".bin");
        Files.write(file, bytes);
        describe(file);
    }

    private void writeCurrent() throws IOException {
        for (CompressionType codec : CompressionType.values()) {
            Compression compression = Compression.of(codec).build();
            for (TimestampType type : stampTypes()) {
                MemoryRecordsBuilder builder = MemoryRecords.builder(
                    ByteBuffer.allocate(1 << 20), RecordBatch.MAGIC_VALUE_V2, compression,
                    type, 5_000_000_000L, NOW, PRODUCER_ID, (short) 7, 2_147_483_600,
                    type == TimestampType.CREATE_TIME, 11);
                fill(builder, true);
                write("v2-" + codec.name + "-" + type.id, builder.build().buffer());
            }
        }
    }

    private void writeHighLevels() throws IOException {
        for (Compression compression : List.of(Compression.gzip().level(9).build(),
                Compression.lz4().level(17).build(),
                Compression.zstd().level(22).build())) {
            MemoryRecordsBuilder builder = MemoryRecords.builder(
                ByteBuffer.allocate(1 << 20), compression, TimestampType.CREATE_TIME, 0L);
            fill(builder, true);
            write("high-" + compression.type().name, builder.build().buffer());
        }
    }

    private void writeMarkers() throws IOException {
        int number = 0;
        for (ControlRecordType type
                : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT)) {
            write("marker-" + number++, MemoryRecords.withEndTransactionMarker(
                40L, NOW, 3, PRODUCER_ID, (short) 2,
                new EndTransactionMarker(type, 77)).buffer());
        }
        write("marker-leader", MemoryRecords.withLeaderChangeMessage(
            9L, NOW, 4, ByteBuffer.allocate(256),
            new LeaderChangeMessage().setLeaderId(1)).buffer());
        ByteBuffer empty = ByteBuffer.allocate(RecordBatch.CURRENT_MAGIC_VALUE * 64);
        DefaultRecordBatch.writeEmptyHeader(empty, RecordBatch.MAGIC_VALUE_V2,
            PRODUCER_ID, (short) 1, 4, 100L, 109L, 5, TimestampType.CREATE_TIME, NOW,
            true, true);
        write("marker-gone", empty.flip());
    }

    private void writeCompacted() throws IOException {
        for (CompressionType codec : List.of(CompressionType.NONE, CompressionType.ZSTD)) {
            ByteBufferOutputStream out = new ByteBufferOutputStream(1 << 16);
            MemoryRecordsBuilder builder = new MemoryRecordsBuilder(out,
                RecordBatch.MAGIC_VALUE_V2, Compression.of(codec).build(),
                TimestampType.CREATE_TIME, 200L, RecordBatch.NO_TIMESTAMP, 12L, (short) 0,
                0, false, false, 8, 1 << 16, NOW + 86_400_000L);
            for (long offset : new long[] {203L, 204L, 300L, 9_000L}) {
                builder.appendWithOffset(offset, NOW + offset, bytes("k" + offset), null);
            }
            builder.overrideLastOffset(10_000L);
            write("compacted-" + codec.name, builder.build().buffer());
        }
    }

    private void writeLegacy() throws IOException {
        ByteBuffer mixed = ByteBuffer.allocate(1 << 22);
        for (byte magic : new byte[] {0, 1}) {
            for (CompressionType codec : CompressionType.values()) {
                if (codec == CompressionType.ZSTD) {
                    continue;
                }
                for (TimestampType type : magic == 0
                        ? List.of(TimestampType.NO_TIMESTAMP_TYPE) : stampTypes()) {
                    MemoryRecordsBuilder builder = MemoryRecords.builder(
                        ByteBuffer.allocate(1 << 20), magic,
                        Compression.of(codec).build(), type, 70L, NOW);
                    fill(builder, false);
                    ByteBuffer records = builder.build().buffer();
                    mixed.put(records.duplicate());
                    write("v" + magic + "-" + codec.name + "-" + type.id, records);
                }
            }
        }
        mixed.put(MemoryRecords.withEndTransactionMarker(PRODUCER_ID, (short) 2,
            new EndTransactionMarker(ControlRecordType.COMMIT, 1)).buffer());
        write("mixed", mixed.flip());
    }

    private static List<TimestampType> stampTypes() {
        return List.of(TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME);
    }

    private static void fill(MemoryRecordsBuilder builder, boolean withHeaders) {
        Random random = new Random(4);
        byte[] large = new byte[150_000];
        random.nextBytes(large);
        byte[][] values = {null, new byte[0], bytes("value"), bytes("x".repeat(63)),
            bytes("y".repeat(64)), bytes("z".repeat(9_000)), large};
        byte[][] keys = {null, new byte[0], bytes("key"), bytes("k".repeat(200))};
        for (int i = 0; i < 150; i++) {
            byte[] value = i == 60 ? large : values[i % 6];
            long timestamp = NOW + (i % 3 == 0 ? -i * 100_000L : i);
            builder.append(timestamp, keys[i % 4], value,
                withHeaders ? headers(i) : new Header[0]);
        }
    }

    private static Header[] headers(int number) {
        List<Header> headers = new ArrayList<>();
        for (int i = 0; i < number % 4; i++) {
            headers.add(new RecordHeader("h\u00e9\u4e16\ud83d\ude00".substring(0, i + 1),
                i == 1 ? null : bytes("v".repeat(i * 50))));
        }
        return headers.toArray(new Header[0]);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
