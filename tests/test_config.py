"""Settings: every option once, no key ignored, every error one line that says where and how to mend it."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity import fetch, metadata, politeness, profiles, recrawl, robots, scope, url
from comity.config import (
    PROFILES,
    ConfigError,
    Host,
    Settings,
    changes,
    defaults,
    dumps_commented,
    load,
    loads,
    override,
    policies,
    quantities,
    reference,
)
from comity.config.reading import line_of
from comity.config.writing import value_of
from comity.fetch import address
from comity.model import Cause
from comity.outputs import rows
from comity.parse import Limits
from comity.url import parse

ROOT = Path(__file__).parent.parent


def options(kind: type[msgspec.Struct] = Settings, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every option there is: its path, and what msgspec knows of it."""
    found: list[tuple[tuple[str, ...], Any]] = []
    for info in msgspec.structs.fields(kind):
        here = (*path, info.encode_name)
        if isinstance(info.type, type) and issubclass(info.type, msgspec.Struct):
            found += options(info.type, here)
        elif here == ("hosts",):
            found += options(Host, (*here, "own.example"))
        else:
            found.append((here, info))
    return found


OPTIONS = dict(options())
NAMES = [".".join(path) for path in OPTIONS]


def refused(text: str, **arguments: Any) -> str:
    with pytest.raises(ConfigError) as error:
        loads(text, **arguments)
    message = str(error.value)
    assert "\n" not in message
    return message


# ------------------------------------------------------------------------------------------------------------- options


def test_an_empty_file_is_the_defaults() -> None:
    assert loads("") == Settings() == defaults("comity")


@pytest.mark.parametrize("path", OPTIONS, ids=".".join)
def test_every_option_is_described_and_named_after_its_unit(path: tuple[str, ...]) -> None:
    info = OPTIONS[path]
    meta = next(meta for meta in info.type.__metadata__ if meta.description)
    assert meta.description[0] not in " ."
    assert meta.description[-1] != "."
    if info.default is None:
        assert meta.extra["like"] is not None, "an option that is not set needs an example"
    if isinstance(info.default, float) and not path[-1].endswith(("_factor", "_growth", "_ratio")):
        assert path[-1].endswith("_s"), "a duration is called ..._s"


@pytest.mark.parametrize("path", OPTIONS, ids=".".join)
def test_the_shown_default_or_example_can_be_written_in_a_file(path: tuple[str, ...]) -> None:
    info = OPTIONS[path]
    like = next(meta.extra["like"] for meta in info.type.__metadata__ if meta.description)
    value = like if info.default is None else info.default
    line = f"{path[-1]} = {value_of(path[-1], value)}"
    section = ".".join(f'"{part}"' for part in path[:-1])
    read = loads(f"[{section}]\n{line}\n" if section else line)
    for name in path:
        read = read[name] if isinstance(read, dict) else getattr(read, {"from": "from_"}.get(name, name))
    assert read == value


