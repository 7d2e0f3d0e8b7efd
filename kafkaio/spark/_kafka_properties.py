"""The options of Kafka's own client, as Spark's users give them: ``kafka.*``.

The driver checks them, and each process that connects resolves their references to
secrets (`kafkaio.security._references`).

State: none; everything here is immutable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Final, TypeVar

from kafkaio._config import ClientConfig
from kafkaio._config.declaration import option_of
from kafkaio._config.jaas import LoginModule, parse_jaas
from kafkaio.errors import ConfigurationError
from kafkaio.security._references import has_reference, is_reference, resolve

C = TypeVar("C", bound=ClientConfig)

_JAAS: Final = "sasl.jaas.config"
_PASSWORD: Final = {"username": "x", "password": "x"}
#: For each mechanism, a login module for the checks in the driver, where a reference
#: names the real one: its content may exist on the executors only.
_STAND_INS: Final = {
    "PLAIN": LoginModule("PlainLoginModule", _PASSWORD),
    "SCRAM-SHA-256": LoginModule("ScramLoginModule", _PASSWORD),
    "SCRAM-SHA-512": LoginModule("ScramLoginModule", _PASSWORD),
    "OAUTHBEARER": LoginModule(
        "OAuthBearerLoginModule", {"unsecuredLoginStringClaim_sub": "x"}
    ),
    "AWS_MSK_IAM": LoginModule("IAMLoginModule", {}),
    "GSSAPI": LoginModule("Krb5LoginModule", {"useTicketCache": "true"}),
}


class KafkaProperties:
    """The ``kafka.*`` options as given, without the prefix; values are never shown.

    Equal and hashable by names and values. Can be pickled: references in the values
    travel as references.
    """

    __slots__ = ("_given",)

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = tuple(sorted(given.items()))

    def __repr__(self) -> str:
        return f"<kafka.*: {', '.join(name for name, _ in self._given)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KafkaProperties) and self._given == other._given

    def __hash__(self) -> int:
        return hash(self._given)

    def __reduce__(self) -> tuple[object, ...]:
        return KafkaProperties, (dict(self._given),)

    def get(self, name: str) -> str | None:
        """Return the value of an option as it was given, references unresolved."""
        return dict(self._given).get(name)

    def check(self, config: type[ClientConfig], defaults: Mapping[str, str]) -> None:
        """Check names and values; values with references are not resolved.

        Raises:
            ConfigurationError: a name is unknown or a value is impossible.
        """
        values: dict[str, object] = {**defaults}
        mechanism = self.get("sasl.mechanism") or self.get("sasl.mechanisms")
        for name, value in self._given:
            if name != _JAAS:
                has = has_reference(value)
                values[name] = _stand_in(config, name) if has else value
            elif not is_reference(value):
                values[name] = _module(value, lambda text: text)
            elif mechanism in _STAND_INS:
                values[name] = _STAND_INS[mechanism]
        if "bootstrap.servers" not in values:
            raise ConfigurationError(
                "kafka.bootstrap.servers is missing: give the addresses of brokers, "
                "such as .option('kafka.bootstrap.servers', 'host:9092')"
            )
        _configured(config, values)

    def resolved(self, config: type[C], defaults: Mapping[str, str]) -> C:
        """Make a configuration, with references resolved in this process.

        Args:
            config: the class of the configuration.
            defaults: values by Kafka's names, for those that were not given.

        Raises:
            ConfigurationError: a reference cannot be resolved, or its value is
                impossible; the message does not have the value.
        """
        values: dict[str, object] = {
            n: _resolved(f"kafka.{n}", v) for n, v in self._given if n != _JAAS
        }
        jaas = self.get(_JAAS)
        if jaas is not None:
            values[_JAAS] = _module(
                jaas, lambda text: _resolved(f"kafka.{_JAAS}", text)
            )
        by_reference = [n for n, v in self._given if has_reference(v)]
        try:
            return _configured(config, {**defaults, **values})
        except ConfigurationError:
            if not by_reference:
                raise
        # Outside of the handler: that error may quote the secret, so it must be neither
        # the cause nor the context of this one.
        names = ", ".join(f"kafka.{name}" for name in by_reference)
        raise ConfigurationError(
            f"a value that a reference stands for is impossible: one of {names}"
        ) from None


def _resolved(name: str, value: str) -> str:
    """Return a value with its references resolved; an error says in which process."""
    try:
        return resolve(name, value)
    except ConfigurationError as error:
        host, process = os.uname().nodename, os.getpid()
        raise ConfigurationError(
            f"{error} (in process {process} on host {host}); it must exist on the "
            "driver and on every executor"
        ) from None


def _module(text: str, resolved: Callable[[str], str]) -> LoginModule | str:
    """Read ``sasl.jaas.config``, and resolve the references in its values.

    The text is parsed before its references are resolved, so that a password may have a
    quote or a semicolon. A text that is one reference is resolved before it is parsed.

    Args:
        text: the text.
        resolved: resolves the references of a value.
    """
    if is_reference(text):
        return resolved(text)
    try:
        module = parse_jaas(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"option kafka.*: {error}") from None
    values = {name: resolved(value) for name, value in module.options.items()}
    return LoginModule(module.name, values)


def _stand_in(config: type[ClientConfig], name: str) -> object:
    """Return a value that passes the checks of an option; its name if there is none."""
    if name == "bootstrap.servers":
        return "localhost"
    for declared in fields(config):
        dotted = declared.name.replace("_", ".")
        if name == dotted or name in option_of(declared).aliases:
            # Without a default, any text passes the checks; else the default does.
            is_text = declared.default is None and not option_of(declared).choices
            return name if is_text else declared.default
    return name


def _configured(config: type[C], values: Mapping[str, object]) -> C:
    try:
        return config.from_properties(values)
    except ConfigurationError as error:
        raise ConfigurationError(f"option kafka.*: {error}") from None
