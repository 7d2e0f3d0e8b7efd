"""Faults of a registry on demand: rules that say which requests fail, and how."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from kafkaio._public import public

_METHODS: Final = frozenset(("GET", "POST", "PUT", "DELETE", "*"))
#: When a connection is closed: before the request is served, or after.
Disconnect: TypeAlias = Literal["before", "after"]


def matcher(request: str) -> Callable[[str, str], bool]:
    """Return a function that says whether a method and a path are meant.

    Args:
        request: such as ``GET /schemas/ids/*``; ``*`` stands for any text, slashes
            included, and in the place of the method for each of them.

    Raises:
        ValueError: it is not a method and a path.
    """
    method, _, path = request.partition(" ")
    if method not in _METHODS or not path.startswith(("/", "*")):
        raise ValueError(
            f"{request!r}: must be a method and a path, such as 'GET /schemas/ids/*'"
        )
    return lambda asked, where: method in {"*", asked} and fnmatchcase(where, path)


@public("kafkaio.testing")
@dataclass(slots=True, eq=False)
class RegistryRule:
    """Requests, and how they fail.

    Attributes:
        request: method and path of the requests.
        status: the status of the answer; None to serve the request.
        code: the ``error_code`` of the answer; None for the status.
        message: the ``message`` of the answer.
        retry_after: seconds for the header ``Retry-After``; None for none.
        body: the whole body of the answer; None for the usual one.
        schema_id: the answer is about this schema, whatever was asked; None for none.
        delay: seconds until the request is served.
        hang: whether it is served only when the rule is removed.
        disconnect: whether and when the connection is closed; None for not.
        times: how often it happens at most; None for no limit.
        rate: the probability that it happens to a request, 0 to 1.
        seed: seed of the random numbers for ``rate``.
        count: how often it has happened.
    """

    request: str
    status: int | None = None
    code: int | None = None
    message: str = ""
    retry_after: float | None = None
    body: bytes | None = None
    schema_id: int | None = None
    delay: float = 0.0
    hang: bool = False
    disconnect: Disconnect | None = None
    times: int | None = None
    rate: float = 1.0
    seed: int = 0
    count: int = 0
    _matches: Callable[[str, str], bool] = field(init=False, repr=False)
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._matches = matcher(self.request)
        self._random = random.Random(self.seed)

    def applies(self, method: str, path: str) -> bool:
        """Decide whether it happens to a request; it counts if so."""
        if self.times is not None and self.count >= self.times:
            return False
        if not self._matches(method, path):
            return False
        if self.rate < 1 and self._random.random() >= self.rate:
            return False
        self.count += 1
        return True


@public("kafkaio.testing")
class RegistryFaults:
    """The rules of one registry. They are tried in order, and the first one applies."""

    def __init__(self) -> None:
        self._rules: list[RegistryRule] = []
        self._waiting: list[tuple[RegistryRule, Callable[[], None]]] = []

    def on(  # noqa: PLR0913 - one for each way to fail
        self,
        request: str,
        *,
        status: int | None = None,
        code: int | None = None,
        message: str = "",
        retry_after: float | None = None,
        body: bytes | None = None,
        schema_id: int | None = None,
        delay: float = 0.0,
        hang: bool = False,
        disconnect: Disconnect | None = None,
        times: int | None = None,
        rate: float = 1.0,
        seed: int = 0,
    ) -> RegistryRule:
        """Make requests fail from now on.

        ::

            registry.faults.on("GET /schemas/ids/*", status=500, times=2)
            hanging = registry.faults.on("GET /schemas/ids/7", hang=True)

        Args:
            request: method and path, such as ``GET /schemas/ids/*``. ``*`` stands for
                any text, slashes included, and in the place of the method for each.
            status: answer with this status; the request has no effect.
            code: with this ``error_code``; None for the status.
            message: with this ``message``.
            retry_after: with a header ``Retry-After`` of so many seconds.
            body: with these bytes in the place of the body. Without ``status`` the
                request is served all the same.
            schema_id: answer with this id, or with the schema of this id, whatever was
                asked: the registry lies.
            delay: serve the request so many seconds later.
            hang: serve the request only when the rule is removed.
            disconnect: close the connection ``"before"`` the request is served, so
                that it has no effect, or ``"after"`` it, in place of the answer.
            times: how often at most; None for no limit.
            rate: the probability that it happens to a request, 0 to 1.
            seed: seed of the random numbers for ``rate``, so that a run can be
                repeated.

        Returns:
            The rule; its ``count`` says how often it has happened.

        Raises:
            ValueError: ``request`` is not a method and a path, or nothing is to
                happen.
        """
        rule = RegistryRule(
            request=request,
            status=status,
            code=code,
            message=message,
            retry_after=retry_after,
            body=body,
            schema_id=schema_id,
            delay=delay,
            hang=hang,
            disconnect=disconnect,
            times=times,
            rate=rate,
            seed=seed,
        )
        if not _does_something(rule):
            raise ValueError(f"{request!r}: say how these requests fail")
        self._rules.append(rule)
        return rule

    def remove(self, rule: RegistryRule) -> None:
        """Remove a rule, and serve what hangs by it. Nothing happens if it is gone."""
        if rule in self._rules:
            self._rules.remove(rule)
        released = [serve for held, serve in self._waiting if held is rule]
        self._waiting = [each for each in self._waiting if each[0] is not rule]
        for serve in released:
            serve()

    def clear(self) -> None:
        """Remove every rule, and serve what hangs."""
        for rule in list(self._rules):
            self.remove(rule)

    def find(self, method: str, path: str) -> RegistryRule | None:
        """Return the rule that happens to a request, and count it."""
        for rule in self._rules:
            if rule.applies(method, path):
                return rule
        return None

    def hold(self, rule: RegistryRule, serve: Callable[[], None]) -> None:
        """Keep a request until its rule is removed."""
        self._waiting.append((rule, serve))

    def forget_held(self) -> None:
        """Drop the requests that hang: their connections are closed."""
        self._waiting.clear()


def _does_something(rule: RegistryRule) -> bool:
    return (
        rule.hang
        or rule.delay > 0
        or any(
            each is not None
            for each in (rule.status, rule.body, rule.schema_id, rule.disconnect)
        )
    )
