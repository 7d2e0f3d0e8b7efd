"""Options of the connection: command line, environment, files, profiles.

Each source overrides those below it:

1. ``-b`` of the command line, then ``-X key=value``, of which the last one counts;
2. ``--config FILE`` of the command line;
3. ``--profile NAME`` of the command line;
4. the environment: ``KAFKAIO_BOOTSTRAP_SERVERS`` and the others of `VARIABLES`;
5. the file that ``KAFKAIO_CONFIG`` names;
6. the profile that ``KAFKAIO_PROFILE`` names, else the ``default_profile`` of
   ``~/.config/kafkaio/config.toml``;
7. ``localhost:9092``, and ``http://localhost:8081`` for the schema registry.

So the environment never changes what the command line names. ``--registry`` of commands
that ask a schema registry overrides ``schema.registry.url`` of all sources. Names are
Java's or librdkafka's, with dots or with ``_``. Values may refer to secrets, as in
``${env:NAME}``; see `kafkaio.security._references`. ``?`` asks for a secret.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import click

from kafkaio._cli.shell.given import Given
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.source import text_of
from kafkaio._cli.text.values import Seconds
from kafkaio._config import (
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    ShareConsumerConfig,
)
from kafkaio._config.declaration import option_of
from kafkaio.security._references import has_reference, parse_properties, resolve

#: Variables of the environment with the options that they set.
VARIABLES: Final[Mapping[str, str]] = {
    "KAFKAIO_BOOTSTRAP_SERVERS": "bootstrap.servers",
    "KAFKAIO_SECURITY_PROTOCOL": "security.protocol",
    "KAFKAIO_SASL_MECHANISM": "sasl.mechanism",
    "KAFKAIO_SASL_USERNAME": "sasl.username",
    "KAFKAIO_SASL_PASSWORD": "sasl.password",
    "KAFKAIO_PROXY": "proxy",
    "KAFKAIO_REGISTRY_URL": "schema.registry.url",
    "KAFKAIO_REGISTRY_USER_INFO": "schema.registry.basic.auth.user.info",
    "KAFKAIO_REGISTRY_TOKEN": "schema.registry.bearer.auth.token",
}
_OF_REGISTRY: Final = "schema.registry."
#: Options of the schema registry begin with one of these; no client of the cluster has
#: such an option. The last two are how Confluent's console tools write them.
_OF_REGISTRIES: Final = (_OF_REGISTRY, "basic.auth.", "bearer.auth.")
#: Secret options of the schema registry, without the first of these.
_REGISTRY_SECRETS: Final = (
    *("basic.auth.user.info", "bearer.auth.token", "bearer.auth.client.secret"),
    *("ssl.keystore.password", "ssl.key.password", "ssl.truststore.password"),
    *("ssl.key.pem", "ssl.keystore.key"),
)
_SERVERS: Final = "bootstrap.servers"
_SERVER: Final = "localhost:9092"
_REGISTRY: Final = "schema.registry.url"
#: The port of Confluent's registry and of Karapace.
_REGISTRY_URL: Final = "http://localhost:8081"
#: Secret options that are URLs.
_URLS: Final = frozenset({"proxy", "schema.registry.url", "schema.registry.proxy"})
_JAAS: Final = "sasl.jaas.config"
_ASK: Final = "?"
_SECONDS: Final = 30.0
#: Seconds to find a broker. A wrong address should not take the whole --timeout.
_START_SECONDS: Final = 10.0
_CONFIGS: Final[tuple[type[ClientConfig], ...]] = (
    ClientConfig,
    ProducerConfig,
    ConsumerConfig,
    ShareConsumerConfig,
)


@dataclass(frozen=True)
class ConnectionOptions:
    """The options for clients of a command.

    Attributes:
        given: the options of the command line.
        environment: variables, by name.
        ask: asks a person for the value of an option; None without a terminal.
    """

    given: Given
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    ask: Callable[[str], str] | None = None

    @property
    def timeout(self) -> float:
        """Seconds for a whole call of the cluster."""
        if self.given.timeout is not None:
            return self.given.timeout
        text = self.environment.get("KAFKAIO_TIMEOUT", "")
        try:
            return float(Seconds()(text)) if text else _SECONDS
        except click.BadParameter as error:
            raise _wrong(f"KAFKAIO_TIMEOUT: {error.message}") from None

    @property
    def start_timeout(self) -> float:
        """Seconds for finding a broker."""
        return min(self.timeout, _START_SECONDS)

    def secrets_on_the_command_line(self) -> list[str]:
        """Return the secret options whose plain values the command line has.

        Other users see the arguments of a process, for example in ``ps``.
        """
        return [
            name
            for name, value in self.given.properties.items()
            if _dotted(name) in secret_names()
            and value != _ASK
            and not has_reference(value)
            # A URL is secret only if it has a password.
            and not (_dotted(name) in _URLS and "@" not in value)
        ]

    def properties(
        self,
        config: type[ClientConfig] = ClientConfig,
        defaults: Mapping[str, object] | None = None,
        forced: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        """Return the options for a client, by dotted names, references resolved.

        Options of other kinds of clients are left out: one profile serves all commands.

        Args:
            config: the kind of the client.
            defaults: options that the user's options override.
            forced: options that override the user's; None removes an option.

        Raises:
            CommandFailed: a file or a profile does not exist.
            ConfigurationError: a reference cannot be resolved.
        """
        found: dict[str, object] = {
            _SERVERS: _SERVER,
            "default.api.timeout.ms": round(self.timeout * 1000),
            # Kafka's default. With a longer --timeout a lost request is repeated.
            "request.timeout.ms": round(min(self.timeout, 30.0) * 1000),
            "log": self.given.verbose,
            # One for all commands, so that a quota can be set for them.
            "client.id": "kafkaio",
        }
        for name, value in (defaults or {}).items():
            found[_dotted(name)] = value
        for layer in self._layers():
            found.update((_dotted(name), value) for name, value in layer.items())
        for name, value in (forced or {}).items():
            found[_dotted(name)] = value
        # A name that no client has is kept: the client then reports the typing error.
        foreign = _names(*_CONFIGS) - _names(config)
        wanted = {
            name: value
            for name, value in found.items()
            if name not in foreign
            and not name.startswith(_OF_REGISTRIES)
            and value is not None
        }
        # References are resolved last, so a secret that is overridden is never read.
        return {name: self._plain(name, value) for name, value in wanted.items()}

    def registry_properties(self, url: str | None) -> dict[str, object]:
        """Return the options of the schema registry, by dotted names.

        Args:
            url: what ``--registry`` says; overrides all sources.

        Raises:
            CommandFailed: a file or a profile does not exist.
            ConfigurationError: a reference cannot be resolved.
        """
        found: dict[str, object] = {
            _REGISTRY: _REGISTRY_URL,
            f"{_OF_REGISTRY}request.timeout.ms": round(self.start_timeout * 1000),
        }
        for layer in self._layers():
            for name, value in layer.items():
                dotted = _dotted(name)
                if dotted.startswith(_OF_REGISTRIES):
                    found[_OF_REGISTRY + dotted.removeprefix(_OF_REGISTRY)] = value
        if url is not None:
            found[_REGISTRY] = url
        return {name: self._plain(name, value) for name, value in found.items()}

    def _layers(self) -> Iterator[Mapping[str, object]]:
        """Yield the sources, the weakest first; see the top of the module."""
        given, environment = self.given, self.environment
        # The numbers are those at the top of the module.
        if given.profile is None:  # 6
            yield self._profile(environment.get("KAFKAIO_PROFILE"))
        if given.config is None and environment.get("KAFKAIO_CONFIG"):  # 5
            yield _read(Path(environment["KAFKAIO_CONFIG"]))
        # 4; an empty variable is not set: scripts pass through what they do not have.
        yield {VARIABLES[n]: environment[n] for n in VARIABLES if environment.get(n)}
        if given.profile is not None:  # 3
            yield self._profile(given.profile)
        if given.config is not None:  # 2
            yield _read(_file_of(given.config))
        yield given.properties  # 1; -b overrides -X bootstrap.servers=...
        if given.bootstrap_server is not None:
            yield {_SERVERS: given.bootstrap_server}

    def _profile(self, name: str | None) -> Mapping[str, object]:
        # The file is optional unless a profile is named.
        path = config_file(self.environment)
        if name is None and not path.exists():
            return {}
        document = _toml(path)
        profiles = document.get("profiles")
        profiles = profiles if isinstance(profiles, dict) else {}
        if name is None:
            name = str(document.get("default_profile", "")) or None
        if name is None:
            return {}
        profile = profiles.get(name)
        if not isinstance(profile, dict):
            near = get_close_matches(name, profiles, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise _wrong(f"{path} has no profile {name!r}{hint}")
        return _flat(profile)

    def _plain(self, name: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value == _ASK and name in secret_names():
            if self.ask is None:
                raise _wrong(f"{name}: cannot ask for it, stdin is not a terminal")
            return self.ask(name)
        return resolve(name, value) if has_reference(value) else value


def config_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the file with the profiles, which may not exist."""
    home = environment.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "kafkaio/config.toml"


