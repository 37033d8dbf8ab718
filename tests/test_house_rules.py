"""What the project promises about its own text, checked by reading it.

The layers are written once, in pyproject.toml; import-linter holds them, and everything here that needs to know what is
a decision and what is an edge reads the same table. Nothing is imported from comity: a module that cannot be imported
is still judged.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "comity"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {contract["id"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]}
LAYERS = [[name.strip(" ()") for name in re.split(r"[|:]", layer)] for layer in CONTRACTS["layers"]["layers"]]
PORTS = LAYERS.index(["ports"])
PURE = {name for layer in LAYERS[PORTS + 1 :] for name in layer}
WORDS = {"url", "headers", "model"}
ENGINE = {"crawl", "hosts", "lease", "plan", "settling", "sifting"}
ADAPTERS = set(LAYERS[PORTS - 1])
OPTIONAL = {"certifi"}  # read where it happens to be installed
IMPURE_IMPORTS = {"asyncio", "logging", "os", "pathlib", "random", "socket", "sqlite3", "ssl", "threading", "time"}

MODULES = sorted(SRC.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("bench/*.md"), *ROOT.glob("docs/**/*.md")])


def short(path: Path) -> str:
    return path.relative_to(SRC if path.is_relative_to(SRC) else ROOT).as_posix()


def unit(path: Path) -> str:
    """The name a file goes by in the table of layers: its top module or package."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(path: Path) -> Iterator[str]:
    """Every absolute module name imported anywhere in the file, in functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{short(path)}:{node.lineno}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def units_imported(path: Path) -> set[str]:
    names = {name.split(".")[1] for name in imports(path) if name.startswith("comity.")}
    return {name for name in names if (SRC / name).is_dir() or (SRC / f"{name}.py").exists()} - {unit(path)}


def tracked() -> list[Path]:
    """The project's text files: what is committed, and what would be."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


# ------------------------------------------------------------------------------------------------------ layers and core


def test_imports_go_downwards_only() -> None:
    assert lint_imports(str(ROOT / "pyproject.toml"), no_logo=True) == 0


def test_every_module_stands_in_the_table_of_layers() -> None:
    there = {unit(path) for path in MODULES} - {"__init__", "__main__"}
    assert there == {name for layer in LAYERS for name in layer}


def test_the_contracts_name_every_pure_module_and_every_adapter() -> None:
    assert set(CONTRACTS["pure"]["source_modules"]) == {f"comity.{name}" for name in PURE}
    assert set(CONTRACTS["engine"]["source_modules"]) == {f"comity.{name}" for name in ENGINE}
    assert set(CONTRACTS["engine"]["forbidden_modules"]) == {f"comity.{name}" for name in ADAPTERS}


@pytest.mark.parametrize("path", [path for path in MODULES if unit(path) in PURE], ids=short)
def test_words_and_decisions_are_pure(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & IMPURE_IMPORTS
    called = {node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call)}
    names = {func.attr for func in called if isinstance(func, ast.Attribute)}
    assert not names & {"now", "utcnow", "today"}, "the time is an argument"
    awaits = [node for node in ast.walk(tree(path)) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]
    assert not awaits, "a decision does not wait"


@pytest.mark.parametrize("path", [path for path in MODULES if unit(path) in ENGINE], ids=short)
def test_the_engine_knows_ports_only(path: Path) -> None:
    assert not units_imported(path) & ADAPTERS


def test_the_frontiers_do_not_know_each_other() -> None:
    stores = {path.stem for path in (SRC / "frontier").glob("*.py")} & {"memory", "sqlite", "postgres", "urlfrontier"}
    assert stores >= {"memory", "sqlite"}
    for store in stores:
        others = {f"comity.frontier.{other}" for other in stores - {store}}
        seen = set(imports(SRC / "frontier" / f"{store}.py"))
        assert not {name for name in seen if any(name == other or name.startswith(f"{other}.") for other in others)}


def test_there_is_one_way_to_the_network() -> None:
    """Q8: only `fetch` speaks to it, and only `Host.ask`, which holds the host's clock, speaks to `fetch`."""
    door = re.compile(r"(aiodns|http\.client|pycares|pycurl|socket|ssl|urllib\.request)\b")
    callers = set()
    for path in MODULES:
        if unit(path) not in {"fakeweb", "fetch"}:
            assert not [name for name in imports(path) if door.match(name)], short(path)
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef):
                calls = [call.func for call in ast.walk(node) if isinstance(call, ast.Call)]
                if any(isinstance(func, ast.Attribute) and func.attr == "fetch" for func in calls):
                    callers.add(f"{short(path)}#{node.name}")
    assert callers == {"hosts.py#ask"}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    used = {name.split(".")[0] for path in MODULES for name in imports(path)} - set(sys.stdlib_module_names)
    used |= {name for path in MODULES for name in re.findall(r"resources\.files\(\"(\w+)\"\)", path.read_text())}
    declared = {re.split(r"[^\w-]", line)[0].replace("-", "_") for line in PROJECT["project"]["dependencies"]}
    assert used - {"comity"} - OPTIONAL == declared


