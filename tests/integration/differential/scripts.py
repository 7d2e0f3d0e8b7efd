"""Every script by its name, and how one is run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Final

from tests.integration.differential.administration import administration
from tests.integration.differential.classic_groups import classic_groups
from tests.integration.differential.cluster_changes import cluster_changes
from tests.integration.differential.consumer_groups import consumer_groups
from tests.integration.differential.logs import logs
from tests.integration.differential.migrations import migrations
from tests.integration.differential.offsets import get_ready, simple_groups
from tests.integration.differential.pair import Pair
from tests.integration.differential.patterns import patterns
from tests.integration.differential.share_groups import share_groups, share_probes
from tests.integration.differential.topics import topics

Script = Callable[[Pair, Random, str], Awaitable[None]]

SCRIPTS: Final[Mapping[str, Script]] = {
    # First, while there are few topics: many a pattern matches them all.
    "patterns": patterns,
    "topics": topics,
    "administration": administration,
    "cluster_changes": cluster_changes,
    "logs": logs,
    "simple_groups": simple_groups,
    "classic_groups": classic_groups,
    "consumer_groups": consumer_groups,
    "migrations": migrations,
    "share_groups": share_groups,
    "share_probes": share_probes,
}


async def run(name: str, pair: Pair, seed: int, unique: str) -> None:
    """Run one script with dice of that seed; ``unique`` begins the names it makes."""
    await get_ready(pair)
    await SCRIPTS[name](pair, Random(seed), unique)
