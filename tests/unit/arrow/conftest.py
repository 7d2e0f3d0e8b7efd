from tests.virtual_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
