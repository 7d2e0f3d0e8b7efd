"""The session of a running command: clients, output, questions, failures."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from kafkaio._cli.shell.connection import ConnectionOptions
from kafkaio._cli.shell.given import Given
from kafkaio._cli.text.document import Document
from kafkaio._cli.text.exits import (
    CommandFailed,
    Exit,
    code_of_items,
    lines_of,
    visible,
)
from kafkaio._cli.text.output import Printer, Row, Table, error_row
from kafkaio._config import (
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    ShareConsumerConfig,
)
from kafkaio.errors import KafkaError

if TYPE_CHECKING:
    from kafkaio._client import Client
    from kafkaio._consumer import Consumer
    from kafkaio._producer import Producer
    from kafkaio._share import ShareConsumer
    from kafkaio.admin import Admin
    from kafkaio.registry import Registry
    from kafkaio.types import TopicPartition

#: Seconds to wait for connections to close. Nothing is left to send by then.
_CLOSE_SECONDS = 0.5
#: Those for a share consumer, which gives back what it has not acknowledged: a worker
#: that waits for it would else wait until its lock has run out.
_RELEASE_SECONDS = 2.0


class _ClientPort(Protocol):
    """The life of `Admin`, `Client`, `Producer` and `Consumer`."""

    async def start(self, timeout: float | None = None) -> None:
        """Connect."""

    async def close(self, timeout: float | None = None) -> None:
        """Disconnect."""


S = TypeVar("S", bound=_ClientPort)
K = TypeVar("K")
V = TypeVar("V")


class CommandSession:
    """One run of a command.

    Args:
        given: the options that all commands have.

    Attributes:
        given: as above.
        connection: the options for clients.
        out: prints results to stdout.
    """

    def __init__(self, given: Given) -> None:
        self.given = given
        ask = ask_secret if sys.stdin.isatty() else None
        self.connection: ConnectionOptions = ConnectionOptions(given, ask=ask)
        self.out: Printer = Printer(
            sys.stdout, given.format, is_terminal=sys.stdout.isatty()
        )
        # Kept until the end: the document lists failures, and stderr shows them after
        # the result. With the number of successes they decide the exit code.
        self._failures: list[KafkaError] = []
        self._succeeded = 0
        # The exit code of a command without failures.
        self._code = Exit.OK
        self._is_warned = False

    # ---- clients -------------------------------------------------------------------

    def admin(self) -> AbstractAsyncContextManager[Admin]:
        """Return a started `kafkaio.Admin`, for ``async with``."""
        from kafkaio.admin import Admin

        return self.started(Admin.from_properties(self.properties()))

    def client(self) -> AbstractAsyncContextManager[Client]:
        """Return a started `kafkaio.Client`, for ``async with``."""
        from kafkaio._client import Client

        return self.started(Client.from_properties(self.properties()))

    def producer(
        self,
        defaults: Mapping[str, object] | None = None,
        *,
        forced: Mapping[str, object] | None = None,
    ) -> AbstractAsyncContextManager[Producer]:
        """Return a started `kafkaio.Producer`, for ``async with``.

        Args:
            defaults: options that the user's options override.
            forced: options that override the user's.
        """
        from kafkaio._producer import Producer

        # max.block.ms also limits the wait for the metadata of an unknown topic.
        limit = round(self.connection.timeout * 1000)
        preferred = {"max_block_ms": limit, **(defaults or {})}
        options = self.properties(ProducerConfig, preferred, forced)
        return self.started(Producer.from_properties(options))

    def consumer(
        self,
        defaults: Mapping[str, object] | None = None,
        *,
        topics: Sequence[str] | None = None,
        assign: Iterable[TopicPartition] | None = None,
        forced: Mapping[str, object] | None = None,
    ) -> AbstractAsyncContextManager[Consumer]:
        """Return a started `kafkaio.Consumer`, for ``async with``.

        Args:
            defaults: options that the user's options override.
            topics: topics to subscribe to.
            assign: partitions to assign, instead.
            forced: options that override the user's.
        """
        from kafkaio._consumer import Consumer

        options = self.properties(ConsumerConfig, defaults, forced)
        made = Consumer.from_properties(options, topics=topics, assign=assign)
        return self.started(made)

    def share_consumer(
        self, forced: Mapping[str, object], topics: Sequence[str]
    ) -> AbstractAsyncContextManager[ShareConsumer]:
        """Return a started `kafkaio.ShareConsumer`, for ``async with``.

        Args:
            forced: options that override the user's.
            topics: topics to subscribe to.
        """
        from kafkaio._share import ShareConsumer

        options = self.properties(ShareConsumerConfig, forced=forced)
        made = ShareConsumer.from_properties(options, topics=topics)
        return self.started(made, _RELEASE_SECONDS)

    def properties(
        self,
        config: type[ClientConfig] = ClientConfig,
        defaults: Mapping[str, object] | None = None,
        forced: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        """Return the options of a client; see `ConnectionOptions.properties`."""
        return self.connection.properties(config, defaults, forced)

    def registry(self, url: str | None) -> Registry:
        """Return the schema registry, for ``async with``.

        Args:
            url: what ``--registry`` says; None for that of the other sources.

        Raises:
            CommandFailed: the extra is not installed.
            ConfigurationError: an option of the registry is wrong.
        """
        from kafkaio.registry import Registry

        self._warn_of_secrets()
        try:
            return Registry.from_properties(self.connection.registry_properties(url))
        except ImportError:
            needed = "a schema registry needs more packages: "
            install = "pip install 'kafkaio[registry]'"
            raise CommandFailed(needed + install, Exit.USAGE) from None

    def _warn_of_secrets(self) -> None:
        if self._is_warned:
            return
        self._is_warned = True
        for name in self.connection.secrets_on_the_command_line():
            self.note(
                f"warning: other users of this machine can read {name} on the command "
                "line; use ${env:NAME}, ${file:PATH:KEY} or ?"
            )

    @asynccontextmanager
    async def started(
        self, unstarted: S, close_seconds: float = _CLOSE_SECONDS
    ) -> AsyncIterator[S]:
        """Start a client, and close it at the end of the block.

        Args:
            unstarted: the client.
            close_seconds: how long closing may take.
        """
        self._warn_of_secrets()
        # Outside of the block: a client whose start fails has closed itself.
        await unstarted.start(self.connection.start_timeout)
        try:
            yield unstarted
        finally:
            await unstarted.close(close_seconds)

    # ---- results -------------------------------------------------------------------

    def show(self, document: Document, /, *tables: Table, **values: object) -> None:
        """Print a result; see `Printer.show`.

        Failures noted by `good` are listed in ``errors`` of the document. If there are
        failures and no table has a row, no table is printed: its heads alone would look
        like a result.

        Args:
            document: the declaration of the output.
            tables: tables for people, if not the table of the document.
            values: the values of the document's keys.
        """
        shown = tables or (document.table(values),)
        if self._failures and not any(table.rows for table in shown):
            shown = ()
        made = document.made(self._errors(), values)
        self.out.show(made, *shown, is_row=document.is_row)

    def _errors(self) -> list[dict[str, object]]:
        return [error_row(error, self.given.names) for error in self._failures]

    def emit(self, row: Row, columns: Sequence[str]) -> None:
        """Print one row of a stream at once; see `Printer.emit`."""
        self.out.emit(row, columns)

    def good(
        self, results: Mapping[K, V | KafkaError], *, is_lookup: bool = False
    ) -> dict[K, V]:
        """Return the results of items that succeeded, and note the failures.

        The failures are printed to stderr when the command ends. The exit code is 3 if
        other items succeeded, else 1.

        Args:
            results: the result or the error of each item.
            is_lookup: whether the command needs the results only to go on. Then they do
                not count as successes.
        """
        found: dict[K, V] = {}
        for item, value in results.items():
            if isinstance(value, KafkaError):
                value.item = item if value.item is None else value.item
                self._failures.append(value)
            else:
                found[item] = value
        if not is_lookup:
            self._succeeded += len(found)
        return found

    def exit_with(self, code: Exit) -> None:
        """Set the exit code of a command without failed items."""
        self._code = code

    def finish(self) -> Exit:
        """Print the failures that were noted; return the exit code."""
        for error in self._failures:
            for line in lines_of(error, self.given.names):
                self.note(line)
        code = code_of_items(self._failures, succeeded=self._succeeded > 0)
        return code or self._code

    # ---- questions -----------------------------------------------------------------

    def note(self, text: str) -> None:
        """Write a line to stderr."""
        click.echo(f"{self.given.command}: {visible(text)}", err=True)

    def confirm(self, effects: Sequence[str], *, yes: bool) -> None:
        """Show the effects of a command, and ask whether to go on.

        Args:
            effects: the effects, a line each.
            yes: whether ``--yes`` was given: then nothing is shown or asked.

        Raises:
            CommandFailed: the answer is no (exit code 1), or nobody can answer (exit
                code 2).
        """
        if yes:
            return
        for line in effects:
            click.echo(visible(line), err=True)
        # The question goes to stderr; stdout may be redirected.
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise CommandFailed("nothing was done: confirm it with --yes", Exit.USAGE)
        with _interruptible():
            agreed = click.confirm("Go on?", err=True)
        if not agreed:
            raise CommandFailed("nothing was done")


def ask_secret(name: str, *, twice: bool = False) -> str:
    """Ask at the terminal for a secret, without showing it.

    Args:
        name: the name of the secret.
        twice: whether to ask for it again, for confirmation.
    """
    with _interruptible():
        answer: str = click.prompt(
            name, hide_input=True, confirmation_prompt=twice, err=True
        )
    return answer


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl+C interrupt a prompt.

    While an event loop runs, asyncio's handler for SIGINT cancels the main task. That
    does not interrupt a blocking read, so the prompt would go on.
    """
    # Only the main thread can set a handler.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
