"""The names of the package for type checkers; see ``__init__.py``."""

from kafkaio.registry._avro import (
    Avro as Avro,
)
from kafkaio.registry._avro_classes import (
    AvroAs as AvroAs,
    decimal as decimal,
)
from kafkaio.registry._client import (
    Registry as Registry,
    RegistryStatistics as RegistryStatistics,
)
from kafkaio.registry._json import (
    JsonSchema as JsonSchema,
)
from kafkaio.registry._one_of import (
    OneOf as OneOf,
)
from kafkaio.registry._protobuf import (
    Protobuf as Protobuf,
)
from kafkaio.registry._schema import (
    Compatibility as Compatibility,
    RegisteredSchema as RegisteredSchema,
    Schema as Schema,
    SchemaReference as SchemaReference,
)
from kafkaio.registry._subjects import (
    SubjectStrategy as SubjectStrategy,
    record_name as record_name,
    topic_name as topic_name,
    topic_record_name as topic_record_name,
)
from kafkaio.registry._tls import (
    RegistryTls as RegistryTls,
)

__all__: list[str]
