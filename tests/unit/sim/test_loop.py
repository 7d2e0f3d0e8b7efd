import asyncio
import socket

import pytest

from tests.sim.loop import VirtualClockLoop


def test_an_hour_passes_at_once() -> None:
    async def sleep() -> float:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(3600)
        return loop.time()

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        assert runner.run(sleep()) == pytest.approx(3600)


def test_waiting_for_what_never_comes_is_an_error() -> None:
    loop = VirtualClockLoop()
    with pytest.raises(RuntimeError, match="deadlock"):
        loop.run_until_complete(loop.create_future())
    loop.close()


def test_going_round_in_circles_is_an_error() -> None:
    loop = VirtualClockLoop()

    def spin() -> None:
        loop.call_soon(spin)

    spin()
    with pytest.raises(RuntimeError, match="livelock"):
        loop.run_forever()
    loop.close()


def test_what_a_socket_has_ready_is_read_before_time_passes() -> None:
    near, far = socket.socketpair()
    near.setblocking(False)

    async def read() -> tuple[bytes, float]:
        loop = asyncio.get_running_loop()
        far.sendall(b"ready")
        return await loop.sock_recv(near, 5), loop.time()

    with near, far, asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        assert runner.run(read()) == (b"ready", 0.0)
