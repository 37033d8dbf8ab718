"""Everything the README tells people to type is typed here, in its order and in one fresh folder.

Nothing is replaced but what makes it a test: the site's name by one on this machine, with leave to ask it, and
eight hours by a second.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from comity.fakeweb import FakeWeb, Site, in_thread
from comity.fakeweb.site import Answer, Script, html, robots

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def shop() -> Iterator[FakeWeb]:
    """A small site with a title and a price on each page."""
    names = {"/": "All books", "/a": "Apples", "/b": "Bees", "/c": "Clouds"}
    links = [*names, "/private/x"]
    pages: dict[str, Script] = {
        path: Answer(
            body=html(links, title=name, more=f'<p class="price"> £{len(name)}.00 </p>'),
            headers=(("Content-Type", "text/html; charset=utf-8"),),
        )
        for path, name in names.items()
    }
    with in_thread([Site("books.localhost", pages, robots=(robots(["/private/"]),))]) as web:
        yield web


def here(text: str, web: FakeWeb) -> str:
    text = re.sub(r"^comity (crawl|robots) ", r"comity \1 --allow-private ", text)
    text = text.replace('contact="you@your.site"', 'contact="you@your.site", allow_private=True')
    return text.replace("https://books.example/", web.url("books.localhost", "/")).replace("--until 8h", "--until 1s")


def run(command: list[str], folder: Path) -> str:
    """Standard output of a command that ended well."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COMITY_", "XDG_"))}
    environment |= {"HOME": str(folder), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_command_in_the_readme_does_what_is_said(shop: FakeWeb, tmp_path: Path) -> None:
    said: dict[str, str] = {}
    for command in COMMANDS:
        words = here(command, shop).split()
        if words[0] == "make":
            words = recipe(words[1])
        assert words[0] == "comity"
        said[command] = run(words, tmp_path)
    verdict = shop.judge(delay_s=1.0)
    assert verdict.polite, verdict.as_dict()
    assert {line.path for line in shop.lines} == {"/robots.txt", "/", "/a", "/b", "/c"}
    assert "FETCHED" in said["comity status books"]
    assert "robots" in said["comity why https://books.example/ -o books"]
    assert (tmp_path / "books" / "comity.toml").exists()
    assert (tmp_path / "magazine" / "comity.toml").exists()


def recipe(target: str) -> list[str]:
    """What `make` would run last for this target; its environment is the one this test runs in."""
    planned = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    command = planned.splitlines()[-1].split()
    return [Path(command[0]).name, *command[1:]]


@pytest.mark.slow
def test_the_program_in_the_readme_prints_titles_and_prices(shop: FakeWeb, tmp_path: Path) -> None:
    (program,) = PROGRAMS
    assert len([line for line in program.splitlines() if line.strip()]) <= 16
    (tmp_path / "prices.py").write_text(here(program, shop), encoding="utf-8")
    said = run([sys.executable, "prices.py"], tmp_path)
    assert sorted(said.splitlines()) == ["All books\t£9.00", "Apples\t£6.00", "Bees\t£4.00", "Clouds\t£6.00"]
    assert shop.judge(delay_s=1.0).polite


def test_the_readme_names_commands_only_in_blocks_that_are_run() -> None:
    blocks = re.findall(r"^```(\w*)", README, re.MULTILINE)
    assert set(blocks) <= {"console", "python", ""}
    assert len(COMMANDS) >= 8
    assert all(re.match(r"(comity|make) ", command) for command in COMMANDS)
