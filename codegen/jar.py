"""Kafka's clients jar: the one source of schema facts, fetched by coordinates."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from jgo.maven import MavenContext

__all__ = ["JACKSON_VERSION", "KAFKA_VERSION", "fetch", "kafka_clients", "schemas"]

#: The release whose schemas are generated. Raising it is the whole upgrade.
KAFKA_VERSION = "4.4.0"
#: Jars that the JSON converters of the clients jar need at run time (tests only).
JACKSON_VERSION = "2.19.0"

_SCHEMA = re.compile(r"common/message/\w+\.json")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def fetch(group: str, artifact: str, version: str) -> Path:
    """Return the path of a jar in the local Maven cache, downloading it if absent."""
    project = MavenContext().project(group, artifact)
    return Path(project.at_version(version).artifact().resolve())


def kafka_clients() -> Path:
    """Return the path of the pinned clients jar."""
    return fetch("org.apache.kafka", "kafka-clients", KAFKA_VERSION)


def schemas(jar: Path) -> list[dict[str, object]]:
    """Return every message schema in ``jar``, ordered by name."""
    with zipfile.ZipFile(jar) as archive:
        names = sorted(n for n in archive.namelist() if _SCHEMA.fullmatch(n))
        texts = [archive.read(name).decode() for name in names]
    found: list[dict[str, object]] = [json.loads(_COMMENT.sub("", t)) for t in texts]
    return sorted(found, key=lambda schema: str(schema["name"]))
