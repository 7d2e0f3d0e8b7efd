"""Records are read: key and value, and with ``keyed`` the headers as well."""

import asyncio
import time

from benchmarks.rows.work import common
from benchmarks.rows.work.common import Window


async def kafkaio_for(spec):
    async with common.kafkaio_reader(spec) as consumer:
        left, size = spec["records"], 0
        window = Window()
        if spec.get("keyed"):
            async for record in consumer:
                size += len(record.key) + len(record.value)
                for _, value in record.headers:
                    size += len(value)
                left -= 1
                if not left:
                    break
        else:
            async for record in consumer:
                record.key  # noqa: B018 - every program reads key and value
                size += len(record.value)
                left -= 1
                if not left:
                    break
        return window.close(spec["records"] - left, size=size)


async def kafkaio_batches(spec):
    async with common.kafkaio_reader(spec) as consumer:
        count, size, wanted = 0, 0, spec["records"]
        window = Window()
        async for batch in consumer.batches(max_records=1_000):
            for value in batch.values():
                size += len(value)
            count += len(batch)
            if count >= wanted:
                break
        return window.close(count, size=size)


async def kafkaio_lanes(spec):
    async with common.kafkaio_reader(spec) as consumer:
        count, size, wanted = 0, 0, spec["records"]
        over = asyncio.Event()

        async def read(lane):
            nonlocal count, size
            async for record in lane:
                record.key  # noqa: B018
                size += len(record.value)
                count += 1
                if count == wanted:
                    over.set()

        async def divide(group):
            async for lane in consumer.partitions():
                group.create_task(read(lane))

        window = Window()
        async with asyncio.TaskGroup() as group:
            dividing = group.create_task(divide(group))
            await over.wait()
            found = window.close(count, size=size)
            dividing.cancel()
            await consumer.close()
        return found


async def confluent_many(spec):
    consumer = common.confluent_reader(spec)
    count, size, wanted, keyed = 0, 0, spec["records"], spec.get("keyed")
    window = Window()
    while count < wanted:
        messages = consumer.consume(1_000, 1.0)
        for message in messages:
            if message.error() is not None:
                raise RuntimeError(message.error())
            if keyed:
                size += len(message.key())
                for _, value in message.headers():
                    size += len(value)
            else:
                message.key()
            size += len(message.value())
        count += len(messages)
    found = window.close(count, size=size)
    consumer.close()
    return found


async def aiokafka_many(spec):
    consumer = await common.aiokafka_reader(spec)
    count, size, wanted, keyed = 0, 0, spec["records"], spec.get("keyed")
    window = Window()
    while count < wanted:
        found = await consumer.getmany(timeout_ms=1_000, max_records=1_000)
        for records in found.values():
            for record in records:
                if keyed:
                    size += len(record.key)
                    for _, value in record.headers:
                        size += len(value)
                size += len(record.value)
            count += len(records)
    result = window.close(count, size=size)
    await consumer.stop()
    return result


async def aiokafka_for(spec):
    consumer = await common.aiokafka_reader(spec)
    left, size = spec["records"], 0
    window = Window()
    async for record in consumer:
        size += len(record.value)
        left -= 1
        if not left:
            break
    result = window.close(spec["records"] - left, size=size)
    await consumer.stop()
    return result


# ---- a commit after each record


async def kafkaio_commit_each(spec):
    async with common.kafkaio_member(spec) as consumer:
        records = aiter(consumer)
        await anext(records)
        await consumer.commit()
        left, window = spec["records"], Window()
        async for _ in records:
            await consumer.commit()
            left -= 1
            if not left:
                break
        return window.close(spec["records"] - left)


async def confluent_commit_each(spec):
    consumer = common.confluent_member(spec)

    def once():
        while (message := consumer.poll(1.0)) is None:
            pass
        if message.error() is not None:
            raise RuntimeError(message.error())
        consumer.commit(message, asynchronous=False)

    once()
    window = Window()
    for _ in range(spec["records"]):
        once()
    found = window.close(spec["records"])
    consumer.close()
    return found