# ------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "comity.toml, line 1: unknown key x; known here: profile, identity, seeds"),
        ("\n[politeness]\ndely_s = 2", "comity.toml, line 3: unknown key politeness.dely_s; did you mean delay_s?"),
        ("[politness]\ndelay_s = 2", "comity.toml, line 1: unknown key politness; did you mean politeness?"),
        ("[scope]\ndelay_s = 2", "line 2: unknown key scope.delay_s; did you mean politeness.delay_s?"),
        ("[outputs.jsonl]\nmasks = []", "line 2: unknown key outputs.jsonl.masks; did you mean mask?"),
        ('[hosts."a.example"]\ndelay = 1', 'line 2: unknown key hosts."a.example".delay; did you mean delay_s?'),
        ("politeness.delay = 1", "line 1: unknown key politeness.delay; did you mean delay_s?"),
        ("politeness = {delay = 1}", "line 1: unknown key politeness.delay; did you mean delay_s?"),
        ("[identity]\nfrom_ = 'x'", "line 2: unknown key identity.from_; did you mean from?"),
    ],
)
def test_an_unknown_key_is_refused_with_its_line_and_what_was_meant(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[politeness]\n# fast\ndelay_s = "fast"',
            'comity.toml, line 3: politeness.delay_s = "fast": expected seconds (a number, or a text such as "90s"',
        ),
        ("[politeness]\ndelay_s = -1", 'politeness.delay_s = -1: expected seconds (a number, or a text such as "90s"'),
        ("[politeness]\ndelay_s = inf", "politeness.delay_s = inf: expected seconds"),
        ("[politeness]\ndelay_s = nan", "politeness.delay_s = nan: expected seconds"),
        ("[politeness]\ndelay_s = true", "politeness.delay_s = true: expected seconds"),
        ("[politeness]\nhost_backoff = 1", "politeness.host_backoff = 1: expected true or false"),
        ('[scope]\nmode = "hosts"', '= "hosts": expected one of "host", "domain", "any"; did you mean host?'),
        ("[scope]\nmax_depth = 1.5", "scope.max_depth = 1.5: expected a whole number, 0 or more"),
        ('[scope]\nexclude = "x"', 'scope.exclude = "x": expected a list of texts, such as ["a", "b"]'),
        ("[scope]\nexclude = [1]", "scope.exclude = [1]: expected a list of texts"),
        ("[identity]\ncontact = 3", "identity.contact = 3: expected a text"),
        ('[robots]\nmax_bytes = "1MB"', 'robots.max_bytes = "1MB": expected bytes (a whole number, or a text such as'),
        ('[outputs.jsonl]\nmask = ["mail"]', '["mail"]: expected a list of "email", "phone"'),
        ('[hosts."a.example"]\nin_flight = 5', "in_flight = 5: expected a whole number, 1 to 4"),
        ("[address]\nports = [0]", "address.ports = [0]: expected a list of whole numbers"),
        ("[address]\nallow_private = 1", "allow_private = 1: expected true or false, or a list of texts"),
        ("[seeds]\nurls = 2020-01-01", "seeds.urls = 2020-01-01: expected a list of texts"),
        ("scope = 3", "scope is a section: write [scope] above its options"),
        ("hosts = 3", 'hosts is a section: write [hosts."your.site"] above its options'),
        ("[hosts]\nx = 3", "line 2: hosts.x is a section: write [hosts.x] above its options"),
        ('profile = "storm"', 'profile = "storm": expected one of "comity", "stormcrawler"'),
        ("profile = ['comity']", 'profile = ["comity"]: expected one of "comity", "stormcrawler"'),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_in_words(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[politeness]\nper = "ip"', 'line 2: politeness.per = "ip" is not built yet: a host row remembers its last'),
        ('[identity]\nproduct = "a b"', "line 2: identity.product 'a b' cannot be used: "),
        ("[scope]\nx = 1\n".replace("x = 1", 'include = ["("]'), "line 2: scope.include"),
        ("[robots]\nmax_age_s = '2d'", "line 1: robots: 0 <= min_age_s <= max_age_s <= 86400 (RFC 9309 section 2.4"),
        ("[robots]\nmax_redirects = 2", "line 2: robots.max_redirects is at least 5 (RFC 9309"),
        (
            '[address]\nallow_private = ["10.0.0.1/8"]',
            "line 2: address.allow_private: 10.0.0.1/8 has host bits set: a net",
        ),
        (
            '[address]\ndeny = ["x"]',
            "line 2: address.deny: 'x' does not appear to be an IPv4 or IPv6 network: a network",
        ),
        ('[outputs.jsonl]\n\ndrop_fields = ["tittle"]', "line 3: outputs.jsonl.drop_fields: no such field: tittle"),
        ('[hosts."a.example"]\nrobots = "ignore"', 'line 2: hosts."a.example".robots = "ignore" is for your own sites'),
        ('[hosts."https://a.example/"]\n', 'hosts."https://a.example/" is not a host name'),
        ('[hosts."a.example:80"]\n', 'hosts."a.example:80" is not a host name: write it without scheme, port and path'),
        ('[hosts."a b"]\n', 'hosts."a b" is not a host name'),
    ],
)
def test_values_that_no_decision_can_follow_are_refused_with_their_line(text: str, message: str) -> None:
    assert message in refused(text)


