"""The command line, called as people call it but in this process: ``ran = Command(…)("crawl", "-o", "x")``.

Each has a home, a folder and an environment of its own, so that nobody's contact is found and nothing is left behind.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from comity.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def errors(self) -> list[str]:
        return self.err.splitlines()


class Command:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._capsys = capsys
        self.folder = folder
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "home"))
        for name in ("COMITY_CONTACT", "COMITY_TRACEBACK", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)

    def __call__(self, *arguments: str) -> Ran:
        self._capsys.readouterr()
        code = main(arguments)
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        return Ran(code, said.out, said.err)

    def files(self) -> list[str]:
        """What lies in the folder."""
        return sorted(path.name for path in self.folder.iterdir())