async def aiokafka_commit_each(spec):
    async with common.aiokafka_member(spec) as consumer:
        await consumer.getone()
        await consumer.commit()
        window = Window()
        for _ in range(spec["records"]):
            await consumer.getone()
            await consumer.commit()
        return window.close(spec["records"])


# ---- a slow reader, and one that waits


async def kafkaio_slow(spec):
    consumer = common.kafkaio_reader(spec)
    before, count = common.memory("VmRSS"), 0
    end = time.monotonic() + spec["seconds"]
    async with consumer:
        async for _ in consumer:
            count += 1
            if time.monotonic() > end:
                break
            await asyncio.sleep(0.001)
        return {"count": count, "memory": common.memory("VmHWM") - before}


async def confluent_slow(spec):
    import confluent_kafka  # noqa: F401 - before its memory is looked at

    before, count = common.memory("VmRSS"), 0
    consumer = common.confluent_reader(spec)
    end = time.monotonic() + spec["seconds"]
    while time.monotonic() < end:
        count += consumer.poll(1.0) is not None
        time.sleep(0.001)  # noqa: ASYNC251 - no loop is used
    found = {"count": count, "memory": common.memory("VmHWM") - before}
    consumer.close()
    return found


async def aiokafka_slow(spec):
    import aiokafka  # noqa: F401 - before its memory is looked at

    before, count = common.memory("VmRSS"), 0
    consumer = await common.aiokafka_reader(spec)
    end = time.monotonic() + spec["seconds"]
    async for _ in consumer:
        count += 1
        if time.monotonic() > end:
            break
        await asyncio.sleep(0.001)
    found = {"count": count, "memory": common.memory("VmHWM") - before}
    await consumer.stop()
    return found


async def kafkaio_idle(spec):
    async with common.kafkaio_reader(spec) as consumer:
        left = spec["records"]
        async for _ in consumer:
            left -= 1
            if not left:
                break

        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(anext(aiter(consumer)))
            await asyncio.sleep(2)
            window = Window()
            await asyncio.sleep(spec["seconds"])
            found = window.close(spec["records"] - left)
            waiting.cancel()
        return found


async def confluent_idle(spec):
    consumer = common.confluent_reader(spec)
    left = spec["records"]
    while left > 0:
        left -= len(consumer.consume(1_000, 1.0))
    consumer.poll(2.0)
    window = Window()
    end = time.monotonic() + spec["seconds"]
    while (remains := end - time.monotonic()) > 0:
        consumer.poll(remains)
    found = window.close(spec["records"] - left)
    consumer.close()
    return found


async def aiokafka_idle(spec):
    consumer = await common.aiokafka_reader(spec)
    left = spec["records"]
    async for _ in consumer:
        left -= 1
        if not left:
            break
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(consumer.getone())
        await asyncio.sleep(2)
        window = Window()
        await asyncio.sleep(spec["seconds"])
        found = window.close(spec["records"] - left)
        waiting.cancel()
    await consumer.stop()
    return found


# ---- hand-over
# From the constructor of a second member to its first record. The first one owned all
# partitions, has records of them buffered, and reads on slowly.

PAUSE = 0.005


async def kafkaio_handover(spec):
    more = {"group_protocol": "consumer"}

    async def read_on(records):
        async for _ in records:
            await asyncio.sleep(PAUSE)

    async with common.kafkaio_member(spec, **more) as one, asyncio.TaskGroup() as group:
        records = aiter(one)
        await anext(records)
        reading = group.create_task(read_on(records))
        window = Window()
        async with common.kafkaio_member(spec, **more) as two:
            await anext(aiter(two))
            found = window.close(1)
        reading.cancel()
        return found


async def confluent_handover(spec):
    more = {"group.protocol": "consumer"}
    one = common.confluent_member(spec, **more)
    while one.poll(0.1) is None:
        pass
    window = Window()
    two = common.confluent_member(spec, **more)
    while two.poll(0) is None:
        one.poll(0)
        time.sleep(PAUSE)  # noqa: ASYNC251 - no loop is used
    found = window.close(1)
    two.close()
    one.close()
    return found
