"""Configs of brokers and groups: what Kafka 4.3 knows, what was set, what is in force.

``configs.json`` holds the facts; ``python -m codegen.config_facts`` reads them from
Kafka's jars.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import dropwhile
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kafkaio.testing.broker.settings import TOPIC_DEFAULTS, Setting

__all__ = [
    "BROKER",
    "GROUP",
    "TOPIC",
    "Configs",
    "Known",
    "Mode",
    "Source",
    "Synonym",
    "base_name",
    "facts",
]

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32

#: How Kafka lets a broker's config be changed while the broker runs: not at all, for
#: the cluster or a broker, for a broker alone, for a listener of a broker alone.
Mode: TypeAlias = Literal["read-only", "cluster-wide", "per-broker", "per-listener"]

_PREFIX: Final = re.compile(r"listener\.name\.[^.]*\.(?P<base>.+)$")


class Source:
    """Where a value comes from, in Kafka's numbers."""

    TOPIC: Final = 1
    NODE: Final = 2
    CLUSTER: Final = 3
    STATIC: Final = 4
    DEFAULT: Final = 5
    GROUP: Final = 8


class Synonym(NamedTuple):
    """A value that a config has, or would have without the ones before it."""

    name: str
    value: str
    source: int


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of configs.

    Attributes:
        brokers: those of a broker.
        internal: those among them that Kafka tells of only where they were set.
        modes: whether and where they can be changed.
        groups: those of a group.
        group_synonyms: the broker's config that gives a group's config its default.
        topic_synonyms: the broker's configs that give a topic's config its default, the
            first one that has a value, each with a factor for its unit.
        families: by each broker config of several such, all of them.
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
    """What Kafka 4.3 knows of configs."""
    text = files("kafkaio.testing.broker").joinpath("configs.json").read_text("utf-8")
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
    """The name of a broker's config without the prefix of a listener."""
    prefixed = _PREFIX.match(name)
    return name if prefixed is None else prefixed["base"]


class Configs:
    """What was set for brokers and groups, and what that makes of their configs.

    Args:
        static: what a broker's ``server.properties`` would say, of all nodes alike.

    Attributes:
        static: the same.
        topic_defaults: what that and later changes make of the defaults of topics'
            configs, where it is not Kafka's default. The same object for ever.
    """

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.static: dict[str, str] = dict(static or {})
        self.topic_defaults: dict[str, str] = {}
        self._dynamic: dict[tuple[int, str], dict[str, str]] = {}
        self._derive()

    def of(self, kind: int, name: str) -> Mapping[str, str]:
        """What was set for a resource while the brokers ran."""
        return self._dynamic.get((kind, name), {})

    def set(self, kind: int, name: str, values: Mapping[str, str]) -> None:
        """Set all configs of a resource; what is not named has its default again."""
        if values:
            self._dynamic[kind, name] = dict(values)
        else:
            self._dynamic.pop((kind, name), None)
        self._derive()

    def dynamic(self) -> Mapping[str, str]:
        """The configs of brokers that were set while they ran."""
        *levels, _ = self._levels()
        return {
            name: value for level in reversed(levels) for name, value in level.items()
        }

    def kept(self) -> list[tuple[int, str, dict[str, str]]]:
        """All that was set for resources, to ``restore`` it."""
        return [(*key, values) for key, values in self._dynamic.items()]

    def restore(self, kept: list[tuple[int, str, dict[str, str]]]) -> None:
        """Take up what ``kept`` returned."""
        self._dynamic = {(kind, name): values for kind, name, values in kept}
        self._derive()

    def in_force(self, name: str) -> str | None:
        """The value of a broker's config in the cluster; None for none.

        All nodes share what they have here, so a value that was set for one of them
        alone counts for the others, too.
        """
        for values in self._levels():
            if name in values:
                return values[name]
        setting = facts().brokers.get(name)
        return None if setting is None else setting.default

    def _levels(self) -> Iterator[Mapping[str, str]]:
        nodes = (name for kind, name in self._dynamic if kind == BROKER and name)
        for node in sorted(nodes):
            yield self._dynamic[BROKER, node]
        yield self._dynamic.get((BROKER, ""), {})
        yield self.static

    def _derive(self) -> None:
        names = set().union(*self._levels())
        self.topic_defaults.clear()
        known = facts()
        families = (known.families[name] for name in names & known.families.keys())
        changed = {family[0] for family in families}
        for topic_config, synonyms in known.topic_synonyms.items():
            if topic_config not in TOPIC_DEFAULTS or synonyms[0][0] not in changed:
                continue
            for name, factor in synonyms:
                value = self.in_force(name)
                if value is not None:
                    self.topic_defaults[topic_config] = _times(value, factor)
                    break

    # ---- what DescribeConfigs tells ----------------------------------------------

    def broker_synonyms(
        self, name: str, node_id: int, own: Mapping[str, str]
    ) -> list[Synonym]:
        """The values of a broker's config, the one in force first.

        Args:
            name: the config.
            node_id: the node.
            own: what is static for this node alone.
        """
        known = facts()
        names = known.families.get(name, [name])
        base = base_name(name)
        if base != name:
            names = [name, base]
        defaults = {
            one: known.brokers[one].default for one in names if one in known.brokers
        }
        levels: list[tuple[int, Mapping[str, str | None]]] = [
            (Source.NODE, self.of(BROKER, str(node_id))),
            (Source.CLUSTER, self.of(BROKER, "")),
            (Source.STATIC, {**self.static, **own}),
            (Source.DEFAULT, defaults),
        ]
        found = [
            Synonym(one, value, source)
            for source, values in levels
            for one in names
            if (value := values.get(one)) is not None
        ]
        # As in Kafka: what is before the first value of its own is left out.
        return list(dropwhile(lambda one: one.name != name, found))

    def group_synonyms(self, name: str, group: str, node_id: int) -> list[Synonym]:
        """The values of a group's config, the one in force first."""
        known = facts()
        found: list[Synonym] = []
        value = self.of(GROUP, group).get(name)
        if value is not None:
            found.append(Synonym(name, value, Source.GROUP))
        if name in known.group_synonyms:
            found += self.broker_synonyms(known.group_synonyms[name], node_id, {})
        elif name in known.groups:
            default = known.groups[name].default or ""
            found.append(Synonym(name, default, Source.DEFAULT))
        return found

    def topic_synonyms(
        self, name: str, values: Mapping[str, str], node_id: int
    ) -> list[Synonym]:
        """The values of a topic's config, the one in force first."""
        found: list[Synonym] = []
        if name in values:
            found.append(Synonym(name, values[name], Source.TOPIC))
        for broker_config, _ in facts().topic_synonyms.get(name, [])[:1]:
            found += self.broker_synonyms(broker_config, node_id, {})
        return found


def _times(value: str, factor: int) -> str:
    return value if factor == 1 else str(int(value) * factor)
