"""Configs of brokers and groups: those that Kafka 4.4 knows, and their values.

A value comes from the first of these levels that has one: a node's dynamic configs,
the cluster's dynamic configs, the static configs (``server.properties``), Kafka's
default. ``configs.json`` lists the configs of Kafka 4.4; it is generated from Kafka's
jars by ``python -m codegen.config_facts``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import dropwhile
from typing import Any, Final, Literal, TypeAlias

from kafkaio._named_tuple import NamedTuple
from kafkaio.testing._broker.settings import TOPIC_DEFAULTS, Setting

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32
CLIENT_METRICS: Final = 16

#: The ways to change a broker's config while the broker runs: not at all, for the
#: cluster or one broker, for one broker only, for a listener of one broker only.
Mode: TypeAlias = Literal["read-only", "cluster-wide", "per-broker", "per-listener"]

_PREFIX: Final = re.compile(r"listener\.name\.[^.]*\.(?P<base>.+)$")


class ConfigOrigin:
    """The source of a value, by Kafka's numbers."""

    TOPIC: Final = 1
    NODE: Final = 2
    CLUSTER: Final = 3
    STATIC: Final = 4
    DEFAULT: Final = 5
    CLIENT_METRICS: Final = 7
    GROUP: Final = 8


class Synonym(NamedTuple):
    """A value that a config has, or would have if those before it were not set."""

    name: str
    value: str
    source: int


@dataclass(frozen=True, slots=True)
class Known:
    """The configs that Kafka 4.4 knows, by name.

    Attributes:
        brokers: the configs of a broker.
        internal: those of a broker that Kafka describes only where they are set.
        modes: whether and where a broker's configs can be changed.
        groups: the configs of a group.
        group_synonyms: the broker config that is the default of a group's config.
        topic_synonyms: the broker configs that are the default of a topic's config, in
            the order in which they are tried, each with the factor between the units.
        families: for each broker config in ``topic_synonyms``, all configs that stand
            in the same list with it.
    """

    brokers: Mapping[str, Setting]
    internal: frozenset[str]
    modes: Mapping[str, Mode]
    groups: Mapping[str, Setting]
    group_synonyms: Mapping[str, str]
    topic_synonyms: Mapping[str, list[tuple[str, int]]]
    families: Mapping[str, list[str]] = field(default_factory=dict)


@cache
def facts() -> Known:
    """Load the configs that Kafka 4.4 knows, once."""
    text = files("kafkaio.testing._broker").joinpath("configs.json").read_text("utf-8")
    raw = json.loads(text)
    brokers = raw["broker"] | raw["internal"]
    families: dict[str, list[str]] = {}
    for synonyms in raw["topic"].values():
        names = [name for name, _ in synonyms]
        families |= dict.fromkeys(names, names)
    return Known(
        {name: _setting(row) for name, row in brokers.items()},
        frozenset(raw["internal"]),
        {name: row[2] for name, row in brokers.items()},
        {name: _setting(row) for name, row in raw["group"].items()},
        {name: row[2] for name, row in raw["group"].items() if len(row) > 2 and row[2]},
        raw["topic"],
        families,
    )


def _setting(row: list[Any]) -> Setting:
    kind, default, _, choices, least, most = [*row, None, None, None, None][:6]
    return Setting(kind, default, tuple(choices or ()), least, most)


def base_name(name: str) -> str:
    """The name of a broker's config without the prefix ``listener.name.<name>.``."""
    prefixed = _PREFIX.match(name)
    return name if prefixed is None else prefixed["base"]