def test_only_assemble_makes_adapters() -> None:
    adapters = {"CrawlLog", "CurlFetcher", "JsonlSink", "MemoryFrontier", "SqliteFrontier"}
    makers = {
        short(path)
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and set(ast.unparse(node.func).split(".")) & adapters
    }
    assert makers == {"assemble.py"}


def test_ports_are_protocols_of_at_most_nine_verbs_and_nothing_else() -> None:
    for node in tree(SRC / "ports.py").body:
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and node is tree(SRC / "ports.py").body[0]
        ):
            continue
        assert isinstance(node, ast.ClassDef), f"line {node.lineno} is no Protocol"
        assert [ast.unparse(base) for base in node.bases] == ["Protocol"], node.name
        verbs = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert 0 < len(verbs) <= 9, f"{node.name} has {len(verbs)} verbs"


# ------------------------------------------------------------------------------------------------------ shape and names


@pytest.mark.parametrize("path", MODULES, ids=short)
def test_a_module_is_called_what_it_owns(path: Path) -> None:
    name = path.parent.name if path.stem == "__init__" else path.stem
    assert name not in {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc", "tools"}
    assert name == "__main__" or re.fullmatch(r"[a-z]+[0-9]*", name), "one word in lower case"


@pytest.mark.parametrize("path", MODULES, ids=short)
def test_a_module_opens_with_its_theory(path: Path) -> None:
    theory = ast.get_docstring(tree(path)) or ""
    assert sum(bool(line.strip()) for line in theory.splitlines()) >= 3, "what it owns, its invariant, why so"


@pytest.mark.parametrize("path", MODULES, ids=short)
def test_a_file_holds_one_idea(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= (300 if unit(path) in PURE - WORDS else 500), "split the concept, not the file"


def test_a_visit_fits_on_one_screen() -> None:
    visits = [
        node
        for node in ast.walk(tree(SRC / "crawl.py"))
        if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef) and node.name == "visit"
    ]
    assert len(visits) == 1
    assert (visits[0].end_lineno or 0) - visits[0].lineno + 1 <= 40


def test_nothing_is_inherited_for_reuse() -> None:
    """A class of ours may be a parent only to name a kind of error, or to join Protocols."""
    classes = {node.name: node for path in MODULES for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)}

    def an_error(name: str) -> bool:
        node = classes.get(name)
        parents = [ast.unparse(base).split(".")[-1] for base in node.bases] if node else [name]
        return any(
            parent.endswith(("Error", "Exception")) or (parent in classes and an_error(parent)) for parent in parents
        )

    for name, node in classes.items():
        bases = [ast.unparse(base).split(".")[-1].split("[")[0] for base in node.bases]
        for base in bases if "Protocol" not in bases else []:
            assert base not in classes or an_error(base), f"{name} inherits from {base}"


def test_the_package_lists_its_modules_in_reading_order() -> None:
    """The docstring of `comity` names every module once, each after all that it imports."""
    order = re.findall(r"^\s*`?(\w+)`?\s{2,}\S", ast.get_docstring(tree(SRC / "__init__.py")) or "", re.MULTILINE)
    assert len(order) == len(set(order))
    assert set(order) == {unit(path) for path in MODULES} - {"__init__", "__main__"}
    for path in MODULES:
        if unit(path) in order:
            above = order[: order.index(unit(path))]
            assert units_imported(path) <= set(above), f"{short(path)} is read before what it imports"


# ---------------------------------------------------------------------------------------------------------------- tests


def test_every_decision_has_its_table() -> None:
    there = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / "decisions").glob("test_*.py")}
    missing = {name for name in PURE - {"model"} if not any(t == name or t.startswith(f"{name}_") for t in there)}
    assert not missing


@pytest.mark.parametrize("path", [path for path in TESTS if path.parent.name == "decisions"], ids=short)
def test_decisions_are_tested_without_a_world(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & {"asyncio", "random", "socket", "tempfile"}
    assert "unittest.mock" not in path.read_text()
    for node in ast.walk(tree(path)):
        assert not isinstance(node, ast.AsyncFunctionDef), "a decision needs no event loop"
        assert not isinstance(node, ast.Attribute) or node.attr != "sleep"
        if isinstance(node, ast.arg):
            assert node.arg not in {"monkeypatch", "tmp_path", "tmpdir", "mocker", "caplog"}


def asserts(node: ast.AST) -> bool:
    """An assert, a `pytest.raises` or `pytest.fail`, or a call of something named check_… or expect_…"""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assert):
            return True
        if isinstance(inner, ast.Call):
            called = ast.unparse(inner.func)
            if called in {"pytest.raises", "pytest.fail", "pytest.warns"}:
                return True
            if called.split(".")[-1].startswith(("check_", "expect_")):
                return True
    return False


