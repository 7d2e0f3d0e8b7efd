"""What programs implement for a consumer: listeners, and providers of tokens."""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Mapping

from kafkaio import TopicPartition
from kafkaio._public import public

__all__ = [
    "AbstractTokenProvider",
    "ConsumerRebalanceListener",
]


@public("kafkaio.aiokafka")
class ConsumerRebalanceListener(abc.ABC):
    """Is called when the partitions of a consumer change; given to ``subscribe``.

    Both methods may be functions or coroutine functions. The consumer waits for them
    before it takes part in the rebalance, or reads what was assigned. What they raise
    is logged, and the rebalance goes on.
    """

    @abc.abstractmethod
    def on_partitions_revoked(
        self, revoked: set[TopicPartition]
    ) -> Awaitable[None] | None:
        """Partitions are about to be given up.

        No record of them is handed out from here on. A program that commits by itself
        commits here what it has finished. It is not called by ``stop()``.

        Args:
            revoked: the partitions that the consumer had.
        """

    @abc.abstractmethod
    def on_partitions_assigned(
        self, assigned: set[TopicPartition]
    ) -> Awaitable[None] | None:
        """Partitions were assigned, and nothing of them was read yet.

        Args:
            assigned: the partitions that the consumer has now.
        """


class AbstractTokenProvider(abc.ABC):
    """Returns the tokens with which a client logs in (SASL/OAUTHBEARER)."""

    @abc.abstractmethod
    async def token(self) -> str:
        """Return a token that is valid now.

        It is called at the first login, and again before the token ends. The end is
        read from the token itself, if it is a JSON Web Token (RFC 7519) with ``exp``;
        other tokens are asked for every minute or so. A provider therefore keeps its
        token while it is valid.
        """

    def extensions(self) -> Mapping[str, str]:
        """Return the SASL extensions to send along (RFC 7628); none by default."""
        return {}
