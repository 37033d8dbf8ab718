"""The settings of a crawl.

`options` defines every option once; `reading` makes `Settings` from TOML and flags and refuses what it does not
understand; `writing` makes the commented ``comity.toml`` and the reference page; `policies` dissolves settings into the
values that the decisions take; `quantities` reads and writes durations and sizes.
"""

from comity.config.options import PROFILES, Host, Settings
from comity.config.reading import ConfigError, changes, defaults, load, loads, override
from comity.config.writing import dumps_commented, reference

__all__ = [
    "PROFILES",
    "ConfigError",
    "Host",
    "Settings",
    "changes",
    "defaults",
    "dumps_commented",
    "load",
    "loads",
    "override",
    "reference",
]