def test_what_is_not_toml_is_told_with_its_line(tmp_path: Path) -> None:
    assert refused("[scope]\nmode = \n").startswith("comity.toml, line 2: this is not TOML: Invalid value")
    assert refused("a = 1\na = 2\n").startswith("comity.toml, line 2: this is not TOML: Cannot overwrite")
    file = tmp_path / "c.toml"
    file.write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"c\.toml is not UTF-8 \(byte 5\)"):
        load(file)
    with pytest.raises(ConfigError, match=r"^cannot read .*none\.toml: No such file or directory$"):
        load(tmp_path / "none.toml")
    file.write_text("x = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(ConfigError, match="this is not TOML"):
        load(file)


def test_a_file_is_named_in_its_errors(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[scope]\nmode = 1\n")
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(file))}, line 2: scope\.mode = 1: "):
        load(file)


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb = 2", "b", 2),
        ("[t]\nx = 1\n[u]\nx = 2", "u.x", 4),
        ("[t] # c\n\n  x=1", "t.x", 3),
        ("t.x = 1", "t.x", 1),
        ('["t"]\n"x" = 1', "t.x", 2),
        ("[t]\nx = 1", "t.y", 1),
        ("# t.x = 1\nt = {x = 1}", "t.x", 2),
        ("", "t.x", None),
        ('["a.b"]\nx = 1', "a.b.x", None),
    ],
)
def test_where_a_key_stands(text: str, path: str, line: int | None) -> None:
    assert line_of(text, tuple(path.split("."))) == line


# ----------------------------------------------------------------------------------------------- flags, files, profiles


def test_flags_win_over_the_file_and_none_is_no_flag() -> None:
    text = "[politeness]\ndelay_s = 5\nmin_delay_s = 2\n"
    read = loads(text, overrides={"politeness.delay_s": 0.5, "scope.mode": None, "engine.max_pages": 10})
    assert (read.politeness.delay_s, read.politeness.min_delay_s, read.scope.mode) == (0.5, 2, "domain")
    assert read.engine.max_pages == 10


def test_a_bad_flag_is_not_blamed_on_the_file() -> None:
    message = refused("[politeness]\ndelay_s = 5\n", overrides={"politeness.delay_s": -1})
    assert message.startswith("politeness.delay_s = -1: expected seconds")


def test_settings_made_in_python_can_be_changed() -> None:
    mine = loads('[hosts."a.example"]\nown = true\n[scope]\nmode = "any"\n')
    changed = override(mine, {"politeness.delay_s": "2s"})
    assert changed.politeness.delay_s == 2.0
    assert changed.hosts == mine.hosts
    assert changed.scope.mode == "any"
    assert override(mine, {}) == mine
    with pytest.raises(ConfigError, match=r"unknown key politeness\.dely_s; did you mean delay_s"):
        override(mine, {"politeness.dely_s": 1})


def test_a_profile_changes_defaults_and_nothing_that_was_said() -> None:
    read = loads('profile = "stormcrawler"\n[politeness]\non_long_delay = "obey"\n')
    assert read.politeness.crawl_delay_limit_s == 30
    assert read.politeness.on_long_delay == "obey"
    assert loads("", overrides={"profile": "stormcrawler"}) == defaults("stormcrawler")
    assert changes(read) == {"profile": "stormcrawler", "politeness": {"on_long_delay": "obey"}}
    assert override(read, {"profile": "comity"}).politeness.crawl_delay_limit_s == 86_400


def test_a_profile_names_options_that_exist_and_differ() -> None:
    for sections in PROFILES.values():
        for section, said in sections.items():
            for name, value in said.items():
                assert getattr(getattr(Settings(), section), name) != value


# ------------------------------------------------------------------------------------------------------------- writing

OTHERS: dict[str, list[Any]] = {
    "profile": ["stormcrawler"],
    "identity.contact": ["me@a.example", 'https://a.example/\u00e9?"\\'],
    "identity.product": ["acme-news"],
    "scope.mode": ["any"],
    "scope.include": [("^https://a\\.example/", 'x"y'), ("\x7f\t\n\U0001f600",)],
    "scope.max_depth": [0, 7],
    "politeness.delay_s": [0.0, 0.25, 90.0, 5400.0, 1e-7, 123456.789],
    "politeness.host_backoff": [False],
    "robots.max_bytes": [600_000, 2**20],
    "address.allow_private": [True, ("10.0.0.0/8",)],
    "address.ports": [(80, 443)],
    "lifecycle.min_error_span_s": [0.0, 3600.0],
    "outputs.jsonl.mask": [("email",), ("email", "phone")],
    "outputs.jsonl.drop_fields": [("title",)],
    "hosts": [{"own.example": {"own": True, "robots": "ignore"}}, {"a.example": {}, "xn--a.example": {"in_flight": 4}}],
}


