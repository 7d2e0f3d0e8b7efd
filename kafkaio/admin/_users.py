"""The operations of `kafkaio.Admin` on users and their passwords for SCRAM (KIP-554).

Brokers never get a password. It is hashed here, in a thread, once for all attempts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

from kafkaio._arguments import (
    type_name,
)
from kafkaio._client.destinations import ANY, Controller
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._runtime.own_thread import start_thread
from kafkaio._runtime.scopes import FailingScope
from kafkaio.admin._asking import ask, ask_one, need_brokers, outcome, reason
from kafkaio.admin._checks import distinct, items_of, known_of
from kafkaio.admin._subject import Subject
from kafkaio.admin._types import (
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, RequestTimeout
from kafkaio.protocol import messages
from kafkaio.protocol._broker_errors import broker_error

#: A password to set, or to delete.
ScramAlteration: TypeAlias = ScramUpsertion | ScramDeletion

_SINCE = "2.7"
_NUMBERS: Final[Mapping[ScramMechanism, int]] = MappingProxyType(
    {ScramMechanism.SCRAM_SHA_256: 1, ScramMechanism.SCRAM_SHA_512: 2}
)
_MECHANISMS: Final = {number: mechanism for mechanism, number in _NUMBERS.items()}
#: Bytes of a generated salt.
_SALT: Final = 24
#: The most iterations that the protocol can carry.
_MOST_ITERATIONS: Final = 2**31 - 1


class Users(Subject):
    """The operations on users and their passwords."""

    async def describe_user_scram_credentials(
        self,
        users: Iterable[str] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[str, tuple[ScramCredential, ...]]:
        """Return for which mechanisms of SCRAM users have a password (KIP-554).

        It needs Kafka 2.7.

        Args:
            users: names of users; None for all that have a password.
            timeout: seconds.

        Returns:
            The credentials by user, in the order of ``users``, or sorted.

        Raises:
            AuthorizationError: the client may not describe the cluster.
            BrokerError: RESOURCE_NOT_FOUND, if a user has no password.
            ArgumentTypeError: the name of a user is not a str.
            ArgumentValueError: a name is empty, or occurs twice.
            UnsupportedVersion: the broker is too old.
            RequestTimeout: no broker answered in time. Kafka 4.3.1 never answers
                a client that asks for all users and may not describe the cluster.
            AdminErrors: several users failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        need_brokers(self._cluster, "describe users")
        if users is None:
            results = await self._all_users(deadline)
            wanted = sorted([*results.found, *results.failed])
            return outcome("describe users", wanted, results)
        wanted = check_users(users)

        def build(
            items: Sequence[str], terms: Terms
        ) -> messages.DescribeUserScramCredentialsRequest:
            del terms
            return messages.DescribeUserScramCredentialsRequest(
                users=[messages.UserName(name=item) for item in items]
            )

        def read(
            response: messages.DescribeUserScramCredentialsResponse,
            items: Sequence[str],
        ) -> Iterator[Answer[str, tuple[ScramCredential, ...]]]:
            code = response.error_code
            if code:
                message = reason(code, response.error_message)
                for item in items:
                    yield Answer(item, (), code, message)
                return
            for it in response.results:
                yield Answer(it.user, _credentials(it), it.error_code, it.error_message)

        operation: Operation[
            str,
            tuple[ScramCredential, ...],
            messages.DescribeUserScramCredentialsResponse,
        ] = Operation(
            what="describe user",
            request=messages.DescribeUserScramCredentialsRequest,
            destination=lambda _: ANY,
            build=build,
            read=read,
            is_exact=True,
        )
        results = await ask(self._cluster, operation, wanted, deadline, _SINCE)
        return outcome("describe users", wanted, results)

    async def alter_user_scram_credentials(
        self,
        alterations: Iterable[ScramUpsertion | ScramDeletion],
        *,
        timeout: float | None = None,
    ) -> dict[str, None]:
        """Set and delete the passwords of users for SCRAM (KIP-554).

        It needs Kafka 2.7. Passwords are hashed in a thread and never sent. Each user
        is changed for itself. Brokers take a new password a moment later; connections
        that are open stay open, although the password is gone. If the call is
        cancelled, passwords may still be changed.

        Args:
            alterations: what to set and what to delete.
            timeout: seconds.

        Returns:
            None by user, in the order of ``alterations``.

        Raises:
            AuthorizationError: the client may not alter the cluster.
            BrokerError: RESOURCE_NOT_FOUND, if the password does not exist;
                UNACCEPTABLE_CREDENTIAL, if there are too few iterations or too many.
            ArgumentTypeError: a part of an alteration has the wrong type.
            ArgumentValueError: a user and a mechanism occur twice, or a part is
                impossible.
            UnsupportedVersion: the broker is too old.
            RequestTimeout: no answer arrived in time; passwords may be changed.
            AdminErrors: several users failed.
            ClosedError: the admin client is closed, or not started.
        """
        deadline = self._deadline(timeout)
        wanted = check_alterations(alterations)
        need_brokers(self._cluster, "alter the passwords of users")
        deletions: dict[str, list[messages.ScramCredentialDeletion]] = defaultdict(list)
        upsertions = await self._hashed(wanted, deadline)
        for each in wanted:
            if isinstance(each, ScramDeletion):
                deletions[each.user].append(
                    messages.ScramCredentialDeletion(
                        name=each.user, mechanism=_NUMBERS[each.mechanism]
                    )
                )

        def build(
            items: Sequence[str], terms: Terms
        ) -> messages.AlterUserScramCredentialsRequest:
            del terms
            return messages.AlterUserScramCredentialsRequest(
                deletions=[it for user in items for it in deletions.get(user, ())],
                upsertions=[it for user in items for it in upsertions.get(user, ())],
            )

        operation: Operation[str, None, messages.AlterUserScramCredentialsResponse] = (
            Operation(
                what="alter the passwords of user",
                request=messages.AlterUserScramCredentialsRequest,
                destination=lambda _: Controller,
                build=build,
                read=lambda response, _: (
                    Answer(
                        it.user,
                        None,
                        it.error_code,
                        reason(it.error_code, it.error_message),
                    )
                    for it in response.results
                ),
                is_exact=True,
            )
        )
        users = list(dict.fromkeys(each.user for each in wanted))
        results = await ask(self._cluster, operation, users, deadline, _SINCE)
        return outcome("alter passwords", users, results)

    async def _all_users(
        self, deadline: float
    ) -> Results[str, tuple[ScramCredential, ...]]:
        """Describe all users that have a password."""
        answer = await ask_one(
            self._cluster,
            ("describe", "all users"),
            messages.DescribeUserScramCredentialsRequest,
            # None means the same. But for a client that may not describe the cluster
            # Kafka fails while it makes the refusal, and never answers.
            lambda _: messages.DescribeUserScramCredentialsRequest(users=[]),
            lambda it: (it.error_code, it.error_message),
            to=ANY,
            deadline=deadline,
            since=_SINCE,
        )
        results = Results[str, tuple[ScramCredential, ...]]()
        for it in sorted(answer.results, key=lambda each: each.user):
            if it.error_code:
                results.failed[it.user] = broker_error(
                    it.error_code, f"describe user {it.user}: {it.error_message}"
                )
            else:
                results.found[it.user] = _credentials(it)
        return results

    async def _hashed(
        self, alterations: Iterable[ScramAlteration], deadline: float
    ) -> Mapping[str, Sequence[messages.ScramCredentialUpsertion]]:
        found: dict[str, list[messages.ScramCredentialUpsertion]] = defaultdict(list)
        try:
            with FailingScope(deadline=deadline):
                for each in alterations:
                    if isinstance(each, ScramUpsertion):
                        # Thousands of iterations take milliseconds, in which the loop
                        # would stand still. hashlib releases the GIL meanwhile.
                        work = partial(_hash, each)
                        hashed = await start_thread(work, "kafkaio hashes a password")
                        found[each.user].append(hashed)
        except TimeoutError as error:
            raise RequestTimeout(
                "alter passwords: they were not hashed in time; nothing was sent"
            ) from error
        return found


