"""The data source that Spark knows as the format ``kafkaio``.

Spark imports this module, through ``pyspark_kafkaio``, whenever it looks for a format
of any name. So it loads next to nothing of kafkaio before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

from kafkaio._public import public
from kafkaio.spark._errors import plainly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.types import StructType

    from kafkaio.spark._reader import KafkaReader
    from kafkaio.spark._writer import KafkaStreamWriter, KafkaWriter

#: Spark hands over the properties of a table in CREATE TABLE, with this one.
_OF_TABLES: Final = "provider"


@public("kafkaio.spark")
class KafkaSource(DataSource):  # type: ignore[misc]  # pyspark is not followed
    """Reads and writes Kafka topics, as ``format("kafkaio")``.

    Spark makes one in the driver for each read or write and pickles it to processes of
    its own. It holds the options as they were given, and connects to nothing.

    Spark asks for the schema in ``load()``, where the user has given none, and for a
    writer of a batch in ``save()``. It asks for all else when the query runs.
    """

    def __reduce__(self) -> tuple[object, ...]:
        from kafkaio.spark._shipping import shipped

        return shipped(self)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "kafkaio"

    @plainly
    def schema(self) -> str:
        """Return the columns of a read, or of a table, that has no schema of its own.

        Checks all options, without connecting.

        Raises:
            ConfigurationError: an option is not possible, or Spark would lose it.
        """
        _prepare()
        from kafkaio.spark._options import check_read, includes_headers
        from kafkaio.spark._schema import default_schema

        if _OF_TABLES in self.options:
            _check_table(self.options)
        elif self.options:
            check_read(self.options)
        return default_schema(includes_headers=includes_headers(self.options))

    @plainly
    def reader(self, schema: StructType) -> KafkaReader:
        """Return the reader of a batch.

        Raises:
            ConfigurationError: an option or a column is not possible.
        """
        _prepare()
        from kafkaio.spark._options import ReadOptions
        from kafkaio.spark._reader import KafkaReader
        from kafkaio.spark._schema import projection

        options = ReadOptions.of(self.options, is_stream=False)
        return KafkaReader(options, projection(schema))

    @plainly
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream.

        Where an option or a column is not possible, it raises a ConfigurationError with
        the first call.
        """
        _prepare()
        from kafkaio.errors import ConfigurationError
        from kafkaio.spark._options import ReadOptions
        from kafkaio.spark._schema import projection
        from kafkaio.spark._stream import KafkaStreamReader

        try:
            options = ReadOptions.of(self.options, is_stream=True)
            return KafkaStreamReader(options, projection(schema))
        except ConfigurationError as error:
            # Raised here, Spark would bury it under an error of its own.
            from kafkaio.spark._refused import RefusedStreamReader

            return RefusedStreamReader(error)

    # Spark passes these arguments by name and by place, and overwrite is its bool.
    @plainly
    def writer(self, schema: StructType, overwrite: bool) -> KafkaWriter:  # noqa: FBT001
        """Return the writer of a batch.

        Raises:
            ConfigurationError: an option, a column or the mode is not possible.
        """
        _prepare()
        from kafkaio.spark._writer import KafkaWriter

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
        from kafkaio.spark._writer import KafkaStreamWriter

        return KafkaStreamWriter.of(self.options, schema, overwrite=overwrite)


def _check_table(names: Iterable[str]) -> None:
    """Refuse options in CREATE TABLE: Spark keeps none of them, and says nothing.

    Raises:
        ConfigurationError: there are some.
    """
    if any(name.startswith(("option.", "kafka.")) for name in names):
        from kafkaio.errors import ConfigurationError

        raise ConfigurationError(
            "Spark does not keep the options of a table of this format: leave them out "
            "of CREATE TABLE, and give them where the table is used: "
            "SELECT ... FROM t WITH (...), INSERT INTO t WITH (...), or in a view"
        )


def _prepare() -> None:
    """Make the next imports cheap: this is a process of Spark, at its start."""
    from kafkaio.spark._runtime import freeze

    freeze()


@public("kafkaio.spark")
def register(spark: SparkSession) -> None:
    """Make the format ``kafkaio`` known to a Spark session.

    Args:
        spark: the session.
    """
    spark.dataSource.register(KafkaSource)
