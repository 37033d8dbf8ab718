"""Where the conformance vectors are, and what we answer otherwise.

The vectors are facts kept outside this repository: in the folder that `COMITY_SHARED` names, else in `shared` beside
the repository. Where they are absent each suite is skipped and says so; nothing else of the tests needs them.

`differences.toml`, beside this file, holds every vector that we rightly answer otherwise (`[file.id]`: our `answer`
and the `rule` that decides), and the ids that wait for a later issue (`[later]`). Each suite asserts our own answer
for the former, so that a difference is kept as deliberately as an agreement.
"""

from __future__ import annotations

import json
import os
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def folder() -> Path | None:
    """The folder that holds the vectors, or None."""
    named = os.environ.get("COMITY_SHARED")
    shared = Path(named) if named else ROOT.parent / "shared"
    path = shared / "conformance"
    return path if path.is_dir() else None


def load(name: str) -> dict[str, Any]:
    """The file of that name, e.g. `load("urls/whatwg.json")`. Skips the calling module when the vectors are absent."""
    where = folder()
    if where is None:
        pytest.skip("no conformance vectors: set COMITY_SHARED to the folder that holds them", allow_module_level=True)
    data: dict[str, Any] = json.loads((where / name).read_text(encoding="utf-8"))
    return data


@lru_cache(maxsize=1)
def _differences() -> dict[str, Any]:
    return tomllib.loads((HERE / "differences.toml").read_text(encoding="utf-8"))


def difference(name: str, identifier: str) -> dict[str, Any] | None:
    """Our own answer to a vector, with the rule that decides: the table `[name.identifier]`, or None."""
    found: dict[str, Any] | None = _differences().get(name, {}).get(identifier)
    return found


def later(name: str) -> frozenset[str]:
    """Ids of vectors in `name` that are not handled yet: expected to fail until the issue named in the file."""
    return frozenset(_differences().get("later", {}).get(name, ()))