def _hash(it: ScramUpsertion) -> messages.ScramCredentialUpsertion:
    import secrets

    from kafkaio._machines.sasl.scram import salted_password

    salt = secrets.token_bytes(_SALT) if it.salt is None else it.salt
    return messages.ScramCredentialUpsertion(
        name=it.user,
        mechanism=_NUMBERS[it.mechanism],
        iterations=it.iterations,
        salt=salt,
        salted_password=salted_password(it.mechanism, it.password, salt, it.iterations),
    )


def _credentials(
    result: messages.DescribeUserScramCredentialsResult,
) -> tuple[ScramCredential, ...]:
    return tuple(
        ScramCredential(
            _MECHANISMS.get(it.mechanism, ScramMechanism.UNKNOWN), it.iterations
        )
        for it in sorted(result.credential_infos, key=lambda each: each.mechanism)
    )


def check_users(users: Iterable[str]) -> list[str]:
    """Check names of users.

    Raises:
        ArgumentTypeError: one is not a str.
        ArgumentValueError: one is empty, or occurs twice.
    """
    found = items_of("users", users)
    for user in found:
        _check_user(user)
    return distinct("users", found)


def _check_user(user: object) -> None:
    if not isinstance(user, str):
        raise ArgumentTypeError(f"user must be str, not {type_name(user)}")
    if not user:
        raise ArgumentValueError("user must not be empty")


def check_alterations(
    alterations: Iterable[ScramAlteration],
) -> list[ScramAlteration]:
    """Check what is to be done with passwords.

    Raises:
        ArgumentTypeError: one is neither an upsertion nor a deletion, or a part of it
            has the wrong type.
        ArgumentValueError: a user and a mechanism occur twice, or a part is
            impossible.
    """
    checked = [_checked(each) for each in items_of("alterations", alterations)]
    distinct("alterations", ((each.user, str(each.mechanism)) for each in checked))
    return checked


def _checked(it: object) -> ScramAlteration:
    if not isinstance(it, ScramUpsertion | ScramDeletion):
        raise ArgumentTypeError(
            "alterations must be a collection of ScramUpsertion and ScramDeletion, not "
            f"of {type_name(it)}"
        )
    _check_user(it.user)
    mechanism = known_of("mechanism", ScramMechanism, it.mechanism)
    if isinstance(it, ScramDeletion):
        return ScramDeletion(it.user, mechanism)
    _check_secrets(it)
    return ScramUpsertion(it.user, mechanism, it.password, it.iterations, it.salt)


def _check_secrets(it: ScramUpsertion) -> None:
    # No message shows the value: it may be the password in the wrong place.
    if not isinstance(it.password, str):
        raise ArgumentTypeError(f"password must be str, not {type_name(it.password)}")
    if not it.password:
        raise ArgumentValueError("password must not be empty")
    if type(it.iterations) is not int:
        raise ArgumentTypeError(
            f"iterations must be int, not {type_name(it.iterations)}"
        )
    if not 1 <= it.iterations <= _MOST_ITERATIONS:
        raise ArgumentValueError(f"iterations must be between 1 and {_MOST_ITERATIONS}")
    if it.salt is not None and not isinstance(it.salt, bytes):
        raise ArgumentTypeError(f"salt must be bytes, not {type_name(it.salt)}")
    if it.salt == b"":
        raise ArgumentValueError("salt must not be empty")
