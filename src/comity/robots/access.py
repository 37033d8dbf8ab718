"""What became of the request for /robots.txt, and what we may do until the next one (RFC 9309, section 2.3.1).

Invariant: `consult` is total over everything a request can end in, and only two ends open a site: a file that was read,
and a client error that says there is none. Whatever else happens, nobody has allowed anything yet, so the host waits.
Of all the crawlers read for this project most get this row wrong, by letting an error fall through to "allowed".

The table (docs/architecture.md, "Robots"):

==================================================  ======================================  ==========================
answer                                              access                                  kept for
==================================================  ======================================  ==========================
2xx                                                 RULES                                   Cache-Control, 5 min … 24 h
401, 403                                            DISALLOW (`forbidden`)                  24 h
404, 410, every other 4xx                           ALLOW (`client_error`)                  24 h
429, 1xx, 304, 5xx, 6xx …, a redirect left over,    UNREACHABLE: the last good copy         60 s, 120 s, … 1 h;
no answer, half an answer, an address we refuse     speaks for at most 30 days, else wait   daily after 30 days
==================================================  ======================================  ==========================

An origin is never opened because it has been unreachable for long. A good answer of another kind (a 404 after a file)
puts an end to the copy before it: what the site has withdrawn does not come back when the site breaks.

Refuses to know rules, hosts' clocks and how redirects are asked: the caller follows what `follow` names, each hop
through the clock of the host it leads to, and hands in the last outcome. Rules apply to the origin first asked.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, assert_never

from comity import headers
from comity.model import (
    Access,
    Cause,
    Failed,
    Failure,
    Headers,
    HttpError,
    NotModified,
    Outcome,
    Page,
    Redirect,
    Refused,
    RobotsState,
    StillFresh,
)
from comity.robots.grammar import MAX_BYTES, whole_lines

DAY_S = 86_400.0
LEAST_BYTES = 512_000
"""RFC 9309 section 2.5: at least 500 KiB must be read."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How /robots.txt is read. Raises ValueError for what RFC 9309 does not leave open."""

    forbidden: Literal["disallow", "allow"] = (
        "disallow"  # 401, 403: a wall for us is a refusal; the RFC lets them allow
    )
    client_error: Literal["allow", "disallow"] = "allow"  # every other 4xx but 429 (section 2.3.1.3)
    min_age_s: float = 300.0  # against "max-age=0" storms
    max_age_s: float = DAY_S  # section 2.4: no longer than 24 hours
    retry_first_s: float = 60.0
    retry_max_s: float = 3600.0
    copy_limit_s: float = 30 * DAY_S  # section 2.3.1.4 names 30 days
    max_redirects: int = 5  # section 2.3.1.2: at least five
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        if self.forbidden not in ("disallow", "allow"):
            raise ValueError('robots.forbidden is "disallow" or "allow"')
        if self.client_error not in ("allow", "disallow"):
            raise ValueError('robots.client_error is "allow" or "disallow"')
        if not 0 <= self.min_age_s <= self.max_age_s <= DAY_S:
            raise ValueError("robots: 0 <= min_age_s <= max_age_s <= 86400 (RFC 9309 section 2.4: at most 24 hours)")
        if not 1 <= self.retry_first_s <= self.retry_max_s:
            raise ValueError("robots: 1 <= retry_first_s <= retry_max_s")
        if self.copy_limit_s < 0:
            raise ValueError("robots.copy_limit_s is a duration in seconds, 0 or more")
        if self.max_redirects < 5:
            raise ValueError("robots.max_redirects is at least 5 (RFC 9309 section 2.3.1.2)")
        if self.max_bytes < LEAST_BYTES:
            raise ValueError(f"robots.max_bytes is at least {LEAST_BYTES} (RFC 9309 section 2.5)")


def must_ask(state: RobotsState | None, now: float) -> bool:
    """Must /robots.txt be asked for before anything else of this origin? When so, `speaks` says UNREACHABLE (wait)."""
    return state is None or now >= state.expires_at


def follow(outcome: Outcome, hops: int, policy: Policy) -> str | None:
    """The URL to ask for next, after `hops` redirects already followed; None: this outcome is for `consult`."""
    if isinstance(outcome, Redirect) and hops < policy.max_redirects:
        return outcome.target
    return None


def speaks(state: RobotsState | None, now: float, policy: Policy) -> Access:
    """What may be done at this origin now. RULES: ask the rules of the body `state.digest`, also while the file is
    unreachable but a good copy of at most `copy_limit_s` exists. UNREACHABLE: wait until `expires_at`, then ask for
    /robots.txt; a state that was never made or has expired counts as that."""
    if state is None or must_ask(state, now):
        return Access.UNREACHABLE
    if state.access is Access.UNREACHABLE and state.digest is not None and state.fetched_at is not None:
        return Access.RULES if now - state.fetched_at <= policy.copy_limit_s else Access.UNREACHABLE
    return state.access


