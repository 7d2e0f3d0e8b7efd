"""The names of tasks, and of their markers in Kafka."""

from __future__ import annotations

from typing import Final

from kafkaio._dataclass import dataclass

#: Topics cannot have these characters in their names, so the last one divides.
_INTO: Final = " > "


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskName:
    """Which rows: those of one task in one version of an application's output.

    Attributes:
        app: who writes: ``txnAppId``, or the id of the streaming query.
        version: which of its batches: ``txnVersion``, or the number of the micro-batch.
        task: number of the task in the batch.
        prefix: the first part of all names, for the rights of the principal.
    """

    app: str
    version: int
    task: int
    prefix: str = "kafkaio"

    def __str__(self) -> str:
        return f"task {self.task} of batch {self.version} of {self.app!r}"

    @property
    def transactional_id(self) -> str:
        """The transactional id, and the group of the marker where groups keep it."""
        return transactional_id(self.prefix, self.app, self.task)

    @property
    def scope(self) -> str:
        """The common beginning of the names of all tasks of the application."""
        return marker_scope(self.prefix, self.app)


def marker_scope(prefix: str, app: str) -> str:
    """Return the common beginning of the names of all tasks of an application."""
    return f"{prefix}-{app}"


def output_scope(scope: str, output: str | None) -> str:
    """Return the scope of an application's output to one topic.

    Sinks of one query share its id, unless they have names, and write to different
    topics: the markers of one mean nothing for the other.

    Args:
        scope: the scope of the application.
        output: the topic that is written to; None if the rows name their topics.
    """
    return f"{scope}{_INTO}{output or ''}"


def parted(scope: str) -> tuple[str, str]:
    """Divide the scope of an output: into that of the application, and the topic."""
    application, _, output = scope.rpartition(_INTO)
    return application, output


def transactional_id(prefix: str, app: str, task: int | str) -> str:
    """Return the transactional id of a task, which is also its marker's group."""
    return f"{marker_scope(prefix, app)}-{task}"
