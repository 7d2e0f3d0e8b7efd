"""The data source that Spark knows as the format ``kafkaio``.

Spark imports this module, through ``pyspark_kafkaio``, whenever it looks for a format
of any name. So it loads next to nothing of kafkaio before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from kafkaio.spark.errors import plainly

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kafkaio.spark.reader import KafkaReader
    from kafkaio.spark.stream import KafkaStreamReader
    from kafkaio.spark.writer import KafkaStreamWriter, KafkaWriter

__all__ = ["KafkaSource"]


class KafkaSource(DataSource):  # type: ignore[misc]  # pyspark is not followed
    """Reads and writes Kafka topics, as ``format("kafkaio")``.

    Spark makes one in the driver for each read or write and pickles it to processes of
    its own. It holds the options as they were given, and connects to nothing.
    """

    def __reduce__(self) -> tuple[object, ...]:
        from kafkaio.spark.shipping import shipped

        return shipped(self)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "kafkaio"

    @plainly
    def schema(self) -> str:
        """Return the columns of a read without a schema of its own."""
        _prepare()
        from kafkaio.spark.options import includes_headers
        from kafkaio.spark.schema import default_schema

        return default_schema(includes_headers=includes_headers(self.options))

    @plainly
    def reader(self, schema: StructType) -> KafkaReader:
        """Return the reader of a batch.

        Raises:
            ConfigurationError: an option or a column is not possible.
        """
        _prepare()
        from kafkaio.spark.options import ReadOptions
        from kafkaio.spark.reader import KafkaReader
        from kafkaio.spark.schema import projection

        options = ReadOptions.of(self.options, is_stream=False)
        return KafkaReader(options, projection(schema))

    @plainly
    def streamReader(self, schema: StructType) -> KafkaStreamReader:
        """Return the reader of a stream.

        Raises:
            ConfigurationError: an option or a column is not possible.
        """
        _prepare()
        from kafkaio.spark.options import ReadOptions
        from kafkaio.spark.schema import projection
        from kafkaio.spark.stream import KafkaStreamReader

        options = ReadOptions.of(self.options, is_stream=True)
        return KafkaStreamReader(options, projection(schema))

    # Spark passes these arguments by name and by place, and overwrite is its bool.
    @plainly
    def writer(self, schema: StructType, overwrite: bool) -> KafkaWriter:  # noqa: FBT001
        """Return the writer of a batch.

        Raises:
            ConfigurationError: an option, a column or the mode is not possible.
        """
        _prepare()
        from kafkaio.spark.writer import KafkaWriter

        return KafkaWriter.of(self.options, schema, overwrite=overwrite)

    @plainly
    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> KafkaStreamWriter:
        """Return the writer of a stream.

        Raises:
            ConfigurationError: an option, a column or the mode is not possible.
        """
        _prepare()
        from kafkaio.spark.writer import KafkaStreamWriter

        return KafkaStreamWriter.of(self.options, schema, overwrite=overwrite)


def _prepare() -> None:
    """Make what is loaded next cheap: this is a process of Spark, at its beginning."""
    from kafkaio.spark.runtime import freeze

    freeze()
