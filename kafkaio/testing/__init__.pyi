"""The names of the package for type checkers; see ``__init__.py``."""

from kafkaio.testing._broker.clock import Clock as Clock
from kafkaio.testing._broker.cluster import (
    Topic as Topic,
)
from kafkaio.testing._broker.control import (
    Control as Control,
    OpenTransaction as OpenTransaction,
)
from kafkaio.testing._broker.faults import (
    Action as Action,
    Fault as Fault,
    Faults as Faults,
    Rule as Rule,
    close_at as close_at,
    corrupt_bytes as corrupt_bytes,
    delay as delay,
    disconnect_after_write as disconnect_after_write,
    disconnect_before_write as disconnect_before_write,
    drop as drop,
    duplicate as duplicate,
    endless_challenges as endless_challenges,
    error as error,
    foreign_nonce as foreign_nonce,
    garbage as garbage,
    half_frame as half_frame,
    invert_at as invert_at,
    iteration_count as iteration_count,
    metadata_lag as metadata_lag,
    reorder as reorder,
    stall_at as stall_at,
    throttle as throttle,
    wrong_correlation_id as wrong_correlation_id,
    wrong_signature as wrong_signature,
)
from kafkaio.testing._broker.group_config import (
    GroupConfig as GroupConfig,
)
from kafkaio.testing._broker.node import (
    LoggedRequest as LoggedRequest,
)
from kafkaio.testing._broker.settings import TopicSettings as TopicSettings
from kafkaio.testing._broker.telemetry import PushedTelemetry as PushedTelemetry
from kafkaio.testing._embedded import (
    Broker as Broker,
)
from kafkaio.testing._registry.faults import (
    RegistryFaults as RegistryFaults,
    RegistryRule as RegistryRule,
)
from kafkaio.testing._schema_registry import (
    RegistryRequest as RegistryRequest,
    SchemaRegistry as SchemaRegistry,
)
from kafkaio.testing._security.acls import (
    Acl as Acl,
    AclFilter as AclFilter,
    AclStore as AclStore,
    Operation as Operation,
    PatternType as PatternType,
    Permission as Permission,
    ResourceType as ResourceType,
)
from kafkaio.testing._security.config import (
    SecurityConfig as SecurityConfig,
)
from kafkaio.testing._security.credentials import (
    Credentials as Credentials,
)
from kafkaio.testing._security.oauthbearer import (
    TokenClaims as TokenClaims,
)
from kafkaio.testing._security.security import (
    Security as Security,
)
from kafkaio.testing._security.session import (
    Authentications as Authentications,
)

__all__: list[str]
