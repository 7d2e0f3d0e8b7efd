"""The options that all commands have, as they were given.

The module is apart from the session that is made of them, so a help loads no client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Given:
    """The options of the command line that all commands have.

    Attributes:
        bootstrap_server: ``-b``.
        properties: ``-X``, by name.
        config: ``--config``.
        profile: ``--profile``.
        timeout: ``--timeout`` in seconds.
        format: ``--json``, ``--jsonl``, or neither.
        verbose: ``-v``.
        command: the name of the command that runs, such as ``kafkaio topics list``.
        names: the words for its parameters in messages, see `kafkaio._cli.text.terms`.
    """

    # None and empty values mean that the option was not given: another source of
    # `ConnectionOptions` decides.
    bootstrap_server: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    config: str | None = None
    profile: str | None = None
    timeout: float | None = None
    format: str = ""
    verbose: bool = False
    command: str = "kafkaio"
    names: Mapping[str, str] = field(default_factory=dict)
