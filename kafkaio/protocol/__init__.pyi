"""The names of the package for type checkers; see ``__init__.py``."""

from kafkaio.protocol import messages as messages
from kafkaio.protocol._api_keys import ApiKey as ApiKey

__all__: list[str]