def parked(state: RobotsState | None, now: float, policy: Policy) -> bool:
    """Has the file been unreachable for longer than `copy_limit_s`? Then it is asked for once a day, and shown."""
    since = state.unreachable_since_at if state else None
    return since is not None and now - since > policy.copy_limit_s


def consult(
    outcome: Outcome, hops: int, previous: RobotsState | None, now: float, policy: Policy
) -> tuple[RobotsState, bytes | None]:
    """The state after the last outcome of asking for /robots.txt, `hops` redirects behind the first request.

    With RULES also the body to parse and keep: at most `policy.max_bytes`, without its last line if that was cut.
    `rules_digest` is left None, for the caller to fill from the compiled rules; while UNREACHABLE it is the copy's.
    """
    match outcome:
        case _ if hops > policy.max_redirects:
            return _unreachable(previous, now, policy, None, Failure.TOO_MANY_REDIRECTS), None
        case Page():
            body = outcome.body
            if outcome.truncated or len(body) > policy.max_bytes:
                body = whole_lines(body[: policy.max_bytes])
            return _rules(outcome.status, outcome.headers, body, previous, now, policy), body
        case HttpError(status=401 | 403):
            access = Access.ALLOW if policy.forbidden == "allow" else Access.DISALLOW
            return _answered(access, outcome.status, previous, now, policy), None
        case HttpError(status=status) if 400 <= status < 500 and status != 429:
            access = Access.DISALLOW if policy.client_error == "disallow" else Access.ALLOW
            return _answered(access, status, previous, now, policy), None
        case HttpError(status=status):
            return _unreachable(previous, now, policy, status, _failure(status)), None
        case Redirect():
            return _unreachable(previous, now, policy, outcome.status, _left_over(outcome)), None
        case NotModified():  # not asked for: we send no condition
            return _unreachable(previous, now, policy, 304, Failure.PROTOCOL), None
        case Failed():
            return _unreachable(previous, now, policy, None, outcome.failure), None
        case Refused() | StillFresh():  # nothing was asked: an address we do not go to, or our own mistake
            ours = isinstance(outcome, StillFresh) or outcome.cause is not Cause.FORBIDDEN_ADDRESS
            failure = Failure.SELF if ours else Failure.FORBIDDEN_ADDRESS
            return _unreachable(previous, now, policy, None, failure), None
        case _:
            assert_never(outcome)


def _rules(
    status: int, fields: Headers, body: bytes, previous: RobotsState | None, now: float, policy: Policy
) -> RobotsState:
    digest = hashlib.sha256(body).hexdigest()
    lifetime_s = headers.cache_lifetime_s(fields, now)
    kept_s = policy.max_age_s if lifetime_s is None else min(max(lifetime_s, policy.min_age_s), policy.max_age_s)
    return RobotsState(
        access=Access.RULES,
        digest=digest,
        http_status=status,
        fetched_at=now,
        asked_at=now,
        expires_at=now + kept_s,
        previous_digest=_before(previous, digest),
    )


def _answered(access: Access, status: int, previous: RobotsState | None, now: float, policy: Policy) -> RobotsState:
    return RobotsState(
        access=access,
        http_status=status,
        fetched_at=now,
        asked_at=now,
        expires_at=now + policy.max_age_s,
        previous_digest=_before(previous, None),
    )


def _unreachable(
    previous: RobotsState | None, now: float, policy: Policy, status: int | None, failure: Failure
) -> RobotsState:
    attempts = previous.attempts + 1 if previous else 1
    since = previous.unreachable_since_at if previous and previous.unreachable_since_at is not None else now
    pause_s = min(policy.retry_first_s * 2.0 ** min(attempts - 1, 20), policy.retry_max_s)
    if now - since > policy.copy_limit_s:
        pause_s = max(pause_s, DAY_S)
    return RobotsState(
        access=Access.UNREACHABLE,
        digest=previous.digest if previous else None,
        rules_digest=previous.rules_digest if previous and previous.digest else None,
        http_status=status,
        failure=failure,
        fetched_at=previous.fetched_at if previous else None,
        asked_at=now,
        expires_at=now + pause_s,
        unreachable_since_at=since,
        attempts=attempts,
        previous_digest=previous.previous_digest if previous else None,
    )


def _before(previous: RobotsState | None, digest: str | None) -> str | None:
    """The digest of the last good copy that differs from this one, as far as the state before remembers it."""
    if previous is None:
        return None
    known = previous.previous_digest if previous.digest in (digest, None) else previous.digest
    return None if known == digest else known


def _left_over(redirect: Redirect) -> Failure:
    if redirect.location is None:
        return Failure.REDIRECT_WITHOUT_LOCATION
    return Failure.REDIRECT_BAD_LOCATION if redirect.target is None else Failure.TOO_MANY_REDIRECTS


def _failure(status: int) -> Failure:
    if status < 200:
        return Failure.HTTP_1XX
    try:
        return Failure(f"http_{status}")
    except ValueError:
        return Failure.HTTP_OTHER
