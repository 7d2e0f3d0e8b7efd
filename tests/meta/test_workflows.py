"""The workflows, templates and pins, checked without running them."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
TEMPLATES = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
PINS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: Every platform that gets wheels: the system, and the processor by its own name.
PLATFORMS = {
    *(("ubuntu", "x86_64"), ("ubuntu", "aarch64")),
    *(("macos", "arm64"), ("macos", "x86_64")),
    ("windows", "AMD64"),
}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_takes_nothing_that_can_change(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action), action
    for command in re.findall(r"pip install (.*)", text):
        assert command.startswith("--require-hashes -r requirements/"), command
    # Nobody has more rights than it needs.
    assert loaded(path)["permissions"] == {"contents": "read"}
    # The token of the checkout stays in no later step.
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_an_action_has_one_version() -> None:
    used = {
        action
        for path in WORKFLOWS
        for action in re.findall(r"uses: (.*)", path.read_text())
    }
    assert len({action.partition("@")[0] for action in used}) == len(used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_ends(path: Path) -> None:
    for name, job in loaded(path)["jobs"].items():
        assert 0 < job["timeout-minutes"] <= 120, name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_script_of_a_workflow_contains_an_expression(path: Path) -> None:
    # What an expression becomes is read by the shell, as code; a variable is not.
    scripts = [step["run"] for step in steps(path) if "run" in step]
    assert scripts
    assert not [script for script in scripts if "${{" in script]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_names_sessions_that_exist(path: Path) -> None:
    sessions = re.findall(r"@nox.session.*?\ndef (\w+)", _noxfile(), re.DOTALL)
    for step in steps(path):
        for names in re.findall(r"nox -s (.*)", step.get("run", "")):
            # One that is parametrized stands in quotation marks.
            found = re.sub(r'"(\w+)\([^)]*\)"', r"\1", names).split()
            assert found
            assert set(found) <= set(sessions)


def test_every_part_of_the_night_has_a_job() -> None:
    job = loaded(GITHUB / "workflows" / "nightly.yml")["jobs"]["nox"]
    assert job["strategy"]["fail-fast"] is False
    assert job["strategy"]["matrix"] == {"part": nightly_parts()}


def test_every_platform_gets_wheels() -> None:
    job = loaded(GITHUB / "workflows" / "wheels.yml")["jobs"]["wheels"]
    assert job["strategy"]["fail-fast"] is False
    runners = job["strategy"]["matrix"]["include"]
    assert {(each["os"].split("-")[0], each["archs"]) for each in runners} == PLATFORMS
    # Each processor is one that the runner has: nothing is emulated.
    arm = {each["os"] for each in runners if each["archs"] in {"aarch64", "arm64"}}
    assert arm == {"ubuntu-24.04-arm", "macos-15"}
    building = PROJECT["tool"]["cibuildwheel"]
    skipped = building["skip"].split()
    assert skipped == ["*-win32", "*-manylinux_i686", "*-musllinux_i686"]
    for libc in ("manylinux", "musllinux"):
        for processor in ("x86_64", "aarch64"):
            assert building["linux"][f"{libc}-{processor}-image"]


def test_every_python_of_the_package_gets_a_wheel() -> None:
    named = re.findall(
        r"Python :: 3\.(\d+)", "\n".join(PROJECT["project"]["classifiers"])
    )
    built = PROJECT["tool"]["cibuildwheel"]["build"].split()
    free_threaded = {"cp314t-*"}  # without the global lock
    assert set(built) == {f"cp3{number}-*" for number in named} | free_threaded
    oldest = min(map(int, named))
    assert PROJECT["project"]["requires-python"] == f">=3.{oldest}"


def test_nothing_is_published_without_a_tag_and_an_approval() -> None:
    publishing = [
        (path.name, name, job)
        for path in WORKFLOWS
        for name, job in loaded(path)["jobs"].items()
        if "id-token" in job.get("permissions", {}) or "publish" in str(job["steps"])
    ]
    [(file, name, job)] = publishing
    assert (file, name) == ("wheels.yml", "publish")
    guard = "github.event_name == 'push' && startsWith(github.ref, 'refs/tags/v')"
    assert job["if"] == guard
    assert job["environment"] == "release"
    # Everything that was built and checked comes first, the tag itself included.
    others = loaded(GITHUB / "workflows" / file)["jobs"].keys() - {name}
    assert set(job["needs"]) == others
    # It runs no code of the project, which could use its rights.
    assert all("run" not in step for step in job["steps"])
    used = [step["uses"].partition("@")[0] for step in job["steps"]]
    assert used == [
        "actions/download-artifact",
        "actions/attest-build-provenance",
        "pypa/gh-action-pypi-publish",
    ]
    assert job["steps"][-1]["with"] == {"attestations": True}
    for path in WORKFLOWS:
        assert "upload" not in re.findall(r"twine (\w+)", path.read_text())
        assert "secrets." not in path.read_text()


def test_what_is_pinned_is_brought_forward() -> None:
    updates = yaml.safe_load((GITHUB / "dependabot.yml").read_text())["updates"]
    places = {(each["package-ecosystem"], each["directory"]) for each in updates}
    assert places == {("github-actions", "/"), ("pip", "/requirements")}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_asks_for_something(path: Path) -> None:
    template = yaml.safe_load(path.read_text())
    if path.name == "config.yml":
        for link in template["contact_links"]:
            assert link["url"].startswith(PROJECT["project"]["urls"]["Source"])
        return
    assert template["name"]
    assert template["description"]
    fields = [field for field in template["body"] if field["type"] != "markdown"]
    assert any(field.get("validations", {}).get("required") for field in fields)
    names = [field["id"] for field in fields]
    assert len(names) == len(set(names))


def test_the_documentation_host_builds_what_a_session_builds() -> None:
    settings = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())
    assert settings["version"] == 2
    assert settings["sphinx"] == {
        "configuration": "docs/conf.py",
        "fail_on_warning": True,
    }
    locked, installed = settings["build"]["jobs"]["install"]
    assert "--require-hashes -r requirements/ci.txt" in locked
    extras = re.search(r"\.\[[\w,]+\]", installed)
    assert extras is not None
    assert f'"{extras[0]}"' in _noxfile()


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.name)
def test_everything_pinned_has_hashes(path: Path) -> None:
    requirements = path.read_text().replace("\\\n", " ").splitlines()
    assert len(requirements) > 10
    for requirement in requirements:
        assert re.match(r"[\w.\[\],-]+==\S+ ", requirement), requirement
        assert "--hash=sha256:" in requirement
        # An address would be of one machine's own index.
        assert "://" not in requirement


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in loaded(path)["jobs"].values() for step in job["steps"]]


def nightly_parts() -> list[str]:
    """The keys of ``NIGHTLY`` in the noxfile, which needs nox to be imported."""
    values = {}
    for node in ast.parse(_noxfile()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name):
                values[target.id] = node.value
    known = {"ALL_KAFKA_VERSIONS": ast.literal_eval(values["ALL_KAFKA_VERSIONS"])}
    parts = values["NIGHTLY"]
    assert isinstance(parts, ast.Dict)
    found: list[str] = []
    for key, value in zip(parts.keys, parts.values, strict=True):
        if key is not None:
            found.append(ast.literal_eval(key))
            continue
        # A comprehension that is unpacked: its keys alone, without the sessions.
        assert isinstance(value, ast.DictComp)
        keys = ast.Expression(ast.ListComp(value.key, value.generators))
        code = compile(ast.fix_missing_locations(keys), "noxfile.py", "eval")
        found += eval(code, known)
    return found


def _noxfile() -> str:
    return (ROOT / "noxfile.py").read_text()
