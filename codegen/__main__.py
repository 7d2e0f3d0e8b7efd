"""``python -m codegen``: regenerate what is generated; ``--check`` only compares."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from codegen import emit_codes, emit_messages, facts, jar

PROTOCOL = Path(__file__).parent.parent / "kafkaio" / "protocol"


def sources() -> dict[str, str]:
    """Return every generated file, by its path below ``kafkaio/protocol``."""
    raw = jar.schemas(jar.kafka_clients())
    parsed = [facts.parse(schema) for schema in raw]
    messages = [message for message in parsed if message is not None]
    _share_stability(messages)
    groups: dict[str, list[facts.MessageFact]] = {}
    for message in messages:
        groups.setdefault(emit_messages.module_of(message.name), []).append(message)
    files = {
        f"messages/{module}.py": emit_messages.message_module(group)
        for module, group in groups.items()
    }
    files["messages/__init__.py"] = emit_messages.package_init()
    files["messages/__init__.pyi"] = emit_messages.package_stub(groups)
    files["messages/_homes.py"] = emit_messages.homes(groups)
    files["_api_keys.py"] = emit_codes.api_keys(raw)
    files["_api_numbers.py"] = emit_codes.api_numbers(raw)
    files["_requests.py"] = emit_codes.requests(messages)
    files["_error_codes.py"] = emit_codes.error_codes()
    return _formatted(files)


def _share_stability(messages: list[facts.MessageFact]) -> None:
    # Only requests say that their last version is unstable; it holds for the answer.
    stable = {m.api_key: m.stable for m in messages if m.kind == "request"}
    for message in messages:
        if message.kind == "response":
            message.stable = stable[message.api_key]


def _formatted(files: dict[str, str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "messages").mkdir()
        for path, text in files.items():
            (folder / path).write_text(text)
        command = [sys.executable, "-m", "ruff"]
        quiet = ["--isolated", "--quiet", "--line-length", "88", str(folder)]
        subprocess.run([*command, "check", "--select=I", "--fix", *quiet], check=True)
        subprocess.run([*command, "format", *quiet], check=True)
        return {path: (folder / path).read_text() for path in files}


def main(arguments: list[str]) -> int:
    """Write the files, or with ``--check`` report those that differ."""
    files = sources()
    known = {str(p.relative_to(PROTOCOL)) for p in PROTOCOL.glob("messages/*.py")}
    stale = sorted(known - files.keys())
    changed = [
        path
        for path, text in files.items()
        if not (PROTOCOL / path).exists() or (PROTOCOL / path).read_text() != text
    ]
    if "--check" in arguments:
        for path in [*changed, *stale]:
            print(f"differs from what codegen writes: {path}")
        return 1 if changed or stale else 0
    for path in changed:
        (PROTOCOL / path).write_text(files[path])
    for path in stale:
        (PROTOCOL / path).unlink()
    print(f"{len(files)} files, {len(changed)} written, {len(stale)} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
