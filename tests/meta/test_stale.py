"""Sentences that say "not ... yet" are true, each for a reason that stands here.

Such a sentence is right when it is written, and nobody looks at it when the feature
comes. So each one in the pages and the examples is listed with the reason why it is
true, and a new one has to be justified. Of docstrings, comments and messages only those
are looked at that say it of kafkaio: most others are about a moment in a program's
life ("requests without an answer yet").
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import kafkaio

ROOT: Final = Path(__file__).parents[2]
#: Words by which a text says that something is not there, and may come.
STALE: Final = re.compile(
    r"""\b(?:not|no|nothing|none|nobody|cannot|never|without|neither|\w+n't)\b
            [^.;:|]{0,90}\byet\b
      | \byet\ to\b
      | \b(?:does|do|is|are)\ not\ (?:yet\ )?support(?:ed)?\b
      | \bnot\ (?:yet\ )?(?:implemented|possible|available|tried|tested)\b
      | \btoday\b | \bfor\ now\b | \b(?:is|are)\ planned\b | \bin\ (?:the|a)\ future\b
      | \bcoming\ soon\b | \bis\ to\ come\b | \broadmap\b | \bupcoming\b
      | \b(?:next|later|future)\ release\b | \bwill\ be\ (?:added|supported)\b
      | \bTODO\b | \bFIXME\b | \bXXX\b""",
    re.VERBOSE | re.IGNORECASE,
)
#: What a sentence of the code names if it is about kafkaio, and not about a moment.
OURS: Final = re.compile(
    r"\b[kK]afkaio (?:does|do|has|is|can|will|cannot)\b|\bin kafkaio\b|\bof kafkaio\b"
    r"|\bthis (?:package|library|client|version)\b"
    r"|\b(?:Producer|Consumer|Admin|Client|ShareConsumer|Broker)`? (?:does|do|has|can"
    r"|creates|reads|writes|will)\b"
    r"|\bTODO\b|\bFIXME\b|\bXXX\b|\b(?:next|later|future) release\b"
)

FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

MOMENT: Final = "a moment in the life of a program, not a feature"
OTHER: Final = "of another product"
RELEASE: Final = "true until the first release; the release workflow's page names it"
#: A part of each sentence that stays, and why it is true.
TRUE: Final[dict[str, str]] = {
    # Pages.
    "says what it does not have yet": "the table has rows in which others are ahead",
    "There is no release on PyPI yet": RELEASE,
    "because its service is not up yet": MOMENT,
    "kafkaio is not on PyPI yet": RELEASE,
    "Sent and not answered yet": MOMENT,
    "A group that has committed nothing yet": MOMENT,
    "a group begins that has read nothing yet": MOMENT,
    "the higher partitions that brought nothing yet": MOMENT,
    "also what is not yet connected": MOMENT,
    "has no `traceparent` yet": MOMENT,
    "one that has not read anything yet": MOMENT,
    "does not exist yet, as with a listener": MOMENT,
    "not read yet, because their positions are not found": "the text of a warning",
    "nobody has registered the schema yet": MOMENT,
    "If the log does not reach the end of the range yet": MOMENT,
    "An offset that the log does not have yet": MOMENT,
    "and its key is not yet), new connections": MOMENT,
    "if they are not committed yet": MOMENT,
    "where nothing had failed yet": MOMENT,
    "A partition that is not chosen yet": MOMENT,
    "brokers that are not fetched from yet": MOMENT,
    "What the work needs is not there yet": "of the job that the example works on",
    "not tested |": "of Windows: CI runs on Linux; a release tests its wheels there",
    "a micro-batch of a stream is planned": "Spark plans it",
    "each batch that is planned": "Spark plans it",
    "so brokers are not tested for it": "of brokers, with a behaviour of this client",
    "Not tried either; there is no Hadoop here": "of YARN, which no test has",
    "Not tried.": "of Kubernetes with Spark: what was tried elsewhere is listed there",
    "not tried: [see below]": "of the same two",
    "Not possible from Python": OTHER + ": what Spark's API for Python lacks",
    "`topic 'order' is not available`": "the text of a warning",
    # Code.
    "the producer has begun no transaction yet": MOMENT,
    "UsageError the call was wrong": "the tree of errors: a broker that is too old",
    "two-phase commit (KIP-939) is not in kafkaio yet": "there is no such option",
    "those of Kafka that kafkaio does not have yet": "KIP-939, the row below",
}


def paragraphs(path: Path) -> Iterator[str]:
    """The texts of a file, each in one line: of a page all but programs and output."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = FENCE.sub(lambda found: found[2] if found[1] == "python" else "", text)
        parts: Iterator[str] | list[str] = re.split(r"\n\s*\n|\n(?=[-|*#])", text)
    else:
        parts = texts_of(text)
    for part in parts:
        yield " ".join(part.split())


def texts_of(code: str) -> Iterator[str]:
    """The strings of a program, docstrings included, and its blocks of comments."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    block, last = list[str](), -1
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            line = token.start[0]
            if line != last + 1:
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("#: "))
            last = line
    yield " ".join(block)


def sentence(paragraph: str, at: int) -> str:
    """The sentence of a paragraph that a place is in."""
    begin = max(paragraph.rfind(end, 0, at) for end in (". ", "| ", ": "))
    end = re.compile(r"\.(?= |$)|\|").search(paragraph, at)
    return paragraph[begin + 1 : end.end() if end else None].strip()


def pages() -> list[Path]:
    """What users read: not decisions, which tell what was true when they were made."""
    docs = [p for p in (ROOT / "docs").rglob("*.md") if "adr" not in p.parts]
    mine = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    news = (ROOT / "changelog.d").glob("+*.md")
    return [*mine, *sorted(docs), *sorted(news)]


def code() -> list[Path]:
    """All modules that are shipped, but those that are generated from Kafka's."""
    found = [*(ROOT / "kafkaio").rglob("*.py"), *(ROOT / "kafkaio").rglob("*.pyi")]
    return [path for path in sorted(found) if "messages" not in path.parts]


@cache
def found() -> list[tuple[str, str]]:
    """Each sentence that may be stale, with its file."""
    return sorted({*_found()})


def _found() -> Iterator[tuple[str, str]]:
    examples = sorted((ROOT / "examples").rglob("*.py"))
    for path in [*pages(), *examples, *code()]:
        is_code = path.is_relative_to(ROOT / "kafkaio")
        whole = " ".join(path.read_text(encoding="utf-8").split())
        if not STALE.search(whole) or (is_code and not OURS.search(whole)):
            continue  # as most: to parse them all takes ten seconds
        for paragraph in paragraphs(path):
            for match in STALE.finditer(paragraph):
                said = sentence(paragraph, match.start())
                if not is_code or OURS.search(said):
                    yield str(path.relative_to(ROOT)), said


def test_every_sentence_that_may_be_stale_is_justified() -> None:
    stale = [
        f"{path}: {said}"
        for path, said in found()
        if not any(part in said for part in TRUE)
    ]
    assert not stale, "\n".join(stale)


@pytest.mark.parametrize("part", TRUE)
def test_a_sentence_that_is_justified_is_still_there(part: str) -> None:
    assert any(part in said for _, said in found())


@pytest.mark.parametrize(
    "said",
    [
        "kafkaio does not write transactions yet; it reads those of other clients.",
        "Admin creates no topics yet: use another tool.",
        "Share groups are not supported.",
        "For now, there is one codec.",
    ],
)
def test_what_was_stale_once_would_be_found(said: str) -> None:
    assert STALE.search(said)


def test_of_code_it_is_found_if_it_is_about_kafkaio() -> None:
    said = "Transactions: kafkaio does not write them yet."
    assert STALE.search(said)
    assert OURS.search(said)
    assert not OURS.search("Requests that have no answer yet.")


def test_it_is_true_that_there_is_no_two_phase_commit() -> None:
    with pytest.raises(kafkaio.ConfigurationError, match="KIP-939"):
        kafkaio.Producer("x:1", transaction_two_phase_commit_enable=True)  # type: ignore[call-arg]


def test_the_number_of_operations_of_admin() -> None:
    own = {"start", "close", "client_instance_id"}
    operations = [
        name
        for name, member in inspect.getmembers(kafkaio.Admin)
        if inspect.iscoroutinefunction(member)
        and not name.startswith("_")
        and name not in own
    ]
    (row,) = re.findall(r"\| Admin API \| (\d+) ", (ROOT / "README.md").read_text())
    assert int(row) == len(operations)


def test_the_versions_of_kafka_are_those_that_are_tested() -> None:
    (listed,) = re.findall(
        r"^ALL_KAFKA_VERSIONS = (\[.*\])$",
        (ROOT / "noxfile.py").read_text(),
        re.MULTILINE,
    )
    newest, *_, oldest = ast.literal_eval(listed)
    for page in ("README.md", "docs/guide/compatibility.md"):
        assert f"Kafka {oldest} to {newest}" in (ROOT / page).read_text()


def test_the_oldest_python_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    for page in ("README.md", "docs/guide/installation.md"):
        assert f"CPython {oldest} and later" in (ROOT / page).read_text()


def test_every_extra_is_in_the_table() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "guide" / "installation.md").read_text()
    table = page.partition("## Extras")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert listed == project["optional-dependencies"].keys()


def test_the_oldest_dependencies_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {"": project["dependencies"], **project["optional-dependencies"]}
    page = (ROOT / "docs" / "guide" / "compatibility.md").read_text()
    rows = re.findall(
        r"^\| ([\w, -]+?)(?: \(extra `(\w+)`\))? \| ([\w., ]+) \| .* \|$",
        page.partition("## Dependencies")[2].partition("\n## ")[0],
        re.MULTILINE,
    )
    shown: dict[str, set[str]] = {}
    for names, extra, versions in rows[1:]:  # without the head of the table
        pairs = zip(names.split(", "), versions.split(", "), strict=True)
        shown.setdefault(extra, set()).update(f"{n}>={v}" for n, v in pairs)
    wanted = {
        extra: {each.partition(";")[0] for each in packages}
        for extra, packages in required.items()
    }
    assert shown == wanted