@given(st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in OTHERS.items()}))
@settings(deadline=None, max_examples=100)
def test_what_is_written_is_read_back(said: dict[str, Any]) -> None:
    mine = loads("", overrides=said)
    text = dumps_commented(mine)
    assert loads(text) == mine
    assert dumps_commented(loads(text)) == text


@pytest.mark.parametrize("profile", PROFILES)
def test_every_commented_option_can_be_taken_as_it_stands(profile: str) -> None:
    text = dumps_commented(defaults(profile))
    bare = "\n".join(line.removeprefix("#") if re.match(r"#[\w\[]", line) else line for line in text.splitlines())
    read = loads(bare)
    assert "your.site" in read.hosts
    shown = {path for path, _ in options() if re.search(rf"^#?{path[-1]} = ", text, re.MULTILINE)}
    assert shown == set(OPTIONS)


def test_a_new_file_says_nothing_that_its_owner_did_not() -> None:
    said = [line for line in dumps_commented(loads("[politeness]\ndelay_s = 2\n")).splitlines() if "=" in line]
    assert [line for line in said if not line.startswith("#")] == ["delay_s = 2"]
    assert all(len(line) <= 100 for line in dumps_commented(Settings()).splitlines())


def test_the_reference_page_is_the_options() -> None:
    page = ROOT / "docs" / "configuration.md"
    assert page.read_text() == reference(), (
        'write it again: python -c "import comity.config as c; print(c.reference())"'
    )


# ---------------------------------------------------------------------------------------------------------- quantities


@pytest.mark.parametrize(
    ("text", "value"),
    {
        "90s": 90,
        "15m": 900,
        "2h": 7200,
        "1d": 86_400,
        "1w": 604_800,
        "500ms": 0.5,
        "1h30m": 5400,
        "1.5h": 5400,
        "1d 2h": 93_600,
        "0s": 0,
        " 1 m ": 60,
    }.items(),
)
def test_durations(text: str, value: float) -> None:
    assert quantities.seconds(text) == value


