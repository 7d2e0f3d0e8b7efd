"""The names of the package for type checkers; see ``__init__.py``."""

from kafkaio.spark._errors import (
    DataLost as DataLost,
    DataSourceError as DataSourceError,
)
from kafkaio.spark._foreach import (
    foreach_batch_writer as foreach_batch_writer,
)
from kafkaio.spark._markers import (
    MarkedApp as MarkedApp,
    cleanup as cleanup,
    marked_apps as marked_apps,
)
from kafkaio.spark._progress import (
    LagListener as LagListener,
    lag as lag,
    source_metrics as source_metrics,
)
from kafkaio.spark._source import (
    KafkaSource as KafkaSource,
    register as register,
)

__all__: list[str]
