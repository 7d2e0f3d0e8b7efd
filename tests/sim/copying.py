"""Members that copy a topic in transactions: what happens in a run, and its laws."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from kafkaio._config import ConsumerConfig
from kafkaio._consumer import Consumer
from kafkaio._net.transport import Dial
from kafkaio._records.batch import read_batches
from kafkaio.errors import KafkaError
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.types import TopicPartition
from tests.sim.copier import TIMEOUT, Copier
from tests.sim.copy_laws import CopyChecker
from tests.sim.injector import FaultInjector
from tests.sim.network import Wire
from tests.sim.replay import Replay
from tests.sim.requests import Requests
from tests.sim.scenario import COPIES, Fault, Kind
from tests.sim.stage import LOOK_EVERY, SETTLE_SECONDS, Stage, Tally
from tests.sim.user import GROUP, TOPIC
from tests.sim.writer import Writer

__all__ = ["CopyPlay"]

READER: Final = "reader"
_FEATURE: Final = "transaction.version"
#: The most seconds by which markers are late.
_LATEST: Final = 10.0
#: Seconds between two looks of the coordinator for what has timed out; seconds of
#: faults that may keep it, or the leader, from acting.
_CLEANUP: Final = 10.0
_OUTAGE: Final = 60.0
_LAST_EPOCHS: Final = 32_760
_READ_BYTES: Final = 1 << 20


class CopyPlay:
    """A producer writes to a topic, and members copy it to another one.

    Args:
        stage: the cluster, the network and the clock.
    """

    def __init__(self, stage: Stage) -> None:
        self.scenario = stage.scenario
        self._stage = stage
        self._broker = stage.broker
        self._control = stage.broker.control
        self._keys: list[list[bytes]] = [[] for _ in range(self.scenario.partitions)]
        self._known = [-1] * self.scenario.partitions
        self._copies = range(self.scenario.topics[COPIES])
        self.checker = CopyChecker(
            stage.now,
            stage.break_law,
            self._committed,
            self._markers_missing,
            self._inputs,
            [Replay(partial(self._copy, number)) for number in self._copies],
            self.may_be_fenced,
        )
        self._requests = Requests(stage.now, stage.break_law, self.checker.must_abort)
        self._members: list[Copier] = []
        self._is_settled = False
        self._is_written = False
        self._reading: anyio.CancelScope | None = None
        self._tasks: TaskGroup | None = None
        # When each open transaction of a partition was seen first.
        self._open_since: dict[tuple[int, int, int], float] = {}
        self._armed: dict[str, tuple[str, Callable[[], None], bool]] = {}

    # ---- what the checker asks -----------------------------------------------------

    def _committed(self, partition: int) -> int:
        found = self._control.committed(GROUP, (TOPIC, partition))
        return -1 if found is None else found

    def _copy(self, number: int) -> EmbeddedPartition:
        return self._broker.topics[COPIES].partitions[number]

    def _markers_missing(self) -> bool:
        for partition, known in enumerate(self._known):
            found = self._committed(partition)
            if found < known:
                return True  # the group's coordinator is loading
            self._known[partition] = found
        for member in self._members:
            one = self._control.transaction(member.transactional_id)
            if one is None:
                if self._requests.knows(member.transactional_id):
                    return True  # its coordinator is loading
            elif one.state.startswith("Prepare"):
                return True
        return False

    def _inputs(self) -> Sequence[Sequence[bytes]]:
        for partition, keys in enumerate(self._keys):
            log = self._broker.topics[TOPIC].partitions[partition].log
            while len(keys) < log.end_offset:
                for batch in read_batches(log.read(len(keys), _READ_BYTES)):
                    found = batch.decode(TOPIC, partition, len(keys))
                    keys += [record.key or b"" for record in found]
        return self._keys

    # ---- what members ask ------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the cluster."""
        return self._stage.bootstrap_servers

    def dial_of(self, client: str) -> Dial:
        """Return how a client connects to the cluster."""
        return self._stage.dial_of(client)

    def say(self, what: str) -> None:
        """Write a line to the trace."""
        self._stage.say(what)

    def vanished(self, client: str) -> None:
        """A process has crashed: nothing it sent later reaches the cluster."""
        self._stage.vanished(client)

    def in_background(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something that outlives the process."""
        assert self._tasks is not None
        self._tasks.start_soon(step)

    def age(self, transactional_id: str) -> None:
        """Bring the epoch of an id near the last one, if that is possible now."""
        found = self._control.transaction(transactional_id)
        if found is not None and found.epoch < _LAST_EPOCHS:
            try:
                self._control.set_producer_epoch(transactional_id, _LAST_EPOCHS)
            except KeyError:  # a transaction is open
                return
            self.say(f"{transactional_id} is at epoch {_LAST_EPOCHS}")

    def is_open(self, client: str) -> bool:
        """Whether the coordinator has a transaction of a client open."""
        transactional_id, identity = self._requests.identity_of(client)
        found = self._control.transaction(transactional_id)
        return (
            found is not None
            and found.state == "Ongoing"
            and (found.producer_id, found.epoch) == identity
        )

    def may_be_fenced(self, client: str) -> bool:
        """Whether a client may be fenced without another one of its id.

        The coordinator's time-out does that in the older protocol, and so does an
        InitProducerId that is served late.
        """
        found = self._requests
        return found.has_spoken_old(client) or found.may_be_initialised_late(client)

    # ---- what is noticed -----------------------------------------------------------

    @property
    def tally(self) -> Tally:
        """What has happened."""
        found = self.checker
        handed_out = sum(len(one.inputs) for one in found.transactions)
        copied = sum(len(one) for one in self._keys)
        return Tally(
            found.acknowledged, found.failed, handed_out, max(0, handed_out - copied)
        )

    def wrote(self, wire: Wire, frame: bytes) -> None:
        """Look at a request that leaves a client."""
        name = self._requests.wrote(wire, frame)
        armed = self._armed.get(wire.client)
        if armed is not None and name == armed[0]:
            del self._armed[wire.client]
            if armed[2]:
                armed[1]()  # before the request leaves
            else:
                asyncio.get_running_loop().call_soon(
                    armed[1]
                )  # with the request on its way

    def received(self, wire: Wire, frame: bytes) -> None:
        """Look at an answer that a client gets."""
        self._requests.received(wire, frame)

    def check_end(self) -> None:
        """Check what is left at the end."""
        self.checker.check_end()

    # ---- its life --------------------------------------------------------------------

    async def work(self, faults: Sequence[Fault]) -> None:
        """Let everything happen, and wait until all is copied and read."""
        writer = Writer(self)
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._read)
            self._tasks.start_soon(self._write, writer)
            for _ in range(self.scenario.members):
                self._enter()
            self._tasks.start_soon(self._watch)
            injector = FaultInjector(
                self._broker,
                self._stage.network,
                self._members,
                self._enter,
                lambda _: None,
                self.say,
                {
                    Kind.ZOMBIE: lambda fault: self._freeze(injector, fault),
                    Kind.MARKERS: lambda fault: self._delay(injector, fault),
                    Kind.MOVE_TRANSACTIONS: self._move,
                    Kind.LEVEL: self._set_level,
                    Kind.AGE: self._age,
                    Kind.TIME_OUT: self._time_out,
                },
            )
            await injector.run(faults, self.scenario.seconds)
            writer.stop()
            self.say("-- all faults have ended, and nothing is written")
            await self._settle()
            self._is_settled = True
            for member in self._members:
                member.leave(None)
            await self._until_over()
            assert self._reading is not None
            self._reading.cancel()

    def _enter(self) -> Copier:
        assert self._tasks is not None
        member = Copier(self, len(self._members))
        self._members.append(member)
        self._tasks.start_soon(member.live, name=member.name)
        return member

    async def _write(self, writer: Writer) -> None:
        await writer.run()
        self._is_written = True

    async def _read(self) -> None:
        """Read what is committed."""
        options = {
            "client_id": READER,
            "isolation_level": "read_committed",
            "auto_offset_reset": "earliest",
            "fetch_max_wait_ms": 5_000,
            "metadata_max_age_ms": 30_000,
        }
        config = ConsumerConfig.of(self.bootstrap_servers, options)
        consumer = Consumer.from_config(config, dial=self.dial_of(READER))
        with anyio.CancelScope() as self._reading:
            async with consumer:
                consumer.assign(TopicPartition(COPIES, p) for p in self._copies)
                while True:
                    try:
                        found = await consumer.poll()
                    except KafkaError as error:
                        if not error.retriable:
                            self._stage.break_law("raised", f"{READER}: {error!r}")
                        self.say(f"{READER}: {error!r}"[:200])
                        continue
                    for record in found.records:
                        self.checker.reads(record.partition, record.value or b"")

    async def _watch(self) -> None:
        while not self._is_settled:
            await anyio.sleep(LOOK_EVERY)
            self.checker.look()
            self._requests.look()
            self._check_stable()

    def _check_stable(self) -> None:
        """No transaction is open for longer than the coordinator allows."""
        now, seen = self._stage.now(), {}
        most = TIMEOUT + _CLEANUP + _LATEST + _OUTAGE
        for number in self._copies:
            open_now = self._control.unstable_since((COPIES, number))
            for pid, offset in sorted(open_now.items()):
                what = number, pid, offset
                since = seen[what] = self._open_since.get(what, now)
                if now - since > most:
                    self._stage.break_law(
                        "open for too long", f"producer {pid} in partition {number}"
                    )
        self._open_since = seen

    async def _settle(self) -> None:
        """Wait until every record is copied, and read."""
        self._control.delay_markers(None)
        for law, left in (
            ("never written", lambda: not self._is_written),
            ("never copied", self.checker.uncopied),
            ("never stable", self.checker.unstable),
            ("never read", self.checker.unread),
        ):
            deadline = self._stage.now() + SETTLE_SECONDS
            while there := left():
                if self._stage.now() > deadline:
                    self._stage.break_law(law, f"by partition: {there}")
                await anyio.sleep(LOOK_EVERY)

    async def _until_over(self) -> None:
        """Wait until every process has ended, and every outcome is known."""
        deadline = self._stage.now() + SETTLE_SECONDS / 2
        found = self.checker
        while not (
            all(life.is_over for life in found.lives)
            and all(entry.is_over for entry in found.transactions)
        ):
            if self._stage.now() > deadline:
                found.check_end()
                break
            await anyio.sleep(LOOK_EVERY)

    # ---- faults ------------------------------------------------------------------

    async def _freeze(self, injector: FaultInjector, fault: Fault) -> None:
        member = self._members[fault.target]
        who = member.client_id
        frozen = anyio.Event()
        ports = [node.port for node in self._broker.nodes.values()]

        def freeze() -> None:
            if not frozen.is_set():
                frozen.set()
                for port in ports:
                    self._stage.network.cut(who, port)
                self.say(f"{who} is frozen at {fault.api}")
                if member.client_id == who:
                    member.replace()

        self._armed[who] = fault.api, freeze, fault.times % 2 == 0
        with anyio.move_on_after(20.0):
            await frozen.wait()
        if not frozen.is_set():
            self._armed.pop(who, None)
            return
        await injector.lasts(fault.seconds)
        self.say(f"{who} is thawed")
        for port in ports:
            self._stage.network.heal(who, port)

    async def _delay(self, injector: FaultInjector, fault: Fault) -> None:
        self._control.delay_markers(min(_LATEST, fault.seconds / 4))
        await injector.lasts(fault.seconds)
        self._control.delay_markers(None)

    async def _move(self, fault: Fault) -> None:
        number, node = divmod(fault.target, self.scenario.nodes)
        node_id = sorted(self._broker.nodes)[node]
        if self._broker.nodes[node_id].is_up:
            name = self._members[number].transactional_id
            self._control.move_transaction_coordinator(name, node_id)

    async def _set_level(self, fault: Fault) -> None:
        self._control.set_feature(_FEATURE, fault.target)

    async def _age(self, fault: Fault) -> None:
        self._members[fault.target].age()

    async def _time_out(self, fault: Fault) -> None:
        name = self._members[fault.target].transactional_id
        found = self._control.transaction(name)
        if found is not None and found.state == "Ongoing":
            self._control.time_out_transaction(name)
