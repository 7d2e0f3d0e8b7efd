"""Runs one program in this process: ``python -m benchmarks.rows.worker SPEC``.

The spec and the result, which is the last line of the output, are JSON.
"""

import asyncio
import importlib
import json
import sys
import time


async def run(spec):
    module, _, name = spec["program"].partition(".")
    work = importlib.import_module(f"benchmarks.rows.work.{module}")
    async with asyncio.timeout(100):
        return await getattr(work, name)(spec)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    # CPU of an interpreter with asyncio, which any client of it needs.
    given["began"] = time.process_time()
    print(json.dumps(asyncio.run(run(given))))