def secret_names() -> frozenset[str]:
    """Return the dotted names of options whose values are secret."""
    own = [f for config in _CONFIGS for f in fields(config) if option_of(f).is_secret]
    aliases = (alias for each in own for alias in option_of(each).aliases)
    return frozenset(
        {
            *(_JAAS, *_URLS, *_REGISTRY_SECRETS),
            *(f"{_OF_REGISTRY}{name}" for name in _REGISTRY_SECRETS),
            *(_dotted(each.name) for each in own),
            *aliases,
        }
    )


def _names(*configs: type[ClientConfig]) -> frozenset[str]:
    every = [each for config in configs for each in fields(config)]
    aliases = (alias for each in every for alias in option_of(each).aliases)
    return frozenset({*(_dotted(each.name) for each in every), *aliases})


def _dotted(name: str) -> str:
    return name.strip().replace("_", ".")


def _wrong(message: str) -> CommandFailed:
    return CommandFailed(message, Exit.USAGE)


def _file_of(text: str) -> Path:
    path = Path(text)
    if "=" in text and not path.exists():
        # Kafka's scripts take configs of topics by this option: `--config k=v`.
        raise _wrong(
            "--config reads a file; an option of the client is -X KEY=VALUE, and a "
            "config of a topic -c KEY=VALUE, as in -c retention.ms=3600000"
        )
    return path


def _read(path: Path) -> Mapping[str, object]:
    """Read options from a file of properties, or of TOML if its suffix is .toml."""
    if path.suffix == ".toml":
        return _flat(_toml(path))
    return parse_properties(text_of(path))


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise _wrong(f"{path}: {error}") from None


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return the values of nested tables by dotted names.

    TOML reads ``sasl.username = "u"`` as a table ``sasl``.
    """
    found: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
