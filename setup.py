"""Builds the optional compiled codec and what an index shows of the README.

Everything else is in pyproject.toml. With SOURCE_DATE_EPOCH the same files make the
same bytes, of the source archive and of the wheel.

Without a C compiler, or with KAFKAIO_NO_EXTENSION=1, the install goes on with the
pure-Python codec: `kafkaio.accelerated` is then False.
"""

import gzip
import os
import re
import sys
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

SOURCE = "kafkaio/_records/_speedups.pyx"
PARTS = sorted(str(path) for path in Path(SOURCE).parent.glob("*.pxi"))
# GCC and Clang; MSVC's own default is its best level.
OPTIONS = [] if sys.platform == "win32" else ["-O3"]
# CPython's own flags ask for debug information, which is six times the size of the
# module. Whoever sets CFLAGS (a sanitizer, a debugger) keeps theirs.
IS_STRIPPED = sys.platform == "linux" and not os.environ.get("CFLAGS")


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


class ReproducibleSdist(sdist):
    """Writes an archive without the time and the user of the build, if asked for."""

    def make_archive(self, *args, **more) -> str:
        path = super().make_archive(*args, **more)
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch and path.endswith(".tar.gz"):
            without_circumstances(Path(path), int(epoch))
        return path


def without_circumstances(path: Path, epoch: int) -> None:
    """Write an archive again, its members in the order of their names."""
    made = BytesIO()
    with (
        tarfile.open(path) as archive,
        gzip.GzipFile("", "wb", fileobj=made, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as again,
    ):
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid = epoch, 0, 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            again.addfile(member, archive.extractfile(member))
    path.write_bytes(made.getvalue())


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
        extra_compile_args=[*OPTIONS, "-g0"] if IS_STRIPPED else OPTIONS,
        extra_link_args=["-Wl,--strip-all"] if IS_STRIPPED else [],
        optional=True,
    )
    return cythonize([extension])


def description() -> str:
    """Return the README with absolute links, for the page of an index.

    A link of a release leads to the files of its tag, else to the main branch.
    """
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    version = Path("kafkaio/_version.py").read_text("utf-8")
    found = re.search(r'__version__ = "([\d.]+)"', version)
    tree = f"{project['urls']['Source']}/blob/{f'v{found[1]}' if found else 'main'}/"
    readme = Path("README.md").read_text("utf-8")
    return re.sub(r"\]\((?!\w+:|#)", f"]({tree}", readme)


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": OptionalBuildExt, "sdist": ReproducibleSdist},
    long_description=description(),
    long_description_content_type="text/markdown",
)
