"""Where a crawl is: from what a person names to a directory, its settings and its seeds.

A crawl may be named by its directory or by a file of settings; the crawl of a file is the folder that the file lies in,
because paths in it count from there. All seeds that a crawl was ever given are in its settings and its files of seeds:
the scope is what they span together, whatever this run's command line says.

Owns no file: `comity.crawldir` makes them and `comity.seeds` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from comity import crawldir, seeds
from comity.cli.exits import Exit
from comity.cli.faults import Trouble
from comity.config import Settings, load, policies
from comity.crawldir import CrawlDir
from comity.seeds import Seed, Seeds


@dataclass(frozen=True)
class Place:
    directory: CrawlDir
    settings: Settings  # as the file says
    config: Path

    @property
    def frontier(self) -> Path:
        return self.directory.root / self.settings.frontier.path


def find(path: Path) -> Place:
    """The crawl that a person names. Raises `crawldir.NotACrawl`, `config.ConfigError`."""
    if path.suffix == ".toml" and path.is_file():
        return Place(CrawlDir(path.parent), load(path), path)
    directory = crawldir.at(path)
    return Place(directory, load(directory.config), directory.config)


def frontier_of(place: Place) -> Path | None:
    """The file of the frontier; None before the first run. Raises `Trouble` when there never is one."""
    if place.settings.frontier.kind == "memory":
        raise Trouble(
            Exit.NOT_FOUND,
            f'{place.directory.root} keeps nothing to look at: frontier.kind is "memory" in its settings',
        )
    return place.frontier if place.frontier.exists() else None


def default_directory(first: Seed) -> Path:
    """Where a crawl goes that was given no directory: ``crawl-<first seed's host>`` in the current folder."""
    return Path("crawl-" + re.sub(r"[^a-z0-9.-]+", "-", first.url.host.lower()).strip("-."))


def stored_seeds(place: Place) -> Seeds:
    """What the crawl was given before: the settings' URLs, the lines of their files, and those of ``seeds.txt``, where
    seeds given later are kept. That one may be missing, any other may not."""
    chosen = place.settings.seeds
    files = dict.fromkeys([*(place.directory.root / name for name in chosen.files), place.directory.seeds])
    there = [file for file in files if file.exists() or file != place.directory.seeds]
    found = seeds.read(chosen.urls, there, clean=policies.clean_ups(place.settings))
    where = f"{place.config}, seeds.urls"

    def placed(remarks: Sequence[seeds.Remark]) -> tuple[seeds.Remark, ...]:
        return tuple(replace(one, place=where) if one.place == seeds.ARGUMENT else one for one in remarks)

    return replace(found, problems=placed(found.problems), notes=placed(found.notes))


def together(*groups: Iterable[Seed]) -> tuple[Seed, ...]:
    """All seeds in order, one for each key: the first."""
    known: dict[str, Seed] = {}
    for group in groups:
        for seed in group:
            known.setdefault(seed.url.key, seed)
    return tuple(known.values())


def lines(chosen: Iterable[Seed]) -> list[str]:
    """Seeds as lines of a file of seeds."""
    written = []
    for seed in chosen:
        fields = [f"{key}={value}" for key, values in seed.metadata.items() for value in values]
        fields += ["isSitemap=true"] * seed.is_sitemap + ["isFeed=true"] * seed.is_feed
        written.append("\t".join([seed.url.href, *fields]))
    return written
