"""Writes micro-batches from ``foreachBatch``: for update mode, and for several sinks.

A Python data source cannot be the sink of a query in update mode. ``foreachBatch``
writes each micro-batch as a batch, in every output mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkaio._public import public
from kafkaio.errors import ConfigurationError
from kafkaio.spark._options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY_ID = "sql.streaming.queryId"


@public("kafkaio.spark")
def foreach_batch_writer(
    options: Mapping[str, str],
    *,
    select: Callable[[DataFrame], DataFrame] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``writeStream.foreachBatch``.

    For several sinks, call several such functions in one of your own, and persist the
    micro-batch before, so that all of them see the same rows.

    With ``exactlyOnce``, the batch's id is the version. The application is the query's
    id, or ``txnAppId``; several sinks of one query need a ``txnAppId`` each, and where
    Spark does not tell the query's id (Spark Connect), one sink does, too. Give a new
    ``txnAppId`` when the query gets a new checkpoint: its batches count from 0 again.

    Args:
        options: the options of the write.
        select: makes the rows to write from a micro-batch; the micro-batch itself by
            default.

    Raises:
        ConfigurationError: an option is unknown or impossible.
    """
    given = {name: str(value) for name, value in options.items()}
    # Checked once, before the query starts, and not with its first micro-batch.
    checked = WriteOptions.of(given, is_stream=True)

    def write(batch: DataFrame, batch_id: int) -> None:
        rows = batch if select is None else select(batch)
        writer = rows.write.format("kafkaio").mode("append").options(**given)
        if checked.exactly_once:
            app = checked.app or _query_id(batch)
            writer = writer.options(txnAppId=app, txnVersion=str(batch_id))
        writer.save()

    return write


def _query_id(batch: DataFrame) -> str:
    # A session of Spark Connect has no context, and no local properties.
    context = getattr(batch.sparkSession, "_sc", None)
    found = None if context is None else context.getLocalProperty(_QUERY_ID)
    if not found:
        raise ConfigurationError(
            "exactlyOnce in foreachBatch needs txnAppId here, a name for the query and "
            "its sink: this Spark does not tell the query's id"
        )
    return str(found)
