"""Write the table of pinned jars: ``python -m codegen.pin_jars``.

Resolves every release of `releases.py` through jgo and records the SHA-256 of
each jar. Run it when a release is added or moved; read the diff before
committing it, for from then on these digests are what the jars are held to.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from jgo.maven import MavenContext

from kafkaio.testing.kafka import _jars as jars
from kafkaio.testing.kafka._jars import maven_context, sha256_of
from kafkaio.testing.kafka._releases import RELEASES, Release

Entry: TypeAlias = dict[str, "str | dict[str, str]"]
Key: TypeAlias = tuple[str, str]

_KAFKA: Final = "org.apache.kafka"
_ZSTD_PLATFORMS: Final = (
    "linux_amd64",
    "linux_aarch64",
    "darwin_x86_64",
    "darwin_aarch64",
)
# Log back ends: exactly one may be present, and ours is slf4j-simple.
_LOG_BACK_ENDS: Final = frozenset(
    {
        "slf4j-log4j12",
        "slf4j-reload4j",
        "log4j-slf4j-impl",
        "log4j-slf4j2-impl",
        "logback-classic",
    }
)
# The jars that a broker from 4.2 on needs, found by elimination; the rest of its
# dependencies serve tiered storage, the storage tool and Connect.
_SMALL: Final = frozenset(
    {
        "HdrHistogram",
        "commons-validator",
        "hash4j",
        "jackson-annotations",
        "jackson-core",
        "jackson-databind",
        "jopt-simple",
        "jose4j",
        "kafka-clients",
        "kafka-coordinator-common",
        "kafka-group-coordinator",
        "kafka-group-coordinator-api",
        "kafka-metadata",
        "kafka-raft",
        "kafka-server",
        "kafka-server-common",
        "kafka-share-coordinator",
        "kafka-storage",
        "kafka-storage-api",
        "kafka-transaction-coordinator",
        "kafka_2.13",
        "log4j-api",
        "lz4-java",
        "metrics-core",
        "pcollections",
        "re2j",
        "scala-library",
        "scala-logging_2.13",
        "slf4j-api",
        "slf4j-simple",
        "snappy-java",
        "zstd-jni",
    }
)


def _closure(context: MavenContext, roots: Iterable[str]) -> dict[Key, str]:
    """Return the versions of the roots and all they need, by group and name."""
    found: dict[Key, str] = {}
    for root in roots:
        dependency = context.create_dependency(root)
        inputs, transitive = context.resolver.resolve([dependency])
        for each in [*inputs, *transitive]:
            if each.scope in {None, "compile", "runtime"} and each.type == "jar":
                found.setdefault((each.groupId, each.artifactId), each.version)
    return {
        key: version for key, version in found.items() if key[1] not in _LOG_BACK_ENDS
    }


def _digest(context: MavenContext, key: Key, version: str, classifier: str = "") -> str:
    component = context.project(*key).at_version(version)
    return sha256_of(Path(component.artifact(classifier=classifier).resolve()))


def _entry(context: MavenContext, key: Key, version: str) -> Entry:
    entry: Entry = {
        "group": key[0],
        "artifact": key[1],
        "version": version,
        "sha256": _digest(context, key, version),
    }
    if key[1] == "zstd-jni":
        entry["classified"] = {
            platform: digest
            for platform in _ZSTD_PLATFORMS
            if (digest := _digest_or_none(context, key, version, platform))
        }
    return entry


def _digest_or_none(
    context: MavenContext, key: Key, version: str, classifier: str
) -> str | None:
    try:
        return _digest(context, key, version, classifier)
    except RuntimeError:  # not published for this platform
        return None


def pin(release: Release) -> dict[str, list[Entry]]:
    """Resolve one release into its broker jars and the further jars of its tools."""
    context = maven_context()
    core = f"{_KAFKA}:kafka_{release.scala}:{release.version}"
    broker = _closure(context, [core])
    broker["org.slf4j", "slf4j-simple"] = broker["org.slf4j", "slf4j-api"]
    everything = broker | {
        key: version
        for key, version in _closure(
            context, [f"{_KAFKA}:kafka-tools:{release.version}"]
        ).items()
        if key not in broker
    }
    if release.short in {"4.4", "4.3", "4.2"}:
        broker = {key: version for key, version in broker.items() if key[1] in _SMALL}
    return {
        "broker": [_entry(context, key, broker[key]) for key in sorted(broker)],
        "tools": [
            _entry(context, key, everything[key])
            for key in sorted(everything.keys() - broker.keys())
        ],
    }


def main() -> None:
    """Rewrite `jars.json` in `kafkaio.testing.kafka`."""
    target = Path(jars.__file__).with_name("jars.json")
    table: dict[str, dict[str, list[Entry]]] = {}
    for release in RELEASES.values():
        table[release.version] = pin(release)
        counts = {name: len(each) for name, each in table[release.version].items()}
        sys.stdout.write(f"{release.version}: {counts}\n")
        sys.stdout.flush()
    target.write_text(json.dumps(table, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