class BrokerConfigs:
    """The configs that are set for brokers and groups, and the values in force.

    Args:
        static: the static configs, the same for all nodes.

    Attributes:
        static: the static configs.
        topic_defaults: defaults of topics' configs, where the configs of the brokers
            make them differ from Kafka's. It stays the same object and is updated in
            place, because every topic's settings refer to it.
    """

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.static: dict[str, str] = dict(static or {})
        self.topic_defaults: dict[str, str] = {}
        self._dynamic: dict[tuple[int, str], dict[str, str]] = {}
        self._derive()

    def of(self, kind: int, name: str) -> Mapping[str, str]:
        """The dynamic configs of a resource."""
        return self._dynamic.get((kind, name), {})

    def set(self, kind: int, name: str, values: Mapping[str, str]) -> None:
        """Replace all dynamic configs of a resource."""
        if values:
            self._dynamic[kind, name] = dict(values)
        else:
            self._dynamic.pop((kind, name), None)
        self._derive()

    def dynamic(self) -> Mapping[str, str]:
        """The dynamic configs of all brokers, merged."""
        *levels, _ = self._levels()
        return {
            name: value for level in reversed(levels) for name, value in level.items()
        }

    def saved(self) -> list[tuple[int, str, dict[str, str]]]:
        """All dynamic configs, in a form for `restore`."""
        return [(*key, values) for key, values in self._dynamic.items()]

    def restore(self, saved: list[tuple[int, str, dict[str, str]]]) -> None:
        """Set all dynamic configs to what `saved` returned."""
        self._dynamic = {(kind, name): values for kind, name, values in saved}
        self._derive()

    def in_force(self, name: str) -> str | None:
        """The value of a broker's config in the cluster; None for none.

        The nodes share one state, so a value that is set for one node applies to all.
        """
        for values in self._levels():
            if name in values:
                return values[name]
        setting = facts().brokers.get(name)
        return None if setting is None else setting.default

    def _levels(self) -> Iterator[Mapping[str, str]]:
        nodes = (name for kind, name in self._dynamic if kind == BROKER and name)
        # Configs of a node come before those of the cluster, as in Kafka.
        for node in sorted(nodes):
            yield self._dynamic[BROKER, node]
        yield self._dynamic.get((BROKER, ""), {})
        yield self.static

    def _derive(self) -> None:
        names = set().union(*self._levels())
        # In place: the settings of every topic refer to this object.
        self.topic_defaults.clear()
        known = facts()
        families = (known.families[name] for name in names & known.families.keys())
        # Only for configs that are set: where none is, a topic keeps Kafka's own
        # default.
        changed = {family[0] for family in families}
        for topic_config, synonyms in known.topic_synonyms.items():
            if topic_config not in TOPIC_DEFAULTS or synonyms[0][0] not in changed:
                continue
            for name, factor in synonyms:
                value = self.in_force(name)
                if value is not None:
                    self.topic_defaults[topic_config] = _times(value, factor)
                    break

    # ---- for DescribeConfigs -----------------------------------------------------

    def broker_synonyms(
        self, name: str, node_id: int, own: Mapping[str, str]
    ) -> list[Synonym]:
        """The values of a broker's config, the one in force first.

        Args:
            name: the config.
            node_id: the node.
            own: the static configs of this node alone.
        """
        known = facts()
        names = known.families.get(name, [name])
        base = base_name(name)
        if base != name:
            # A config with the prefix of a listener falls back to the one without it.
            names = [name, base]
        defaults = {
            one: known.brokers[one].default for one in names if one in known.brokers
        }
        levels: list[tuple[int, Mapping[str, str | None]]] = [
            (ConfigOrigin.NODE, self.of(BROKER, str(node_id))),
            (ConfigOrigin.CLUSTER, self.of(BROKER, "")),
            (ConfigOrigin.STATIC, {**self.static, **own}),
            (ConfigOrigin.DEFAULT, defaults),
        ]
        found = [
            Synonym(one, value, source)
            for source, values in levels
            for one in names
            if (value := values.get(one)) is not None
        ]
        # As in Kafka, values of other names that precede the first of this name are
        # left out.
        return list(dropwhile(lambda one: one.name != name, found))

    def group_synonyms(self, name: str, group: str, node_id: int) -> list[Synonym]:
        """The values of a group's config, the one in force first."""
        known = facts()
        found: list[Synonym] = []
        value = self.of(GROUP, group).get(name)
        if value is not None:
            found.append(Synonym(name, value, ConfigOrigin.GROUP))
        if name in known.group_synonyms:
            found += self.broker_synonyms(known.group_synonyms[name], node_id, {})
        elif name in known.groups:
            default = known.groups[name].default or ""
            found.append(Synonym(name, default, ConfigOrigin.DEFAULT))
        return found

    def topic_synonyms(
        self, name: str, values: Mapping[str, str], node_id: int
    ) -> list[Synonym]:
        """The values of a topic's config, the one in force first."""
        found: list[Synonym] = []
        if name in values:
            found.append(Synonym(name, values[name], ConfigOrigin.TOPIC))
        for broker_config, _ in facts().topic_synonyms.get(name, [])[:1]:
            found += self.broker_synonyms(broker_config, node_id, {})
        return found


def _times(value: str, factor: int) -> str:
    return value if factor == 1 else str(int(value) * factor)
