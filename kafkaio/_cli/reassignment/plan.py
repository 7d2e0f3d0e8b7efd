"""Plans the replicas of partitions: balanced over brokers, with few moves.

Pure. A plan has these properties, in this order:

1. Each partition has the wanted number of replicas, on different brokers of the given.
2. The replicas of a partition are spread over the racks: their numbers in two racks
   differ by one at most, if the racks have enough brokers.
3. The replicas of a topic are spread over the brokers.
4. So are all replicas together.
5. So are the preferred leaders, the first replicas. Putting another replica first moves
   no data.

The first two are established partition by partition. Then single replicas move from a
broker with more to one with fewer, while a move exists that improves 3 or 4 and worsens
none before it. Without racks such a move exists until two brokers differ by one at
most: a broker with more replicas of a topic has one of a partition of which the other
has none. Each move makes the sum of the squares smaller, so the search ends; and a plan
for the result of a plan changes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence

from kafkaio.types import TopicPartition


class Impossible(Exception):
    """No plan exists; the message is one line."""


def plan(
    current: Mapping[TopicPartition, Sequence[int]],
    brokers: Mapping[int, str | None],
    replication_factor: int | None = None,
) -> dict[TopicPartition, tuple[int, ...]]:
    """Plan the replicas of partitions.

    Args:
        current: the brokers of each partition's replicas, the preferred leader first.
        brokers: the brokers that may have replicas, with their racks; racks do not
            count if all are None.
        replication_factor: the number of replicas of each partition; as many as it has
            by default.

    Returns:
        The brokers of the replicas, the preferred leader first, of the partitions that
        change.

    Raises:
        Impossible: there are too few brokers, or only some of them have a rack.
    """
    racks = _racks(brokers)
    _check_enough(current, brokers, replication_factor)
    state = _Placement(current, racks)
    for tp in sorted(current):
        state.repair(tp, replication_factor or len(current[tp]))
    # A move for all brokers can allow another one within a topic, so both repeat until
    # neither moves anything.
    while state.balance_topics() or state.balance_brokers():
        pass
    wanted = _Leaders(state.in_order()).spread()
    return {tp: new for tp, new in wanted.items() if new != tuple(current[tp])}


def moved_replicas(
    current: Mapping[TopicPartition, Sequence[int]],
    wanted: Mapping[TopicPartition, Sequence[int]],
) -> int:
    """Count the replicas whose data a plan copies to a new broker."""
    return sum(len({*new} - {*current.get(tp, ())}) for tp, new in wanted.items())


def _racks(brokers: Mapping[int, str | None]) -> dict[int, str]:
    """The rack of each broker; one rack for all if no broker has one."""
    # Brokers themselves refuse to place replicas if only some have a rack.
    without = sorted(node for node, rack in brokers.items() if rack is None)
    if without and len(without) < len(brokers):
        names = ", ".join(map(str, without))
        raise Impossible(f"only some brokers have a rack: not {names}")
    return {node: rack or "" for node, rack in brokers.items()}


def _check_enough(
    current: Mapping[TopicPartition, Sequence[int]],
    brokers: Mapping[int, str | None],
    replication_factor: int | None,
) -> None:
    for tp, replicas in sorted(current.items()):
        count = replication_factor or len(replicas)
        if count > len(brokers):
            raise Impossible(
                f"{count} replicas of {tp.topic}-{tp.partition} "
                f"need more than {len(brokers)} brokers"
            )


class _Placement:
    """The replicas of each partition and broker.

    Args:
        current: the brokers of each partition's replicas.
        racks: the racks of the brokers that may have replicas.
    """

    def __init__(
        self, current: Mapping[TopicPartition, Sequence[int]], racks: Mapping[int, str]
    ) -> None:
        self._before = current
        self._racks = racks
        self._nodes = sorted(racks)
        self._replicas: dict[TopicPartition, list[int]] = {}
        # The partitions by topic and broker. It mirrors _replicas, as _totals does:
        # _add and _remove change all three.
        self._there: dict[tuple[str, int], set[TopicPartition]] = defaultdict(set)
        self._totals = dict.fromkeys(self._nodes, 0)
        self._topics = sorted({tp.topic for tp in current})
        for tp, replicas in current.items():
            self._replicas[tp] = []
            for node in dict.fromkeys(replicas):
                if node in racks:
                    self._add(tp, node)

    def in_order(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas of each partition, those that it had before first."""
        # The old order keeps the preferred leader where its replica stays.
        found: dict[TopicPartition, tuple[int, ...]] = {}
        for tp, replicas in self._replicas.items():
            kept = [node for node in self._before[tp] if node in replicas]
            found[tp] = tuple(dict.fromkeys([*kept, *replicas]))
        return found

    def _add(self, tp: TopicPartition, node: int) -> None:
        self._replicas[tp].append(node)
        self._there[tp.topic, node].add(tp)
        self._totals[node] += 1

    def _remove(self, tp: TopicPartition, node: int) -> None:
        self._replicas[tp].remove(node)
        self._there[tp.topic, node].discard(tp)
        self._totals[node] -= 1

    def _load(self, topic: str, node: int) -> tuple[int, int]:
        return len(self._there[topic, node]), self._totals[node]

    def _in_racks(self, tp: TopicPartition) -> Counter[str]:
        return Counter(self._racks[node] for node in self._replicas[tp])

    # ---- one partition ---------------------------------------------------------------

    def repair(self, tp: TopicPartition, count: int) -> None:
        """Give a partition its number of replicas, spread over the racks."""
        replicas = self._replicas[tp]
        while len(replicas) > count:
            self._remove(tp, self._worst(tp))
        while len(replicas) < count:
            self._add(tp, self._free(tp)[0])
        while free := self._free(tp):
            source, target, in_rack = self._worst(tp), free[0], self._in_racks(tp)
            if in_rack[self._racks[source]] - in_rack[self._racks[target]] <= 1:
                return
            self._remove(tp, source)
            self._add(tp, target)

    def _worst(self, tp: TopicPartition) -> int:
        """The replica to give up: one in the rack with the most replicas.

        Within the rack a replica without data comes before the others, and the leader
        last; then one on the broker with the most replicas.
        """
        in_rack, before = self._in_racks(tp), self._before[tp]
        return max(
            self._replicas[tp],
            key=lambda node: (
                in_rack[self._racks[node]],
                node not in before,
                node != before[0],
                self._load(tp.topic, node),
                node,
            ),
        )

    def _free(self, tp: TopicPartition) -> list[int]:
        """The brokers without a replica, those in the rack with the fewest first.

        Within a rack a broker that has the data comes before the others, then the one
        with the fewest replicas.
        """
        in_rack, before = self._in_racks(tp), self._before[tp]
        return sorted(
            (node for node in self._nodes if node not in self._replicas[tp]),
            key=lambda node: (
                in_rack[self._racks[node]],
                node not in before,
                self._load(tp.topic, node),
                node,
            ),
        )

    # ---- all of them -----------------------------------------------------------------

    def balance_topics(self) -> bool:
        """Spread the replicas of each topic; return whether one moved."""
        moved = False
        for topic in self._topics:
            while self._move_within(topic):
                moved = True
        return moved

    def _move_within(self, topic: str) -> bool:
        def load(node: int) -> int:
            return len(self._there[topic, node])

        for source, target in self._pairs(load, lambda node: self._load(topic, node)):
            movable = self._movable(topic, source, target)
            if movable:
                self._move(min(movable)[-1], source, target)
                return True
        return False

    def balance_brokers(self) -> bool:
        """Spread all replicas, without worsening a topic; return whether one moved."""
        moved = False
        while self._move_any():
            moved = True
        return moved

    def _move_any(self) -> bool:
        totals = self._totals
        for source, target in self._pairs(totals.__getitem__, totals.__getitem__):
            movable = [
                each
                for topic in self._topics
                # Only topics of which the source has more: the move improves them, too.
                if len(self._there[topic, source]) > len(self._there[topic, target])
                for each in self._movable(topic, source, target)
            ]
            if movable:
                self._move(min(movable)[-1], source, target)
                return True
        return False

    def _pairs(
        self, load: Callable[[int], int], order: Callable[[int], int | tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Pairs of brokers between which a move makes the sum of squares smaller.

        The pair with the largest difference comes first.
        """
        nodes = sorted(self._nodes, key=lambda node: (order(node), node))
        return sorted(
            (
                (source, target)
                for target in nodes
                for source in reversed(nodes)
                if load(source) - load(target) > 1
            ),
            key=lambda pair: load(pair[1]) - load(pair[0]),
        )

    def _movable(
        self, topic: str, source: int, target: int
    ) -> list[tuple[int, bool, TopicPartition]]:
        """The partitions that may move, each with its cost.

        The cost is the number of additional copies of a replica's data, then whether
        the preferred leader moves.
        """
        found: list[tuple[int, bool, TopicPartition]] = []
        there, same = self._there, self._racks[source] == self._racks[target]
        for tp in there[topic, source] - there[topic, target]:
            before = self._before[tp]
            if same or self._keeps_racks(tp, source, target):
                # -1 if a copy is saved: the replica returns to a broker that has it.
                cost = (target not in before) - (source not in before)
                found.append((cost, source == before[0], tp))
        return found

    def _keeps_racks(self, tp: TopicPartition, source: int, target: int) -> bool:
        in_rack = self._in_racks(tp)
        return in_rack[self._racks[source]] > in_rack[self._racks[target]]

    def _move(self, tp: TopicPartition, source: int, target: int) -> None:
        self._remove(tp, source)
        self._add(tp, target)


class _Leaders:
    """Chooses the first replica of each partition.

    A leadership moves along a chain of brokers, each of which gives one to the next,
    from a broker to one that leads at least two partitions fewer. If no chain exists,
    no choice of leaders is more even.

    Args:
        replicas: the replicas of each partition; changed in place.
    """

    def __init__(self, replicas: dict[TopicPartition, tuple[int, ...]]) -> None:
        self._replicas = replicas
        self._by_topic: dict[str, list[TopicPartition]] = defaultdict(list)
        self._of_topic: Counter[tuple[str, int]] = Counter()
        for tp in sorted(replicas):
            self._by_topic[tp.topic].append(tp)
            self._of_topic[tp.topic, replicas[tp][0]] += 1

    def spread(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Spread the leaders of each topic, then all leaders; return the replicas."""
        for tps in self._by_topic.values():
            self._spread(tps, lambda tp, node: True)
        self._spread(sorted(self._replicas), self._keeps_topic)
        return self._replicas

    def _keeps_topic(self, tp: TopicPartition, node: int) -> bool:
        of_topic, leader = self._of_topic, self._replicas[tp][0]
        return of_topic[tp.topic, leader] > of_topic[tp.topic, node]

    def _spread(
        self,
        tps: Sequence[TopicPartition],
        may_lead: Callable[[TopicPartition, int], bool],
    ) -> None:
        # The partitions that each broker leads. Brokers that lead none are targets, so
        # every replica has an entry.
        led: dict[int, dict[TopicPartition, None]] = defaultdict(dict)
        for tp in tps:
            for node in self._replicas[tp]:
                led[node].pop(tp, None)
            led[self._replicas[tp][0]][tp] = None
        while chain := self._chain(led, may_lead):
            for tp, node in chain:
                leader, *others = self._replicas[tp]
                del led[leader][tp]
                led[node][tp] = None
                self._of_topic[tp.topic, leader] -= 1
                self._of_topic[tp.topic, node] += 1
                others.remove(node)
                self._replicas[tp] = (node, leader, *others)

    def _chain(
        self,
        led: Mapping[int, Mapping[TopicPartition, None]],
        may_lead: Callable[[TopicPartition, int], bool],
    ) -> list[tuple[TopicPartition, int]]:
        """Return changes of leaders after which a broker leads one partition less."""
        # Breadth-first search from the broker with the most: the shortest chain changes
        # the fewest leaders.
        for source in sorted(led, key=lambda node: (-len(led[node]), node)):
            reached: dict[int, list[tuple[TopicPartition, int]]] = {source: []}
            waiting = deque([source])
            while waiting:
                broker = waiting.popleft()
                for tp in led[broker]:
                    for node in self._replicas[tp]:
                        if node in reached or not may_lead(tp, node):
                            continue
                        reached[node] = [*reached[broker], (tp, node)]
                        if len(led[source]) - len(led[node]) > 1:
                            return reached[node]
                        waiting.append(node)
        return []
