"""``python -m tests.fuzz [--seconds N] [target ...]``: atheris, target after target.

Inputs that break something are written to ``--found``, to be put into
``tests/fuzz/corpus``, and new inputs to ``--corpus``. The exit code is 1 if something
broke.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaio.protocol._decoder import Decoder
    from kafkaio.protocol._message import Message

CORPUS = Path(__file__).parent / "corpus"
#: The longest input in bytes; its memory in MiB, and its time in seconds.
MAX_LENGTH, MAX_MEMORY, MAX_TIME = 4096, 1024, 10


def drive(target: str, arguments: list[str]) -> None:
    """Fuzz one target in this process, which atheris ends."""
    import atheris  # type: ignore[import-not-found,unused-ignore]  # no dependency: `nox -s fuzz` installs it

    with atheris.instrument_imports(include=["kafkaio", "tests.fuzz"]):
        from kafkaio.protocol import _decoder
        from tests.fuzz.targets import TARGETS

    compiled = _decoder.compile_decoder

    def compile_instrumented(kind: type[Message], version: int) -> Decoder:
        # It is made of text, which the import hook does not see.
        decoder: Decoder = atheris.instrument_func(compiled(kind, version))
        return decoder

    vars(_decoder)["compile_decoder"] = compile_instrumented
    atheris.Setup([target, *arguments], TARGETS[target])
    atheris.Fuzz()


def run(target: str, seconds: int, corpus: Path, found: Path) -> bool:
    """Fuzz one target in a process of its own. Returns whether nothing broke."""
    from tests.fuzz.targets import seeds

    begin = corpus / target
    begin.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        (begin / f"seed-{number}").write_bytes(seed)
    known = CORPUS / target
    limits = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_LENGTH}",
        f"-rss_limit_mb={MAX_MEMORY}",
        f"-timeout={MAX_TIME}",
        f"-artifact_prefix={found}/{target}-",
        "-print_final_stats=1",
    ]
    places = [str(begin), *([str(known)] if known.exists() else [])]
    command = [sys.executable, "-m", "tests.fuzz", "--drive", target]
    sys.stdout.write(f"== {target}: {seconds} s\n")
    sys.stdout.flush()
    ended = subprocess.run([*command, "--", *limits, *places], check=False)
    return ended.returncode == 0


def main() -> int:
    """Read the arguments, fuzz."""
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=int, default=600, help="for all targets")
    parser.add_argument("--corpus", type=Path, help="default: a temporary folder")
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"))
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], default=[])
    options = parser.parse_args()
    names = options.targets or list(TARGETS)
    with tempfile.TemporaryDirectory() as folder:
        corpus = options.corpus or Path(folder)
        each = max(1, options.seconds // len(names))
        broken = [n for n in names if not run(n, each, corpus, options.found)]
    sys.stdout.write(f"broken: {', '.join(broken) or 'nothing'}\n")
    return bool(broken)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--drive"]:
        drive(sys.argv[2], sys.argv[4:])
    else:
        sys.exit(main())
