"""``kafkaio copy``: CPU of the command, without what it needs to start."""

import asyncio
import resource
import subprocess
import sys
import time
import uuid


async def kafkaio_copy(spec, *options):
    import kafkaio

    source, count = spec["topic"], spec["partitions"]
    target = f"{source}-copy-{uuid.uuid4().hex[:6]}"
    command = [sys.executable, "-m", "kafkaio", "copy", source, target]
    command += ["--partitions", "-b", spec["bootstrap"], *options]
    async with kafkaio.Admin(spec["bootstrap"]) as admin:
        made = kafkaio.admin.NewTopic(target, count, 1)
        await admin.create_topics([made])
        places = [kafkaio.TopicPartition(target, n) for n in range(count)]
        start = await _spent([*command, "-o", "latest"])  # it copies nothing
        began = time.perf_counter()
        cpu = await _spent(command) - start
        wall = time.perf_counter() - began
        async with kafkaio.Consumer(spec["bootstrap"]) as consumer:
            copied = sum((await consumer.end_offsets(places)).values())
        await admin.delete_topics([target])
    return {"count": copied, "cpu": cpu, "wall": wall}


async def kafkaio_raw(spec):
    return await kafkaio_copy(spec, "--raw")


async def _spent(command):
    """Run a program, and return the seconds of CPU that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run
    await asyncio.to_thread(run, command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
