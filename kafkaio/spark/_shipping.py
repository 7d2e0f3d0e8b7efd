"""Pickles readers and writers for processes of Spark that may lack a package.

Spark pickles them by the names of their classes. Where kafkaio or pyarrow is missing,
the user would get a ModuleNotFoundError without a host. So `shipped` pickles a function
by value, which needs only the standard library. It looks for the packages before it
unpickles the object.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark import cloudpickle


def shipped(each: object) -> tuple[Callable[..., object], tuple[str, str, bytes]]:
    """Return the value of ``__reduce__`` for a reader or writer; serves as that method.

    Where a package is missing, unpickling raises an ImportError that names the task,
    the host, the interpreter and the remedy. Only cloudpickle, which Spark uses, can
    pickle the result.
    """
    kind = type(each)
    # As bytes, because all arguments are unpickled before the function is called.
    return _arrival(), (
        kind.__module__,
        kind.__qualname__,
        cloudpickle.dumps(vars(each)),
    )


def _arrival() -> Callable[..., object]:
    # cloudpickle pickles a function by value if it is not an attribute of a module. So
    # it may use no global of this one, and imports everything inside.

    def arrive(module: str, name: str, state: bytes) -> object:
        import os
        import pickle
        import sys
        from importlib import import_module
        from importlib.util import find_spec

        try:
            # Imported only to fail: processes that plan do without pyarrow.
            if find_spec("pyarrow") is None:
                import_module("pyarrow")
            kind = getattr(import_module(module), name)
        except ImportError as error:
            from pyspark import TaskContext

            # As `kafkaio.spark._errors.process` says it, which may be missing.
            context = TaskContext.get()
            task = "planning" if context is None else f"task {context.partitionId()}"
            raise ImportError(
                f"{task} (host {os.uname().nodename}, pid {os.getpid()}): {error}; "
                f"{sys.executable} needs kafkaio[spark]: install it on every host, or "
                "ship an environment that has it (--archives env.tar.gz#env and "
                "PYSPARK_PYTHON=./env/bin/python)"
            ) from None
        each = object.__new__(kind)
        each.__dict__.update(pickle.loads(state))  # noqa: S301 - Spark's own
        return each

    return arrive
