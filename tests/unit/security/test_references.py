"""Values that name a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaio.errors import ConfigurationError
from kafkaio.security._references import has_reference, resolve

PROPERTIES = r"""
# a comment
! another
plain=one
  spaced  =  two words
colon:three
blank four
long=a\
     b
escaped\ key=tab\there\u00e9\\
empty=
bare
"""


def test_what_is_a_reference() -> None:
    assert has_reference("user ${env:A}!")
    assert not has_reference("${A} $env:A {env:A}")


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKAIO_A", "1")
    monkeypatch.setenv("KAFKAIO_B", "${env:KAFKAIO_A}")
    assert resolve("x", "<${env:KAFKAIO_A}-${env:KAFKAIO_B}>") == (
        "<1-${env:KAFKAIO_A}>"
    )
    assert resolve("x", "nothing") == "nothing"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("plain", "one"),
        ("spaced", "two words"),
        ("colon", "three"),
        ("blank", "four"),
        ("long", "ab"),
        ("escaped key", "tab\thereé\\"),
        ("empty", ""),
        ("bare", ""),
    ],
)
def test_a_file_of_properties(tmp_path: Path, key: str, value: str) -> None:
    path = tmp_path / "secret.properties"
    path.write_text(PROPERTIES, encoding="utf-8")
    assert resolve("x", f"${{file:{path}:{key}}}") == value


def test_a_directory_of_files(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n", encoding="utf-8")
    assert resolve("x", f"${{dir:{tmp_path}:password}}") == "s3cret\n"


def test_what_cannot_be_resolved(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_text("a=hunter2\n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for reference, message in [
        ("${env:KAFKAIO_NOT_THERE}", "no variable 'KAFKAIO_NOT_THERE'"),
        (f"${{file:{path}:b}}", "has no key 'b'"),
        (f"${{file:{tmp_path}/none:b}}", "cannot be read (No such file or directory)"),
        (f"${{dir:{tmp_path}:binary}}", "cannot be read (UnicodeDecodeError)"),
    ]:
        with pytest.raises(ConfigurationError) as caught:
            resolve("kafka.x", reference)
        assert message in str(caught.value)
        assert str(caught.value).startswith("kafka.x: ${")
        assert "hunter2" not in str(caught.value)
