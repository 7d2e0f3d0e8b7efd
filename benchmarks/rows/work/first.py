"""A process that does one thing: CPU with its imports, time since the constructor."""

import time

from benchmarks.rows.work import common


def result(spec, began, **more):
    cpu = time.process_time() - spec["began"]
    return {"count": 1, "cpu": cpu, "wall": time.perf_counter() - began, **more}


def value(spec):
    return common.read_values(spec)[0]


async def kafkaio_ack(spec):
    import kafkaio

    kafkaio.Producer  # noqa: B018 - loads it; time is taken from the constructor on
    began = time.perf_counter()
    async with common.kafkaio_producer(spec) as producer:
        await producer.send(spec["topic"], value(spec))
        return result(spec, began, written=1)


async def aiokafka_ack(spec):
    import aiokafka  # noqa: F401 - time is taken from the constructor on

    began = time.perf_counter()
    async with common.aiokafka_producer(spec) as producer:
        await producer.send_and_wait(spec["topic"], value(spec))
        return result(spec, began, written=1)


async def confluent_ack(spec):
    import confluent_kafka  # noqa: F401 - time is taken from the constructor on

    problems = []

    def delivered(error, _message):
        if error is not None:
            problems.append(error)

    began = time.perf_counter()
    producer = common.confluent_producer(spec)
    producer.produce(spec["topic"], value(spec), on_delivery=delivered)
    producer.flush()
    if problems:
        raise RuntimeError(problems[0])
    return result(spec, began, written=1)


async def kafkaio_record(spec):
    import kafkaio

    kafkaio.Consumer  # noqa: B018 - loads it
    make = common.kafkaio_member if spec.get("group") else common.kafkaio_reader
    began = time.perf_counter()
    async with make(spec) as consumer:
        await anext(aiter(consumer))
        return result(spec, began)


async def aiokafka_record(spec):
    import aiokafka  # noqa: F401 - time is taken from the constructor on

    began = time.perf_counter()
    if spec.get("group"):
        consumer = common.aiokafka_member(spec)
        await consumer.start()
    else:
        consumer = await common.aiokafka_reader(spec)
    await consumer.getone()
    found = result(spec, began)
    await consumer.stop()
    return found


async def confluent_record(spec):
    import confluent_kafka  # noqa: F401 - time is taken from the constructor on

    make = common.confluent_member if spec.get("group") else common.confluent_reader
    began = time.perf_counter()
    consumer = make(spec)
    while (message := consumer.poll(1.0)) is None:
        pass
    if message.error() is not None:
        raise RuntimeError(message.error())
    found = result(spec, began)
    consumer.close()
    return found
