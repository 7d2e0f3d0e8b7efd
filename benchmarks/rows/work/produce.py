"""Many records are written, or each is waited for."""

import asyncio
import itertools
import time

from benchmarks.rows.work import common
from benchmarks.rows.work.common import HEADERS, WINDOW, Window, keys_of, values_of

# ---- many records


async def acknowledged(deliveries):
    """Wait for deliveries, raise the error of any; return how many they are."""
    for delivery in deliveries:
        if not delivery.is_done:
            await delivery
        elif (error := delivery.exception()) is not None:
            raise error
    return len(deliveries)


async def with_metadata(deliveries):
    """Take the RecordMetadata of each."""
    for delivery in deliveries:
        (await delivery).offset  # noqa: B018 - what a program reads of it
    return len(deliveries)


async def begin(producer, spec):
    """Write a first record and, if the spec says so, one to each partition."""
    topic, value = spec["topic"], next(values_of(spec))
    await producer.send(topic, value)
    if not spec.get("spread"):
        return 1
    count = spec["partitions"]
    sent = [await producer.enqueue(topic, value, partition=n) for n in range(count)]
    return 1 + await acknowledged(sent)


async def kafkaio_each(spec, check=acknowledged):
    import kafkaio

    async with common.kafkaio_producer(spec) as producer:
        written = await begin(producer, spec)
        topic, nowait, wait = spec["topic"], producer.enqueue_nowait, producer.enqueue
        full = kafkaio.BufferFull
        window, most = Window(), spec.get("window", WINDOW)
        older, newer, count = [], [], 0
        if spec.get("keyed"):
            for value, key in zip(values_of(spec), keys_of(spec), strict=True):
                try:
                    newer.append(nowait(topic, value, key=key, headers=HEADERS))
                except full:
                    newer.append(await wait(topic, value, key=key, headers=HEADERS))
                if len(newer) == most:
                    count += await check(older)
                    older, newer = newer, []
        else:
            for value in values_of(spec):
                try:
                    newer.append(nowait(topic, value))
                except full:
                    newer.append(await wait(topic, value))
                if len(newer) == most:
                    count += await check(older)
                    older, newer = newer, []
        count += await check(older) + await check(newer)
        return window.close(count, written=written + count)


async def kafkaio_metadata(spec):
    return await kafkaio_each(spec, with_metadata)


async def kafkaio_many(spec):
    """`send_many`, two calls at a time; its records are made before the window."""
    import kafkaio

    count = spec["records"]
    if spec.get("keyed"):
        rows = [
            kafkaio.NewRecord(value, key=key, headers=HEADERS)
            for value, key in zip(values_of(spec), keys_of(spec), strict=True)
        ]
    else:
        rows = list(values_of(spec))
    chunks = iter([rows[at : at + WINDOW] for at in range(0, count, WINDOW)])
    async with common.kafkaio_producer(spec) as producer:
        written = await begin(producer, spec)

        async def work():
            done = 0
            for chunk in chunks:
                done += len(await producer.send_many(spec["topic"], chunk))
            return done

        window = Window()
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(work()) for _ in range(2)]
        done = sum(worker.result() for worker in workers)
        return window.close(done, written=written + done)


async def confluent_each(spec):
    count, offsets, problems = 0, 0, []

    def delivered(error, message):
        nonlocal count, offsets
        count += 1
        offsets += message.offset()
        if error is not None:
            problems.append(error)

    producer = common.confluent_producer(spec)
    topic, value, partitions = spec["topic"], next(values_of(spec)), spec["partitions"]
    producer.produce(topic, value, on_delivery=delivered)
    producer.flush()
    for number in range(partitions if spec.get("spread") else 0):
        producer.produce(topic, value, partition=number, on_delivery=delivered)
    producer.flush()
    before = count
    keyed = spec.get("keyed")
    keys = keys_of(spec) if keyed else itertools.repeat(None)
    headers = HEADERS if keyed else None
    window = Window()
    for number, (value, key) in enumerate(zip(values_of(spec), keys, strict=False)):
        while True:
            try:
                producer.produce(
                    topic, value, key, headers=headers, on_delivery=delivered
                )
                break
            except BufferError:
                producer.poll(0.05)
        if not number & 1023:
            producer.poll(0)
    producer.flush()
    if problems:
        raise RuntimeError(problems[0])
    return window.close(count - before, written=count)