@pytest.mark.parametrize("text", ["", "1", "s", "-1s", "1y", "1s1", "1,5s", "1 s x", "1e3s", "9" * 400 + "s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        quantities.seconds(text)


@pytest.mark.parametrize(("text", "value"), [("1B", 1), ("64KiB", 65_536), ("10MiB", 10_485_760), ("1 GiB", 2**30)])
def test_sizes(text: str, value: int) -> None:
    assert quantities.size(text) == value


@pytest.mark.parametrize("text", ["", "1", "1KB", "1kib", "1.5MiB", "-1B", "MiB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        quantities.size(text)


@given(st.floats(0, 1e12) | st.integers(0, 10**9).map(float))
@settings(deadline=None)
def test_a_shown_duration_is_the_duration(value: float) -> None:
    shown = quantities.show_seconds(value)
    assert (quantities.seconds(shown) if shown[-1].isalpha() else float(shown)) == value


@given(st.integers(0, 2**50))
@settings(deadline=None)
def test_a_shown_size_is_the_size(value: int) -> None:
    shown = quantities.show_size(value)
    assert (quantities.size(shown) if shown[-1].isalpha() else int(shown)) == value


# ------------------------------------------------------------------------------------------------------------ policies


def test_what_is_said_of_one_host_is_for_it_alone() -> None:
    read = loads('[hosts."WWW.Own.example."]\ndelay_s = 0.2\nin_flight = 3\nown = true\nrobots = "ignore"\n')
    own = policies.politeness_policy(read, "www.own.example")
    assert (own.delay_s, own.in_flight) == (0.2, 3)
    assert policies.host_settings(read, "www.own.example").robots == "ignore"
    other = policies.politeness_policy(read, "a.example")
    assert (other.delay_s, other.in_flight) == (1.0, 1)
    assert policies.politeness_policy(read) == other


def test_by_domain_a_host_speaks_for_its_domain() -> None:
    read = loads('[politeness]\nper = "domain"\n[hosts."www.own.example"]\ndelay_s = 0.2\n')
    assert policies.politeness_policy(read, "own.example").delay_s == 0.2
    assert policies.scope_of(read, [parse("https://www.own.example/")]).by_domain


@pytest.mark.parametrize("name", PROFILES)
def test_unset_settings_are_the_policies_own_defaults(name: str) -> None:
    """Nothing is decided twice: the defaults written here are those of the decisions."""
    ours = defaults(name)
    assert policies.robots_policy(ours) == robots.Policy()
    assert policies.clean_ups(ours) == url.NONE
    assert policies.row_fields(ours) == rows.ALL
    assert policies.metadata_policy(ours) == metadata.Policy()
    assert policies.guard(ours) == address.Guard()
    assert policies.fetch_limits(ours) == fetch.Limits()
    assert policies.parse_limits(ours) == Limits()
    assert policies.profile(ours, once=False) == profiles.PROFILES[name]
    schedule, theirs = policies.schedule(ours), recrawl.SCHEDULES[name]
    for cause in Cause:
        assert schedule.error_s.get(cause, schedule.error_other_s) == theirs.error_s.get(cause, theirs.error_other_s)
    assert dataclasses.replace(schedule, error_s=theirs.error_s) == theirs
    if name == "comity":
        assert policies.politeness_policy(ours) == politeness.Policy()
        assert policies.scope_of(ours, ()) == scope.from_seeds("domain", ())


def test_an_error_row_lasts_a_day_in_a_run_and_no_time_in_a_single_crawl_unless_told() -> None:
    assert policies.profile(Settings(), once=False).min_error_span_s == 86_400
    assert policies.profile(Settings(), once=True).min_error_span_s == 0
    told = loads("[lifecycle]\nmin_error_span_s = '1h'\n")
    assert policies.profile(told, once=True).min_error_span_s == 3600


def test_redirects_without_a_limit_have_none_anywhere() -> None:
    read = loads("[lifecycle]\nredirect_loops = false\n")
    assert policies.profile(read, once=True).max_hops is None
    assert policies.scope_of(read, ()).max_hops > 10**9


@pytest.mark.parametrize(
    ("value", "everything", "networks"),
    [("true", True, []), ("false", False, []), ('["10.1.0.0/16", "fd00::/8"]', False, ["10.1.0.0/16", "fd00::/8"])],
)
def test_inside_is_all_nothing_or_named_networks(value: str, everything: bool, networks: list[str]) -> None:
    """SSRF-11."""
    guard = policies.guard(loads(f"[address]\nallow_private = {value}\n"))
    assert (guard.allow_private, [str(network) for network in guard.allow]) == (everything, networks)


def test_never_is_a_word() -> None:
    read = loads('[recrawl]\nfetched_s = "never"\nerror_robots_s = "30d"\n')
    assert policies.schedule(read).fetched_s is None
    assert policies.schedule(read).error_s[Cause.ROBOTS] == 30 * 86_400
    assert 'fetched_s = "nevr": expected seconds (a number' in refused('[recrawl]\nfetched_s = "nevr"\n')
    assert 'or "never"; did you mean never?' in refused('[recrawl]\nfetched_s = "nevr"\n')


def readers() -> list[str]:
    """The source of every function that reads settings."""
    package = ROOT / "src" / "comity"
    files = [file for file in package.rglob("*.py") if file.parent.name != "config" or file.stem == "policies"]
    functions = [
        ast.get_source_segment(text, node) or ""
        for text in (file.read_text() for file in files)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [source for source in functions if "settings" in source or "chosen" in source]


READERS = readers()


@pytest.mark.parametrize("path", OPTIONS, ids=".".join)
def test_no_option_is_without_effect(path: tuple[str, ...]) -> None:
    """Some function that takes this section of the settings takes this option of it."""
    *section, name = (part.replace("from", "from_") for part in path if part != "own.example")
    where = ".".join(section)
    if where == "hosts":
        taken, reads = r"host_settings\(|\.hosts\b", rf"\b(host|own|said)\.{name}\b"
    else:
        taken = rf"\.{re.escape(where)}\b" if where else "settings"
        reads = rf"\.{re.escape(where)}\.{name}\b|\bchosen\.{name}\b" if where else rf"settings\.{name}\b"
    assert any(re.search(taken, source) and re.search(reads, source) for source in READERS)