@pytest.mark.parametrize("path", TESTS, ids=short)
def test_every_test_asserts(path: Path) -> None:
    silent = [
        node.name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not asserts(node)
    ]
    assert not silent


# ----------------------------------------------------------------------------------------------------------------- docs


def defines(body: list[ast.stmt], names: list[str]) -> bool:
    """Is there a definition (class, function, assignment) of names[0] here, and of names[1] inside it, and so on?"""
    for node in body:
        inner = body_of(node)
        if isinstance(node, ast.If | ast.Try) and defines(inner, names):
            return True
        bound: list[str] = []
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            bound = [node.name]
        elif isinstance(node, ast.Assign):
            bound = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            bound = [node.target.id]
        if names[0] in bound and (len(names) == 1 or defines(inner, names[1:])):
            return True
    return False


def body_of(node: ast.stmt) -> list[ast.stmt]:
    body: list[ast.stmt] = getattr(node, "body", [])
    return body


def mentions(pattern: str) -> list[tuple[str, re.Match[str]]]:
    found = re.compile(pattern)
    return [
        (f"{short(page)}:{number}", match)
        for page in PAGES
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)
        for match in found.finditer(line)
    ]


def test_every_symbol_named_in_the_docs_exists() -> None:
    named = mentions(r"([\w./-]+\.py)#([A-Za-z_][\w.]*\w)")
    assert len(named) > 20
    gone = [
        f"{where}: {match[0]}"
        for where, match in named
        if not (ROOT / match[1]).exists() or not defines(tree(ROOT / match[1]).body, match[2].split("."))
    ]
    assert not gone


def test_the_documented_layers_are_the_layers() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [\w ]+ \| (`.+?) \|", page.split("## Layers")[1].split("## ")[0], re.MULTILINE)
    told = [name.rstrip("/") for row in rows for name in re.findall(r"`([\w/]+)`", row)]
    assert sorted(told) == sorted(name for layer in LAYERS for name in layer)


def test_every_test_named_in_the_docs_exists() -> None:
    named = mentions(r"(tests/[\w./-]+\.py)::([\w:]+)")
    assert len(named) > 20
    gone = [
        f"{where}: {match[0]}"
        for where, match in named
        if not (ROOT / match[1]).exists() or not defines(tree(ROOT / match[1]).body, match[2].split("::"))
    ]
    assert not gone


def test_every_promise_names_the_test_that_holds_it() -> None:
    """In docs/promises.md each row of the tables before "What we do not do" ends with at least one test."""
    kept = (ROOT / "docs" / "promises.md").read_text().split("## What we do not do")[0]
    rows = [line for line in kept.splitlines() if line.startswith("| ") and not re.match(r"\| (-|promise\b)", line)]
    assert len(rows) > 20
    assert not [row for row in rows if not re.search(r"tests/[\w./]+\.py::test_\w+", row.rstrip(" |").split("|")[-1])]


def test_every_link_in_the_docs_leads_somewhere() -> None:
    gone = [
        f"{short(page)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        if not re.match(r"[a-z]+:|#", target) and not (page.parent / target.split("#")[0]).exists()
    ]
    assert not gone


def test_decision_records_are_numbered_and_say_all_four_things() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [path.name[:4] for path in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    for path in records:
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"^\*\*(Status|Context|Choice|Consequences)\.\*\*", text, re.MULTILINE) == [
            "Status",
            "Context",
            "Choice",
            "Consequences",
        ], path.name


def test_the_changelog_knows_this_version() -> None:
    version = re.search(r'^__version__ = "(.+)"$', (SRC / "__init__.py").read_text(), re.MULTILINE)
    assert version
    assert re.search(
        rf"^## \[({re.escape(version[1])}|Unreleased)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_the_project_speaks_of_itself_alone() -> None:
    """No path of anybody's machine, no registry's host."""
    words = [
        "/" + "work/",
        "/" + "home/",
        "/" + "root/",
        "/" + "Users/",
        "pypi" + ".org",
        "python" + "hosted",
        "/tmp/" + "w/",
    ]
    outside = re.compile(r"(?<![\w.*…])(?:" + "|".join(map(re.escape, words)) + ")")
    said = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        said += [f"{short(path)}: {match[0]}" for match in outside.finditer(text)]
    assert not said
