"""Builds the optional compiled codec; everything else is in pyproject.toml.

Without a C compiler, or with KAFKAIO_NO_EXTENSION=1, the install goes on with the
pure-Python codec: `kafkaio.accelerated` is then False.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = "kafkaio/_records/_speedups.pyx"
PARTS = sorted(str(path) for path in Path(SOURCE).parent.glob("*.pxi"))
# GCC and Clang; MSVC's own default is its best level.
OPTIONS = [] if sys.platform == "win32" else ["-O3"]


class OptionalBuildExt(build_ext):
    """Says plainly what an install without the compiled codec means."""

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:  # noqa: BLE001 - any compiler failure is the same
            print(
                "kafkaio: the compiled codec could not be built "
                f"({error}); the pure-Python codec will be used."
            )


def extensions() -> list[Extension]:
    if os.environ.get("KAFKAIO_NO_EXTENSION") or not Path(SOURCE).exists():
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("kafkaio: no Cython; the pure-Python codec will be used.")
        return []
    extension = Extension(
        "kafkaio._records._speedups",
        [SOURCE],
        depends=PARTS,
        extra_compile_args=OPTIONS,
        optional=True,
    )
    return cythonize([extension])


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuildExt})
