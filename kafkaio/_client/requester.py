"""Sends one request to its destination, and repeats it while that helps."""

from __future__ import annotations

from functools import partial
from typing import assert_never

from kafkaio._client.destinations import (
    AnyBroker,
    Broker,
    ControllerType,
    Destination,
    GroupCoordinator,
    Leader,
    TransactionCoordinator,
)
from kafkaio._client.metadata import MetadataUpdater
from kafkaio._client.nodes import SILENCE
from kafkaio._client.retry import Attempts, RetryLater, RetryPolicy, hedged
from kafkaio._client.router import Router
from kafkaio._config import ClientConfig
from kafkaio._machines.reactions import reaction
from kafkaio._machines.routing import misrouted
from kafkaio._net.connection_class import ConnectionClass
from kafkaio.errors import KafkaError, NetworkError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._message import Request, ResponseT

_CONNECTION_CLASSES = {
    apis.FETCH: ConnectionClass.FETCH,
    apis.SHARE_FETCH: ConnectionClass.FETCH,
    apis.PRODUCE: ConnectionClass.PRODUCE,
    apis.JOIN_GROUP: ConnectionClass.COORDINATOR,
    apis.SYNC_GROUP: ConnectionClass.COORDINATOR,
}

#: Requests to any broker that change nothing, and so may be sent to two.
_READING = frozenset(
    {
        apis.METADATA,
        apis.DESCRIBE_ACLS,
        apis.DESCRIBE_CLIENT_QUOTAS,
        apis.DESCRIBE_CLUSTER,
        apis.DESCRIBE_CONFIGS,
        apis.DESCRIBE_DELEGATION_TOKEN,
        apis.DESCRIBE_QUORUM,
        apis.DESCRIBE_TOPIC_PARTITIONS,
        apis.DESCRIBE_USER_SCRAM_CREDENTIALS,
        apis.LIST_CONFIG_RESOURCES,
        apis.LIST_PARTITION_REASSIGNMENTS,
    }
)

#: Seconds that a coordinator may take beyond the group's rebalance timeout.
JOIN_MARGIN = 5.0


class Requester:
    """Routes a request, sends it, and repeats it after errors of routing.

    A request is repeated after an answer only if the answer says, for each item in it,
    that the broker is the wrong one: then nothing took effect (see
    `kafkaio._machines.routing.misrouted`). The answer of a broker that was named by its
    id is always returned. If any broker can answer, the request changes nothing, and
    one broker is silent for a second, another one is asked beside it.

    Args:
        config: the client's options.
        metadata: the view of the cluster.
        router: finds the broker of a destination.
        policy: the back-off, and the observer of retries.
    """

    def __init__(
        self,
        config: ClientConfig,
        metadata: MetadataUpdater,
        router: Router,
        policy: RetryPolicy,
    ) -> None:
        self._timeout = config.request_timeout_ms / 1000
        self._metadata = metadata
        self._router = router
        self._policy = policy

    async def request(
        self,
        request: Request[ResponseT],
        to: Destination,
        timeout: float,
    ) -> ResponseT:
        """Send ``request`` until it has an answer that is not about routing.

        Raises:
            RequestTimeout: the time is over; the cause is the last failure.
            KafkaError: a failure that is not retriable.
        """
        what = f"{request.NAME.removesuffix('Request')} to {_named(to)}"
        attempts = Attempts(what, self._policy, timeout)

        async def attempt() -> ResponseT:
            return await self._attempt(request, to, attempts)

        def explain() -> KafkaError | None:
            if isinstance(to, Leader):
                topic = to.partition.topic
                if self._metadata.view.partition_count(topic) is None:
                    return self._metadata.why_missing([topic])
            return None if attempts.last is not None else self._metadata.failure

        return await attempts.run(attempt, explain)

    async def _attempt(
        self, request: Request[ResponseT], to: Destination, attempts: Attempts
    ) -> ResponseT:
        attempts.stage = "it waits for a connection"
        attempts.held = self._router.why_unlocated
        node_id = await self._router.locate(to)
        ask = partial(self._ask, request, to, attempts)
        is_reading = to is AnyBroker.ANY and request.API_KEY in _READING
        if not is_reading or not self._router.has_choice:
            return await ask(node_id)

        async def ask_another() -> ResponseT:
            return await ask(await self._router.another(node_id))

        return await hedged(partial(ask, node_id), ask_another, SILENCE)

    async def _ask(
        self,
        request: Request[ResponseT],
        to: Destination,
        attempts: Attempts,
        node_id: int,
    ) -> ResponseT:
        connection = await self._router.connection(
            node_id,
            _CONNECTION_CLASSES.get(request.API_KEY, ConnectionClass.SHARED),
        )
        broker = connection.broker
        attempts.stage = f"it waits for the answer of {broker.host}:{broker.port}"
        attempts.held = connection.why_held
        if _is_oneway(request):
            connection.submit_oneway(request)
            # The broker sends no answer: success means that the request was sent.
            return request.response_type()()
        try:
            response = await connection.call(request, timeout=self._patience(request))
        except NetworkError:
            # The metadata that named this broker may be out of date.
            self._router.unreachable(node_id)
            raise
        # A request to a named broker always goes there, so its answer is returned even
        # if it says that another broker would be right.
        code = None if isinstance(to, Broker) else misrouted(response)
        if code is None:
            return response
        what = f"{attempts.what} ({broker.host}:{broker.port})"
        error = broker_error(code, what, api=request.API_KEY)
        wanted = reaction(request.API_KEY, code)
        self._router.react(to, node_id, wanted)
        if wanted.refresh_metadata:
            raise RetryLater(error, self._router.refreshed)
        raise error

    def _patience(self, request: Request[ResponseT]) -> float:
        """Seconds to wait for the answer."""
        if request.API_KEY == apis.JOIN_GROUP:
            # A caller that has such a request has loaded the module already.
            from kafkaio.protocol.messages.join_group import JoinGroupRequest

            assert isinstance(request, JoinGroupRequest)
            # The coordinator answers when all members have joined.
            rebalance = max(request.rebalance_timeout_ms, request.session_timeout_ms)
            return max(self._timeout, rebalance / 1000 + JOIN_MARGIN)
        return self._timeout


def _is_oneway(request: Request[ResponseT]) -> bool:
    # By attribute: the module of ProduceRequest is loaded by producers alone.
    return request.API_KEY == apis.PRODUCE and getattr(request, "acks", -1) == 0


def _named(to: Destination) -> str:
    match to:
        case AnyBroker.ANY:
            return "any broker"
        case Broker(node_id=node_id):
            return f"broker {node_id}"
        case ControllerType.CONTROLLER:
            return "the controller"
        case Leader(partition=tp):
            return f"the leader of {tp.topic}-{tp.partition}"
        case GroupCoordinator(group_id=key):
            return f"the coordinator of group {key!r}"
        case TransactionCoordinator(transactional_id=key):
            return f"the coordinator of transactional id {key!r}"
        case never:
            assert_never(never)