async def aiokafka_each(spec):
    # Without a linger it writes a batch for each turn of the loop.
    options = {} if spec.get("linger_ms") is not None else {"linger_ms": 5}
    async with common.aiokafka_producer(spec, **options) as producer:
        topic, value = spec["topic"], next(values_of(spec))
        await producer.send_and_wait(topic, value)
        written = 1
        numbers = range(spec["partitions"] if spec.get("spread") else 0)
        first = [await producer.send(topic, value, partition=n) for n in numbers]
        for future in first:
            await future
            written += 1
        keyed = spec.get("keyed")
        keys = keys_of(spec) if keyed else itertools.repeat(None)
        headers = HEADERS if keyed else None
        window, most = Window(), spec.get("window", WINDOW)
        older, newer, count = [], [], 0
        for value, key in zip(values_of(spec), keys, strict=False):
            newer.append(await producer.send(topic, value, key, headers=headers))
            if len(newer) == most:
                for future in older:
                    await future
                count += len(older)
                older, newer = newer, []
        for future in older + newer:
            await future
        count += len(older) + len(newer)
        return window.close(count, written=written + count)


# ---- each record is waited for


async def _await(spec, send):
    topic, callers = spec["topic"], spec["callers"]
    value = next(values_of(spec))
    await send(topic, value)
    waits = []

    async def caller():
        for _ in range(spec["records"] // callers):
            start = time.perf_counter()
            await send(topic, value)
            waits.append(time.perf_counter() - start)

    window = Window()
    if callers == 1:
        await caller()
    else:
        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(caller())
    count = len(waits)
    return window.close(count, median=common.middle(waits), written=count + 1)


async def kafkaio_await(spec):
    async with common.kafkaio_producer(spec) as producer:
        return await _await(spec, producer.send)


async def aiokafka_await(spec):
    async with common.aiokafka_producer(spec) as producer:
        return await _await(spec, producer.send_and_wait)


async def confluent_await(spec):
    """One caller: threads, of which this client would need one for each."""
    problems = []

    def delivered(error, _message):
        if error is not None:
            problems.append(error)

    producer = common.confluent_producer(spec)

    async def send(topic, value):
        producer.produce(topic, value, on_delivery=delivered)
        producer.flush()
        if problems:
            raise RuntimeError(problems[0])

    return await _await(spec, send)


# ---- transactions


async def kafkaio_transact(spec):
    import kafkaio

    values, each = common.read_values(spec)[: spec["each"]], spec["each"]
    topic = spec["topic"]
    async with common.kafkaio_producer(spec, transactional_id=topic) as producer:

        async def once():
            async with producer.transaction() as transaction:
                for value in values:
                    try:
                        transaction.enqueue_nowait(topic, value)
                    except kafkaio.BufferFull:
                        await transaction.enqueue(topic, value)

        await once()
        window = Window()
        for _ in range(spec["records"]):
            await once()
        return window.close(spec["records"], written=each * (spec["records"] + 1))


async def confluent_transact(spec):
    values, each = common.read_values(spec)[: spec["each"]], spec["each"]
    topic, problems = spec["topic"], []

    def delivered(error, _message):
        if error is not None:
            problems.append(error)

    more = {"transactional.id": topic + "-confluent"}
    producer = common.confluent_producer(spec, **more)
    producer.init_transactions()

    def once():
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, on_delivery=delivered)
        producer.commit_transaction()
        if problems:
            raise RuntimeError(problems[0])

    once()
    window = Window()
    for _ in range(spec["records"]):
        once()
    return window.close(spec["records"], written=each * (spec["records"] + 1))


async def aiokafka_transact(spec):
    values, each = common.read_values(spec)[: spec["each"]], spec["each"]
    topic = spec["topic"]
    more = {"transactional_id": topic + "-aiokafka"}
    async with common.aiokafka_producer(spec, **more) as producer:

        async def once():
            async with producer.transaction():
                sent = [await producer.send(topic, value) for value in values]
                for future in sent:
                    await future

        await once()
        window = Window()
        for _ in range(spec["records"]):
            await once()
        return window.close(spec["records"], written=each * (spec["records"] + 1))
