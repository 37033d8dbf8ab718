"""From TOML to `Settings`, with errors that people can act on.

Invariant: what is read is either wholly understood or refused in one line that says where (file, line, key), what is
wrong, and how to mend it. No key is ever ignored: a misspelt `delay` would be a crawl faster than its owner meant.

Why not the library's own errors: they know the type that failed, but neither the line nor the word that was meant.

Refuses to know what options mean; `policies` judges values against each other, and its complaints get their line here.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from comity.config import quantities
from comity.config.options import PROFILES, Host, Settings
from comity.config.policies import check


class ConfigError(ValueError):
    """One line: where, what, how to mend it."""


class _Problem(Exception):
    def __init__(self, path: tuple[str, ...], text: str) -> None:
        super().__init__(text)
        self.path = path
        self.text = text


Table = dict[str, Any]
Overrides = Mapping[str, Any]
"""Options by dotted name, e.g. ``{"politeness.delay_s": 2.0}``: what flags say. They win over the file."""


def load(path: Path, overrides: Overrides | None = None) -> Settings:
    """Reads a file. Raises `ConfigError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}): TOML files are") from error
    return loads(text, name=str(path), overrides=overrides)


def loads(text: str, *, name: str = "comity.toml", overrides: Overrides | None = None) -> Settings:
    """Reads a text; `name` is what errors call it. Raises `ConfigError`."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        what = str(error)[: place.start()].strip() if place else str(error)
        raise ConfigError(f"{name}{f', line {place[1]}' if place else ''}: this is not TOML: {what}") from error
    return _settings(table, overrides or {}, text, name)


def override(settings: Settings, overrides: Overrides) -> Settings:
    """Settings with some options changed. A change of profile keeps what differed from the old one's defaults. Raises
    `ConfigError`."""
    return _settings(changes(settings), overrides, "", "settings")


def changes(settings: Settings) -> Table:
    """What differs from the profile's defaults, as nested tables."""
    base = defaults(settings.profile)
    table: Table = {} if settings.profile == "comity" else {"profile": settings.profile}
    for section in settings.__struct_fields__:
        if section == "hosts":
            hosts = {name: _difference(host, Host()) for name, host in settings.hosts.items()}
            table |= {"hosts": hosts} if hosts else {}
        elif section != "profile" and (part := _difference(getattr(settings, section), getattr(base, section))):
            table[section] = part
    return table


def defaults(profile: str = "comity") -> Settings:
    """The settings of a profile when nothing is said."""
    settings: Settings = _build(Settings, {"profile": profile, **PROFILES[profile]}, ())
    return settings


def _difference(struct: msgspec.Struct, base: msgspec.Struct) -> Table:
    table: Table = {}
    for info in msgspec.structs.fields(struct):
        value, usual = getattr(struct, info.name), getattr(base, info.name)
        if isinstance(value, msgspec.Struct):
            if part := _difference(value, usual):
                table[info.encode_name] = part
        elif value != usual:
            table[info.encode_name] = value
    return table


# -- building ----------------------------------------------------------------------------------------------------------


def _settings(table: Table, overrides: Overrides, text: str, name: str) -> Settings:
    said: Table = {}
    for option, value in overrides.items():
        if value is not None:
            said = _merged(said, _nested(option.split("."), value))
    try:
        profile = said.get("profile", table.get("profile", "comity"))
        base = PROFILES.get(profile, {}) if isinstance(profile, str) else {}
        settings: Settings = _build(Settings, _merged(_merged(base, table), said), ())
        check(settings)
    except _Problem as problem:
        path, what = problem.path, problem.text
    except ValueError as error:  # a policy's own complaint begins with the option's name
        path, what = _named_in(str(error)), str(error)
    else:
        return settings
    if _nested_has(said, path):
        raise ConfigError(what)
    line = line_of(text, path)
    raise ConfigError(f"{name}{f', line {line}' if line else ''}: {what}")


def _build(kind: type[Any], table: Any, path: tuple[str, ...]) -> Any:
    """A struct from a table, key by key, so that each error has its place."""
    if not isinstance(table, dict):
        raise _Problem(path, f"{'.'.join(path)} is a section: write [{'.'.join(path)}] above its options")
    infos = {info.encode_name: info for info in msgspec.structs.fields(kind)}
    values: Table = {}
    for key, value in table.items():
        here = (*path, key)
        info = infos.get(key)
        if info is None:
            raise _Problem(here, _unknown(here, list(infos)))
        if isinstance(info.type, type) and issubclass(info.type, msgspec.Struct):
            values[info.name] = _build(info.type, value, here)
        elif key == "hosts" and not path:
            if not isinstance(value, dict):
                raise _Problem(here, 'hosts is a section: write [hosts."your.site"] above its options')
            values[info.name] = {name: _build(Host, host, (*here, name)) for name, host in value.items()}
        else:
            values[info.name] = _leaf(info.type, value, here)
    return kind(**values)


def _leaf(kind: Any, value: Any, path: tuple[str, ...]) -> Any:
    shown = show(value)
    try:
        if isinstance(value, str) and path[-1].endswith("_s") and value != "never":
            value = quantities.seconds(value)
        elif isinstance(value, str) and path[-1].endswith("_bytes"):
            value = quantities.size(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError
        return msgspec.convert(value, kind)
    except ValueError as error:
        choices = _choices(kind)
        meant = _suggestion(value, choices) if isinstance(value, str) else ""
        raise _Problem(path, f"{dotted(path)} = {shown}: expected {expected(kind, path[-1])}{meant}") from error


def _unknown(path: tuple[str, ...], known: list[str]) -> str:
    """Also looks for the word in other sections: options are often right and misplaced."""
    where = f"unknown key {dotted(path)}"
    if meant := _suggestion(path[-1], known):
        return where + meant
    homes = [name for name in _all_names() if name.split(".")[-1] == path[-1]]
    return f"{where}; did you mean {' or '.join(homes)}?" if homes else f"{where}; known here: {', '.join(known)}"


def _suggestion(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _all_names(kind: type[msgspec.Struct] = Settings, path: tuple[str, ...] = ()) -> list[str]:
    names: list[str] = []
    for info in msgspec.structs.fields(kind):
        here = (*path, info.encode_name)
        if isinstance(info.type, type) and issubclass(info.type, msgspec.Struct):
            names += _all_names(info.type, here)
        else:
            names.append(".".join(here))
    return names


# -- words -------------------------------------------------------------------------------------------------------------


DURATION = 'seconds (a number, or a text such as "90s", "15m", "2h", "1d")'
SIZE = 'bytes (a whole number, or a text such as "64KiB", "10MiB")'


def expected(kind: Any, name: str) -> str:
    """A type, in words for the person who wrote the file."""
    kind, limits = _bare(kind)
    if get_origin(kind) is Literal:
        return _one_of(get_args(kind))
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        bare, _ = _bare(inner)
        if get_origin(bare) is Literal:
            return "a list of " + ", ".join(show(choice) for choice in get_args(bare))
        return "a list of whole numbers" if bare is int else 'a list of texts, such as ["a", "b"]'
    if get_origin(kind) is Union or type(kind).__name__ == "UnionType":
        return ", or ".join(expected(part, name) for part in get_args(kind) if part is not type(None))
    if name.endswith("_s"):
        return DURATION + limits
    if name.endswith("_bytes"):
        return SIZE + limits
    return {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[kind] + limits


def _one_of(choices: tuple[Any, ...]) -> str:
    return ("one of " if len(choices) > 1 else "") + ", ".join(show(choice) for choice in choices)


def _bare(kind: Any) -> tuple[Any, str]:
    limits = ""
    while get_origin(kind) is Annotated:
        kind, *metas = get_args(kind)
        for meta in metas:
            low = meta.ge if meta.ge is not None else meta.gt
            if low is not None:
                limits = f", {low} to {meta.le}" if meta.le is not None else f", {low} or more"
                if meta.gt is not None:
                    limits = f", more than {low}"
    return kind, limits


def _choices(kind: Any) -> list[str]:
    """The words that a type allows, wherever in it they stand."""
    kind, _ = _bare(kind)
    if get_origin(kind) is Literal:
        return [str(choice) for choice in get_args(kind)]
    return [choice for part in get_args(kind) if part is not ... for choice in _choices(part)]


def show(value: Any) -> str:
    """A value as TOML writes it (dates and tables, which no option takes, as Python does)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = msgspec.json.encode(value).decode()
        return text.replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(show(item) for item in value) + "]"
    return str(value)


def dotted(path: tuple[str, ...]) -> str:
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else show(part) for part in path)


# -- where -------------------------------------------------------------------------------------------------------------


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The line where a key is set, else where its section begins; None when it is not to be found. A line inside a
    multi-line text may be taken for a key: the worst that follows is a wrong number in an error."""
    best: tuple[int, int] | None = None  # (how much of the path, line)
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if header := re.match(r"\[\[?([^\[\]]+)\]", line):
            table = found = _key(header[1])
        elif "=" in line and not line.startswith("#"):
            found = (*table, *_key(line.split("=", 1)[0]))
        else:
            continue
        if found and found == path[: len(found)] and (best is None or len(found) > best[0]):
            best = (len(found), number)
    return best[1] if best else None


def _key(text: str) -> tuple[str, ...]:
    try:
        table: Any = tomllib.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(table, dict) and table:
        name, table = next(iter(table.items()))
        path.append(name)
    return tuple(path)


def _named_in(message: str) -> tuple[str, ...]:
    match = re.match(r"[a-z_]+(?:\.(?:\w+|\"[^\"]*\"))*", message)
    return tuple(part.strip('"') for part in re.findall(r'"[^"]*"|\w+', match[0])) if match else ()


def _nested(names: list[str], value: Any) -> Table:
    return {names[0]: _nested(names[1:], value) if len(names) > 1 else value}


def _nested_has(table: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(table, dict) or name not in table:
            return False
        table = table[name]
    return bool(path)


def _merged(below: Table, above: Table) -> Table:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result
