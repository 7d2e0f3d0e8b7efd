"""``python -m releasing``: what a release needs of a tree, one command each.

``prepare [VERSION]`` writes its files, ``check [TAG]`` names what keeps the tree from
being one, and ``classifiers`` looks for those that an index would refuse.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tomllib
from pathlib import Path

from releasing import tree

_USAGE = "python -m releasing prepare [VERSION] | check [TAG] | classifiers"


def _draft(root: Path, version: str) -> str:
    command = ["towncrier", "build", "--draft", "--version", version]
    done = subprocess.run(
        command, cwd=root, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def main(words: list[str]) -> int:
    """Write the files of a release, or name what keeps a tree from being one.

    Returns:
        0, or 1 with the problems on the standard output.
    """
    root = Path.cwd()
    match words:
        case ["prepare", *rest] if len(rest) < 2:
            version = tree.final_version(rest[0] if rest else tree.version_of(root))
            today = datetime.datetime.now(datetime.UTC).date().isoformat()
            tree.prepare(root, version, today, _draft(root, version))
            print(f"the files are those of {version}: look at CHANGELOG.md")
            return 0
        case ["check", *rest] if len(rest) < 2:
            problems = tree.problems(root, rest[0] if rest else None)
            print("\n".join(problems) or "this tree can be released")
            return int(bool(problems))
        case ["classifiers"]:
            # Installed where a release is built, and nowhere else.
            from trove_classifiers import classifiers

            text = (root / "pyproject.toml").read_text("utf-8")
            unknown = set(tomllib.loads(text)["project"]["classifiers"]) - classifiers
            print("\n".join(sorted(unknown)) or "every classifier is known")
            return int(bool(unknown))
        case _:
            print(_USAGE)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
