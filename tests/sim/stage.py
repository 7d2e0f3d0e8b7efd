"""What every run has: a cluster, a network, a trace, and the laws of a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import anyio

from kafkaio._net.transport import Dial
from kafkaio.protocol._message import Buffer
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._embedded import Broker
from tests.sim.injector import OTHER
from tests.sim.members import HEARTBEAT_SECONDS, SESSION_SECONDS
from tests.sim.network import Network, Wire
from tests.sim.scenario import Fault, Scenario
from tests.sim.trace import Trace
from tests.sim.user import TOPIC
from tests.sim.violation import Violation

__all__ = ["LOOK_EVERY", "SETTLE_SECONDS", "Play", "Stage", "Tally"]

#: Seconds until everything must be read and committed after the last fault.
SETTLE_SECONDS: Final = 300.0
LOOK_EVERY: Final = 1.0
#: Seconds for bytes in flight to arrive, after everything was closed.
_DRAIN_SECONDS: Final = 30.0
_LENGTH_SIZE: Final = 4
CLUSTER_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


@dataclass(frozen=True, slots=True)
class Tally:
    """How much has happened; see `tests.sim.world.Outcome`."""

    acknowledged: int
    failed: int
    delivered: int
    repeated: int


class Play(Protocol):
    """What happens in a run."""

    @property
    def tally(self) -> Tally:
        """What has happened."""

    async def work(self, faults: Sequence[Fault]) -> None:
        """Let everything happen, and wait until all is read and committed."""

    def check_end(self) -> None:
        """Check what is left at the end."""

    def wrote(self, wire: Wire, frame: bytes) -> None:
        """Look at a request that leaves a client."""

    def received(self, wire: Wire, frame: bytes) -> None:
        """Look at an answer that a client gets."""


class Stage:
    """The cluster, the network and the trace of one run.

    Args:
        scenario: the scenario.
        now: returns the time.
    """

    def __init__(self, scenario: Scenario, now: Callable[[], float]) -> None:
        self.scenario = scenario
        self.violations: list[Violation] = []
        self.trace = Trace()
        self.requests = 0
        self.now = now
        self.network = Network(
            scenario.rng("network").getrandbits(64),
            scenario.latency,
            self._wrote,
            self._received,
        )
        self.broker = Broker(
            nodes=scenario.nodes,
            topics={TOPIC: scenario.partitions, OTHER: 1, **scenario.topics},
            memory_transport=self.network,
            groups=GroupConfig(
                consumer_session_timeout=SESSION_SECONDS,
                consumer_heartbeat_interval=HEARTBEAT_SECONDS,
            ),
            features=scenario.features,
        )
        # Clients name the cluster in their requests.
        self.broker._cluster.cluster_id = CLUSTER_ID
        self._all: anyio.CancelScope | None = None
        self._play: Play | None = None

    # ---- what members ask --------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the cluster."""
        return self.broker.bootstrap_servers

    def dial_of(self, client: str) -> Dial:
        """Return how a client connects to the cluster."""
        return self.network.dial_of(client)

    def say(self, what: str) -> None:
        """Write a line to the trace."""
        self.trace.say(self.now(), what)

    def vanished(self, client: str) -> None:
        """A process has crashed: nothing it sent later reaches the cluster."""
        self.network.remove(client)

    # ---- what is noticed ---------------------------------------------------------

    def violated(self, violation: Violation) -> None:
        """Take a broken law; the run ends with the first."""
        self.violations.append(violation)
        self.trace.say(violation.at, f"VIOLATION {violation.law}: {violation.detail}")
        if self._all is not None:
            self._all.cancel()
            # The order in which cancelled tasks end is not defined.
            self.trace.end()

    def stuck(self, error: RuntimeError) -> None:
        """The loop has stopped: it can run nothing any more."""
        self._all = None
        self.break_law("stuck", str(error))

    def unhandled(
        self, loop: asyncio.AbstractEventLoop, context: dict[str, object]
    ) -> None:
        """An error was reported to the event loop, because no task awaits it."""
        del loop
        error = context.get("exception")
        self.break_law("unhandled", f"{context.get('message')}: {error!r}")

    def break_law(self, law: str, detail: str) -> None:
        """Report that a law was broken."""
        self.violated(Violation(self.now(), law, detail))

    def _wrote(self, wire: Wire, parts: Sequence[Buffer]) -> None:
        frame = b"".join(parts)
        self.requests += 1
        self.trace.add(self.now(), f"{wire.client} to {wire.port}", frame)
        if self._play is not None:
            self._play.wrote(wire, frame[_LENGTH_SIZE:])

    def _received(self, wire: Wire, frame: Buffer) -> None:
        if self._play is not None:
            self._play.received(wire, bytes(frame))

    # ---- its life ----------------------------------------------------------------

    async def live(self, play: Play, faults: Sequence[Fault]) -> None:
        """Run the whole scenario, and check what is left at the end."""
        loop = asyncio.get_running_loop()
        self._play = play
        over_at = self.scenario.seconds + 2 * SETTLE_SECONDS
        timers = [
            loop.call_at(over_at, self._never_ended),
            # For tasks that ignore their cancellation.
            loop.call_at(over_at + SETTLE_SECONDS, loop.stop),
        ]
        async with self.broker:
            with anyio.CancelScope() as self._all:
                await play.work(faults)
                play.check_end()
                await anyio.sleep(_DRAIN_SECONDS)
                if left := self.network.open_links:
                    self.break_law("connections left", ", ".join(left))
            self._all = None
        for timer in timers:
            timer.cancel()
        left_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if left_tasks:
            names = sorted(task.get_name() for task in left_tasks)
            self.break_law("tasks left", ", ".join(names))

    def _never_ended(self) -> None:
        names = sorted({task.get_name() for task in asyncio.all_tasks()})
        self.break_law("never ended", ", ".join(names))
