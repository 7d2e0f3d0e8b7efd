"""The libraries that a crowded process has loaded before kafkaio runs.

Each changes something that kafkaio could stumble over: sniffio and trio what anyio
takes for the running event loop, uvloop the loop itself. Loading them here, and not
only having them installed, is what a real service does.
"""

import httpx
import sniffio
import trio
import uvloop

CROWD = (httpx, sniffio, trio, uvloop)
