"""The commented ``comity.toml`` and the reference page, both made from the options.

Invariant: reading what `dumps_commented` wrote gives the same settings, and taking away the ``#`` before any option it
shows gives a file that can be read. Defaults are written as comments, so that a crawl follows a later comity's defaults
unless its owner has chosen.

Refuses to know where the texts go.
"""

from __future__ import annotations

import textwrap
from typing import Annotated, Any, get_args, get_origin

import msgspec

from comity.config import quantities
from comity.config.options import PROFILES, Host, Settings
from comity.config.reading import DURATION, SIZE, changes, defaults, expected, show

WIDTH = 100
HEAD = """\
Settings of a comity crawl. Lines that begin with "#" and a name show the defaults: take the "#" away to change one.
Durations are seconds, or texts such as "90s", "15m", "2h", "1d"; sizes are bytes, or "64KiB", "10MiB".
The whole list, with reasons: docs/configuration.md."""
EXAMPLE_HOST = "your.site"


def dumps_commented(settings: Settings) -> str:
    """A ``comity.toml`` that says what `settings` says, with every other option as a comment."""
    said = changes(settings)
    base = defaults(settings.profile)
    lines = _comment(HEAD)
    for info in msgspec.structs.fields(Settings):
        if not _is_struct(info.type) and info.name != "hosts":
            lines += [*_option(info, getattr(base, info.name), said)]
    for info in msgspec.structs.fields(Settings):
        if _is_struct(info.type):
            lines += _section(info.type, (info.encode_name,), getattr(base, info.name), said.get(info.encode_name, {}))
    for name in settings.hosts or [EXAMPLE_HOST]:
        lines += ["", *_comment(_theory(Host)), f"{'' if name in settings.hosts else '#'}[hosts.{show(name)}]"]
        for info in msgspec.structs.fields(Host):
            lines += _option(info, info.default, said.get("hosts", {}).get(name, {}))
    return "\n".join(lines) + "\n"


def _section(kind: Any, path: tuple[str, ...], base: Any, said: dict[str, Any]) -> list[str]:
    infos = msgspec.structs.fields(kind)
    lines = (
        [] if all(_is_struct(info.type) for info in infos) else ["", *_comment(_theory(kind)), f"[{'.'.join(path)}]"]
    )
    for info in infos:
        if _is_struct(info.type):
            below = said.get(info.encode_name, {})
            lines += _section(info.type, (*path, info.encode_name), getattr(base, info.name), below)
        else:
            lines += _option(info, getattr(base, info.name), said)
    return lines


def _option(info: Any, default: Any, said: dict[str, Any]) -> list[str]:
    what, why, like = _meta(info.type)
    name = info.encode_name
    comment = _comment(what + (f" ({why})" if why else ""))
    if name in said:
        return ["", *comment, f"{name} = {value_of(name, said[name])}"]
    if default is None:
        return ["", *comment, *_comment("not set unless you do, for example:"), f"#{name} = {value_of(name, like)}"]
    return ["", *comment, f"#{name} = {value_of(name, default)}"]


def value_of(name: str, value: Any) -> str:
    """A value as TOML, in the unit that reads best."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        shown = None
        if name.endswith("_s"):
            shown = quantities.show_seconds(value)
        elif name.endswith("_bytes"):
            shown = quantities.show_size(int(value))
        if shown is not None:
            return shown if shown[-1].isdigit() else show(shown)
    return show(value)


def _comment(text: str) -> list[str]:
    return [f"# {line}" for part in text.splitlines() for line in textwrap.wrap(part, WIDTH - 2)]


def _theory(kind: type[Any]) -> str:
    return " ".join((kind.__doc__ or "").split())


def _meta(kind: Any) -> tuple[str, str, Any]:
    """What an option means, why its default is so, an example."""
    while get_origin(kind) is Annotated:
        kind, *metas = get_args(kind)
        for meta in metas:
            if meta.description:
                extra = meta.extra or {}
                return meta.description, extra.get("why", ""), extra.get("like")
    raise TypeError("an option without a description")  # a fault of ours; a test reads every option


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


# -- the reference page ------------------------------------------------------------------------------------------------


PREFACE = """\
# Configuration

A crawl's settings are in its `comity.toml`. Flags win over the file, the file wins over the defaults below. A key that
does not exist is an error, so that no misspelt one is ever ignored.

Durations (`…_s`) are seconds, or texts such as `"90s"`, `"15m"`, `"1h30m"`, `"7d"`. Sizes (`…_bytes`) are bytes, or
`"64KiB"`, `"10MiB"`. This page is made from the options themselves; `comity init DIR` writes the same as a file.
"""


def reference() -> str:
    """docs/configuration.md."""
    top = [info for info in msgspec.structs.fields(Settings) if not _is_struct(info.type) and info.name != "hosts"]
    parts = [*PREFACE.splitlines(), "", *_table(top, Settings())]
    for info in msgspec.structs.fields(Settings):
        if _is_struct(info.type):
            parts += _page(info.type, (info.encode_name,), getattr(Settings(), info.name))
    parts += ["", '## [hosts."your.site"]', "", _theory(Host), "", *_table(msgspec.structs.fields(Host), Host())]
    parts += ["", "## What `profile` changes", "", "| option | comity | stormcrawler |", "|---|---|---|"]
    for section, options in PROFILES["stormcrawler"].items():
        for name, value in options.items():
            ours = value_of(name, getattr(getattr(Settings(), section), name))
            parts.append(f"| `{section}.{name}` | `{ours}` | `{value_of(name, value)}` |")
    return "\n".join(parts) + "\n"


def _page(kind: Any, path: tuple[str, ...], base: Any) -> list[str]:
    infos = msgspec.structs.fields(kind)
    lines = ["", f"## [{'.'.join(path)}]", "", _theory(kind)]
    if flat := [info for info in infos if not _is_struct(info.type)]:
        lines += ["", *_table(flat, base)]
    for info in infos:
        if _is_struct(info.type):
            lines += _page(info.type, (*path, info.encode_name), getattr(base, info.name))
    return lines


def _table(infos: Any, base: Any) -> list[str]:
    lines = ["| option | default | takes | meaning, and why |", "|---|---|---|---|"]
    for info in infos:
        what, why, like = _meta(info.type)
        default = getattr(base, info.name)
        shown = "not set" if default is None else f"`{value_of(info.encode_name, default)}`"
        takes = expected(info.type, info.encode_name).replace(DURATION, "a duration").replace(SIZE, "a size")
        meaning = what + (f" ({why})" if why else "")
        if like is not None:
            meaning += f", for example `{value_of(info.encode_name, like)}`"
        lines.append(f"| `{info.encode_name}` | {shown} | {takes} | {meaning} |".replace("\n", " "))
    return lines
