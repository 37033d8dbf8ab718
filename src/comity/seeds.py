"""Where a crawl begins: URLs from the command line, from files and from standard input.

Owns: the format of a seeds file. One URL a line, then, each after a tab, ``key=value`` metadata, as in StormCrawler's
seed files; ``isSitemap=true`` and ``isFeed=true`` say what the URL is. Blank lines and lines that begin with ``#`` are
skipped. UTF-8 (with or without a byte order mark) or UTF-16 with one; any line ends; gzip too.

Invariant: every line ends up as a seed, as a problem with its place and reason, or as a comment. One bad line never
costs another its visit, and nothing is mended in silence: what was read otherwise than written is noted.

Refuses to know: scope, robots.txt, the frontier. A seed is only a URL that somebody meant.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from comity.model import Metadata
from comity.url import NONE, CleanUps, InvalidUrl, Url, is_loopback_name, parse

ARGUMENT = "command line"


class SeedsUnreadable(ValueError):
    """A seeds file that cannot be opened or read at all. One line, with its name."""


@dataclass(frozen=True, slots=True)
class Seed:
    url: Url
    metadata: Metadata = field(default_factory=dict)
    is_sitemap: bool = False
    is_feed: bool = False
    place: str = ""  # "seeds.txt, line 3"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about one line, for people. `place` says where, e.g. "seeds.txt, line 3"."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Seeds:
    """What was read. `seeds` are in the order given, one for each key; `problems` are lines that gave no seed; `notes`
    tell what was read otherwise than written."""

    seeds: tuple[Seed, ...] = ()
    problems: tuple[Remark, ...] = ()
    notes: tuple[Remark, ...] = ()
    repeats: int = 0  # seeds left out because an earlier one has the same key

    @property
    def local(self) -> bool:
        """Is every seed on this machine itself? Not when there is none."""
        return bool(self.seeds) and all(is_loopback_name(seed.url.host) for seed in self.seeds)


def read(
    arguments: Iterable[str] = (),
    files: Sequence[str | Path] = (),
    *,
    stdin: BinaryIO | None = None,
    clean: CleanUps = NONE,
) -> Seeds:
    """Seeds from arguments (each one URL) and files ("-": `stdin`). Raises `SeedsUnreadable`."""
    seeds: dict[str, Seed] = {}
    problems: list[Remark] = []
    notes: list[Remark] = []
    repeats = 0
    for place, line in _lines(arguments, files, stdin):
        try:
            seed = _seed(line, place, clean, notes)
        except ValueError as error:
            problems.append(Remark(place, str(error)))
            continue
        if seeds.setdefault(seed.url.key, seed) is not seed:
            repeats += 1
    return Seeds(tuple(seeds.values()), tuple(problems), tuple(notes), repeats)


def append(path: Path, lines: Iterable[str]) -> None:
    """Adds lines to a seeds file, those left out that stand there already. Raises OSError."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
    known = set(text.splitlines())
    new = [line for line in dict.fromkeys(lines) if line not in known]
    if new:
        with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write("" if not text or text.endswith("\n") else "\n")
            file.writelines(f"{line}\n" for line in new)


def _lines(arguments: Iterable[str], files: Sequence[str | Path], stdin: BinaryIO | None) -> Iterator[tuple[str, str]]:
    for argument in arguments:
        yield ARGUMENT, argument
    for name in files:
        shown = "standard input" if str(name) == "-" else str(name)
        try:
            if str(name) != "-":
                with Path(name).open("rb") as file:
                    yield from _numbered(shown, file)
            elif stdin is not None:
                yield from _numbered(shown, io.BytesIO(stdin.read()))  # which stays open: it is not ours
            else:
                raise SeedsUnreadable("the seeds are to come from standard input, and there is none")
        except (OSError, EOFError, zlib.error) as error:  # the last two: a damaged gzip file
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            raise SeedsUnreadable(f"cannot read the seeds in {shown}: {reason}") from error


def _numbered(shown: str, raw: BinaryIO) -> Iterator[tuple[str, str]]:
    file = io.BufferedReader(raw)  # type: ignore[type-var]  # any object with readinto will do
    if file.peek(2)[:2] == b"\x1f\x8b":
        file = io.BufferedReader(gzip.GzipFile(fileobj=file))  # type: ignore[assignment]
    if file.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        text = io.TextIOWrapper(file, "utf-16", errors="replace")
    else:
        text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape")  # a bad byte is one line's problem
    for number, line in enumerate(text, start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield f"{shown}, line {number}", line.rstrip("\n")


# What people write when they mean a host: "a.example/x", "localhost:8000", "192.0.2.1".
_LABEL = r"[^\s/?#:@\[\].]+"
_HOST_LIKE = re.compile(
    rf"(?P<host>localhost|(?:{_LABEL}\.)+{_LABEL}|\[[0-9a-f:.]+\])\.?(?::\d{{1,5}})?(?:[/?#].*)?", re.IGNORECASE
)


def _seed(line: str, place: str, clean: CleanUps, notes: list[Remark]) -> Seed:
    """Raises ValueError, whose text is the reason."""
    if bad := re.search("[\udc80-\udcff]", line):
        position = len(line[: bad.start()].encode("utf-8", "surrogateescape")) + 1
        raise ValueError(
            f"not UTF-8 (byte 0x{ord(bad[0]) - 0xDC00:02X} at position {position}): "
            "save the file as UTF-8, or write the URL with escapes"
        )
    text, *fields = line.split("\t")
    text = text.strip()
    if re.search(r"\s", text):
        raise ValueError(f"there is white space in the URL {text!r}; metadata follow a tab")
    if match := _HOST_LIKE.fullmatch(text):
        if place == ARGUMENT and os.path.isfile(text):
            raise ValueError(f"{text!r} is a file: give it with --seeds")
        scheme = "http" if is_loopback_name(match["host"]) else "https"
        notes.append(Remark(place, f"{text!r} has no scheme and is read as {scheme}://{text}"))
        text = f"{scheme}://{text}"
    try:
        url = parse(text, clean)
    except InvalidUrl as error:
        raise ValueError(f"{text!r} cannot be crawled: {error}") from error
    if url.had_credentials:
        notes.append(Remark(place, f"user name and password are left out: {url.href}"))
    metadata: dict[str, tuple[str, ...]] = {}
    for item in filter(str.strip, fields):
        key, equals, value = item.partition("=")
        if equals and key.strip():
            metadata[key.strip()] = (*metadata.get(key.strip(), ()), value.strip())
        else:
            notes.append(Remark(place, f"{item.strip()!r} is not key=value and is left out"))
    is_sitemap = _true(metadata.pop("isSitemap", ()))
    is_feed = _true(metadata.pop("isFeed", ()))
    return Seed(url, metadata, is_sitemap, is_feed, place)


def _true(values: tuple[str, ...]) -> bool:
    return any(value.lower() == "true" for value in values)
