"""What the registry's names load: no library before it is needed."""

from __future__ import annotations

import subprocess
import sys

LIBRARIES = (
    *("fastavro", "jsonschema", "referencing", "google.protobuf", "httpx"),
    *("pyarrow", "pydantic", "msgspec"),
)


def test_no_library_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, kafkaio, kafkaio.registry as r\n"
        "names = [getattr(r, name) for name in r.__all__]\n"
        f"print([name for name in {LIBRARIES!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
