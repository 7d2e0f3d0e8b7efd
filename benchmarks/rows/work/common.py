"""What the programs share: values and keys, and what a run has spent."""

import itertools
import time

#: As many keys as make batches of many keys, and no more than stay in a cache.
KEYS = [b"key-%012d" % number for number in range(997)]
HEADERS = [("trace", b"0123456789abcdef"), ("source", b"checkout-service")]
#: Deliveries, or futures, that a program holds before it looks at the oldest; a spec
#: can have another number.
WINDOW = 8_192


class Window:
    """Time and CPU time from its making on."""

    def __init__(self):
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def close(self, count, **more):
        """Return the result of a run that did something `count` times."""
        cpu = time.process_time() - self._cpu
        wall = time.perf_counter() - self._wall
        return {"count": count, "cpu": cpu, "wall": wall, **more}


def read_values(spec):
    with open(spec["values"], "rb") as file:
        return file.read().split(b"\n")


def values_of(spec):
    """Iterate over the values of a run."""
    return itertools.islice(itertools.cycle(read_values(spec)), spec["records"])


def keys_of(spec):
    return itertools.islice(itertools.cycle(KEYS), spec["records"])


def memory(field):
    """Return VmRSS (resident now) or VmHWM (at most) of this process, in MiB."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
    raise LookupError(field)


def middle(waits):
    return sorted(waits)[len(waits) // 2]


# ---- clients, made as every program makes them


def kafkaio_security(spec):
    if not spec.get("ca"):
        return {}
    return {"security_protocol": "SSL", "ssl_truststore_location": spec["ca"]}


def kafkaio_producer(spec, **options):
    import kafkaio

    if spec.get("compression"):
        options["compression_type"] = spec["compression"]
    if spec.get("linger_ms") is not None:
        options["linger_ms"] = spec["linger_ms"]
    if spec.get("large"):
        options["max_request_size"] = 8 * 2**20
    security = kafkaio_security(spec)
    return kafkaio.Producer(spec["bootstrap"], **options, **security)


def kafkaio_reader(spec, **options):
    import kafkaio

    topic = spec["topic"]
    places = [kafkaio.TopicPartition(topic, n) for n in range(spec["partitions"])]
    return kafkaio.Consumer(
        spec["bootstrap"],
        assign=places,
        auto_offset_reset="earliest",
        **options,
        **kafkaio_security(spec),
    )


def kafkaio_member(spec, **options):
    import kafkaio

    return kafkaio.Consumer(
        spec["bootstrap"],
        topics=spec["topic"],
        group_id=spec["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **options,
    )


def confluent_options(spec):
    options = {"bootstrap.servers": spec["bootstrap"]}
    if spec.get("ca"):
        options |= {"security.protocol": "SSL", "ssl.ca.location": spec["ca"]}
    return options


def confluent_producer(spec, **more):
    import confluent_kafka

    options = confluent_options(spec) | {"enable.idempotence": True}
    if spec.get("compression"):
        options["compression.type"] = spec["compression"]
    if spec.get("linger_ms") is not None:
        options["linger.ms"] = spec["linger_ms"]
    if spec.get("large"):
        options["message.max.bytes"] = 8 * 2**20
    return confluent_kafka.Producer(options | more)


def confluent_reader(spec):
    import confluent_kafka as lib

    options = confluent_options(spec) | {
        "group.id": "rows",
        "enable.auto.commit": False,
    }
    consumer = lib.Consumer(options)
    topic, count = spec["topic"], spec["partitions"]
    consumer.assign([lib.TopicPartition(topic, n, 0) for n in range(count)])
    return consumer


def confluent_member(spec, **more):
    import confluent_kafka

    options = confluent_options(spec) | {
        "group.id": spec["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = confluent_kafka.Consumer(options | more)
    consumer.subscribe([spec["topic"]])
    return consumer


def aiokafka_security(spec):
    if not spec.get("ca"):
        return {}
    import ssl

    context = ssl.create_default_context(cafile=spec["ca"])
    return {"security_protocol": "SSL", "ssl_context": context}


def aiokafka_producer(spec, **options):
    import aiokafka

    if spec.get("compression"):
        options["compression_type"] = spec["compression"]
    if spec.get("linger_ms") is not None:
        options["linger_ms"] = spec["linger_ms"]
    if spec.get("large"):
        options["max_request_size"] = 8 * 2**20
    return aiokafka.AIOKafkaProducer(
        bootstrap_servers=spec["bootstrap"],
        enable_idempotence=True,
        **options,
        **aiokafka_security(spec),
    )


async def aiokafka_reader(spec):
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=spec["bootstrap"],
        auto_offset_reset="earliest",
        **aiokafka_security(spec),
    )
    await consumer.start()
    topic, count = spec["topic"], spec["partitions"]
    consumer.assign([aiokafka.TopicPartition(topic, n) for n in range(count)])
    return consumer


def aiokafka_member(spec):
    import aiokafka

    return aiokafka.AIOKafkaConsumer(
        spec["topic"],
        bootstrap_servers=spec["bootstrap"],
        group_id=spec["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
