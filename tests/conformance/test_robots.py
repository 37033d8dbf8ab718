"""Every robots vector: the rules of four other projects' tests, real files, parser facts, and what a fetch means.

Required and recommended vectors are asserted, disputed or not, but for those in `differences.toml` under `[robots]`,
where our own answer is asserted. Optional ones are run: either answer is right, crashing or hanging is not.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest
from vectors import difference, load

from comity.model import Access, Failed, Failure, HttpError, Outcome, Page, Redirect, RobotsState
from comity.robots import (
    ROBOTS_PATH,
    Policy,
    compile,
    consult,
    follow,
    must_ask,
    parse,
    product_token_problem,
    speaks,
    verdict,
)
from comity.robots.grammar import STANDARD, records
from comity.robots.paths import match_path, segments
from comity.url import InvalidUrl
from comity.url import parse as parse_url

NOW = 1_800_000_000.0
DAY = 86_400.0
ORIGIN = "https://origin.example"

Vector = dict[str, Any]


def vectors(*names: str) -> list[Any]:
    return [
        pytest.param(vector, id=vector["id"]) for name in names for vector in load(f"robots/{name}.json")["vectors"]
    ]


def body_of(vector: Vector) -> bytes:
    if "robots_b64" in vector:
        return base64.b64decode(vector["robots_b64"])
    if "robots_txt_parts" in vector:
        return "".join(text * count for text, count in vector["robots_txt_parts"]).encode()
    return str(vector["robots_txt"]).encode()


def target_of(vector: Vector) -> str:
    url = "".join(text * count for text, count in vector["url_parts"]) if "url_parts" in vector else vector["url"]
    try:
        return parse_url(url).target
    except InvalidUrl:
        return "/"


@pytest.mark.parametrize("vector", vectors("google", "crawler_commons", "protego", "other"))
def test_rules(vector: Vector) -> None:
    origin = str(vector["robots_url"]).removesuffix(ROBOTS_PATH) if "robots_url" in vector else ORIGIN
    rules = compile(parse(body_of(vector)), vector.get("product_token") or "unlistedbot", origin)
    answers: dict[str, Any] = {
        "expected_crawl_delay_s": rules.crawl_delay_s,
        "expected_sitemaps": [url for url, _ in rules.sitemaps],
    }
    if "expected_allowed" in vector:
        answers["expected_allowed"] = verdict(rules, target_of(vector)).allowed
    if vector["level"] == "optional":
        return
    ours = difference("robots", vector["id"])
    for fact, answer in answers.items():
        if fact in vector:
            assert answer == (vector[fact] if ours is None else ours["answer"]), fact


@pytest.mark.parametrize("vector", vectors("realworld"))
def test_real_files(vector: Vector) -> None:
    file = parse(body_of(vector))
    for check in vector["checks"]:
        found = verdict(compile(file, check["product_token"], ORIGIN), target_of(check))
        assert found.allowed is check["expected_allowed"], check
    for token, delay_s in vector["expected_crawl_delay_s"].items():
        assert compile(file, token, ORIGIN).crawl_delay_s == delay_s
    if "expected_sitemaps" in vector:
        ours = difference("robots", vector["id"])
        expected = vector["expected_sitemaps"] if ours is None else ours["answer"]
        assert [url for url, _ in compile(file, "ourbot", ORIGIN).sitemaps] == expected


@pytest.mark.parametrize("vector", vectors("parser_facts"))
def test_parser_facts(vector: Vector) -> None:
    facts: dict[str, Any] = {}
    match vector["kind"]:
        case "valid_product_token":
            facts["expected_valid"] = product_token_problem(vector["product_token"]) is None
        case "url_to_match_path":
            facts["expected_path"] = match_path(target_of(vector))
        case "rule_path_escape":
            parts, anchored = segments(vector["rule_path"].encode().decode("latin-1"))
            facts["expected_escaped"] = "*".join(parts) + "$" * anchored
        case "parse":
            file = parse(body_of(vector))
            facts["expected_recognised_directives"] = file.records
            facts["expected_unknown_directives"] = file.unknown
            facts["expected_sitemaps"] = [value for value, _ in file.sitemaps]
            facts["expected_last_line"] = max(line for line, *_ in records(body_of(vector)))
        case "parse_lines":
            facts["expected_recognised_directives"] = parse(body_of(vector)).records
            found = {line: field for line, field, _, _ in records(body_of(vector))}
            for line in vector["expected_lines"]:
                assert (line["line"] in found) is line["has_directive"]
                if line["field"] in STANDARD:
                    assert found[line["line"]] == line["field"]
        case kind:
            pytest.fail(f"a kind of vector that this suite does not know: {kind}")
    if vector["level"] == "optional":
        return
    for fact, answer in facts.items():
        if fact in vector:
            assert answer == vector[fact], fact


NETWORK = {
    "timeout": Failure.TIMEOUT_TOTAL,
    "dns_failure": Failure.DNS,
    "connection_refused": Failure.REFUSED,
    "tls_failure": Failure.TLS,
    "body_cut_off": Failure.CUT_OFF,
}


def outcome_of(status: int | None, network_error: str | None) -> Outcome | None:
    if network_error is not None:
        return Failed(NETWORK[network_error])
    if status is None:
        return None
    if 200 <= status < 300:
        return Page(status, (), b"" if status == 204 else b"User-agent: *\nDisallow: /no\n")
    if 300 <= status < 400:
        return Redirect(status, (), "/r", "https://b.example/r")
    return HttpError(status, ())


def access_of(state: RobotsState, body: bytes | None, now: float, policy: Policy) -> str:
    """Our state in the words of the vectors."""
    if must_ask(state, now):
        return "refetch"
    match speaks(state, now, policy):
        case Access.RULES if state.access is Access.UNREACHABLE or body is None:
            return "use_cached_copy"
        case Access.RULES:
            return "parse_body" if body else "allow_all"
        case Access.ALLOW:
            return "allow_all"
        case _:
            return "disallow_all"


@pytest.mark.parametrize("vector", vectors("fetch_status"))
def test_what_a_fetch_means(vector: Vector) -> None:
    if "expected_robots_url" in vector:
        assert parse_url(vector["url"]).origin + ROBOTS_PATH == vector["expected_robots_url"]
        return
    policy = Policy(forbidden="allow")  # the RFC's reading of 401 and 403; ours is in test_robots_access
    previous: RobotsState | None = None
    if "cached_copy_age_s" in vector:
        previous = consult(Page(200, (), b"x"), 0, None, NOW - vector["cached_copy_age_s"], policy)[0]
    if "unreachable_for_days" in vector:
        previous = consult(HttpError(503, ()), 0, None, NOW - vector["unreachable_for_days"] * DAY, policy)[0]
    hops = vector.get("redirect_hops", 0)
    redirect = Redirect(vector.get("redirect_status", 301), (), "/r", "https://b.example/r")
    followed = all(follow(redirect, hop, policy) == redirect.target for hop in range(hops))
    outcome = outcome_of(vector.get("final_status", vector.get("http_status")), vector.get("network_error"))
    if outcome is None:
        assert previous is not None
        state, body = previous, None
    else:
        state, body = consult(outcome if followed else redirect, hops, previous, NOW, policy)
    deferred = state.access is Access.UNREACHABLE and speaks(state, NOW, policy) is Access.UNREACHABLE
    if vector["level"] == "optional":
        return
    assert access_of(state, body, NOW, policy) == vector["expected_access"]
    assert deferred is vector["expected_deferred"]
