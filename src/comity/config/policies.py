"""From options to the small policies that the decisions take.

Invariant: an option that has an effect has it through exactly one function here, and a combination that no decision
could follow is refused before anything starts (`check`). Complaints are ValueErrors whose text begins with the dotted
name of the option to change, so that the reader of the file can be shown its line.

Refuses to know files and flags; and it reads no option twice.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from comity import fetch, metadata, parse, politeness, recrawl, robots, scope
from comity.config.options import Host, Interval, Settings
from comity.fetch import address
from comity.model import Cause
from comity.outputs import rows
from comity.profiles import Profile
from comity.url import CleanUps, InvalidUrl, Url, host_key
from comity.url import parse as parse_url

PER_IP = (
    'politeness.per = "ip" is not built yet: a host row remembers its last address, but one clock for all hosts of an '
    "address has to hold across processes, for which the address must be leased with the first of its hosts; until "
    'that is built, use "host" or "domain"'
)


NO_LIMIT = 2**31
DAY_S = 86_400.0


def check(settings: Settings) -> None:
    """Builds every policy once, so that what cannot work is told at the start. Raises ValueError."""
    if settings.politeness.per == "ip":
        raise ValueError(PER_IP)
    if problem := robots.product_token_problem(settings.identity.product):
        raise ValueError(f"identity.product {settings.identity.product!r} cannot be used: {problem}")
    clean_ups(settings)
    scope_of(settings, ())
    robots_policy(settings)
    politeness_policy(settings)
    row_fields(settings)
    guard(settings)
    fetch_limits(settings)
    parse_limits(settings)
    profile(settings, once=False)
    schedule(settings)
    metadata_policy(settings)
    for name, host in settings.hosts.items():
        key_of(settings, name)
        if host.robots == "ignore" and not host.own:
            raise ValueError(
                f'hosts."{name}".robots = "ignore" is for your own sites only: say own = true if this one is yours'
            )
        politeness_policy(settings, name)


def clean_ups(settings: Settings) -> CleanUps:
    chosen = settings.urls
    return CleanUps(
        drop_query_params=chosen.drop_query_params,
        sort_query=chosen.sort_query,
        drop_empty_query=chosen.drop_empty_query,
        collapse_slashes=chosen.collapse_slashes,
    )


def scope_of(settings: Settings, seeds: Iterable[Url]) -> scope.Scope:
    chosen = settings.scope
    return scope.from_seeds(
        chosen.mode,
        seeds,
        include=chosen.include,
        exclude=chosen.exclude,
        max_depth=chosen.max_depth,
        max_hops=chosen.max_hops if settings.lifecycle.redirect_loops else NO_LIMIT,
        max_url_length=chosen.max_url_length,
        max_repeats=chosen.max_repeats,
        max_segments=chosen.max_segments,
        max_pages_per_host=chosen.max_pages_per_host,
        by_domain=settings.politeness.per == "domain",
    )


def robots_policy(settings: Settings) -> robots.Policy:
    chosen = settings.robots
    return robots.Policy(
        forbidden=chosen.forbidden,
        client_error=chosen.client_error,
        min_age_s=chosen.min_age_s,
        max_age_s=chosen.max_age_s,
        retry_first_s=chosen.retry_first_s,
        retry_max_s=chosen.retry_max_s,
        copy_limit_s=chosen.copy_limit_s,
        max_redirects=chosen.max_redirects,
        max_bytes=chosen.max_bytes,
    )


def politeness_policy(settings: Settings, host: str | None = None) -> politeness.Policy:
    """`host`: a host key; None for hosts without settings of their own."""
    chosen, own = settings.politeness, host_settings(settings, host)
    return politeness.Policy(
        delay_s=chosen.delay_s if own.delay_s is None else own.delay_s,
        min_delay_s=chosen.min_delay_s,
        response_factor=chosen.response_factor,
        crawl_delay_limit_s=chosen.crawl_delay_limit_s,
        on_long_delay=chosen.on_long_delay,
        retry_after_limit_s=chosen.retry_after_limit_s,
        host_backoff=chosen.host_backoff,
        in_flight=own.in_flight,
    )


def host_settings(settings: Settings, host: str | None) -> Host:
    """What was said about a host (by its host key); the defaults if nothing was."""
    for name, said in settings.hosts.items():
        if host is not None and key_of(settings, name) == host:
            return said
    return Host()


def key_of(settings: Settings, name: str) -> str:
    """The host key that a section ``[hosts."name"]`` speaks of."""
    try:
        url = parse_url(f"https://{name}/")
    except InvalidUrl as error:
        raise ValueError(f'hosts."{name}" is not a host name: {error}') from error
    if url.target != "/" or url.port != 443 or url.had_credentials:
        raise ValueError(f'hosts."{name}" is not a host name: write it without scheme, port and path')
    return host_key(url.host, "domain" if settings.politeness.per == "domain" else "host")


def row_fields(settings: Settings) -> rows.Fields:
    chosen = settings.outputs.jsonl
    try:
        return rows.Fields(chosen.body, frozenset(chosen.drop_fields), frozenset(chosen.mask))
    except ValueError as error:
        raise ValueError(f"outputs.jsonl.drop_fields: {error}") from error


def guard(settings: Settings) -> address.Guard:
    chosen = settings.address
    inside = chosen.allow_private
    return address.Guard(
        allow_private=inside is True,
        allow=() if isinstance(inside, bool) else _networks("allow_private", inside),
        deny=_networks("deny", chosen.deny),
        ports=frozenset(chosen.ports),
        mixed=chosen.mixed,
        nat64=chosen.nat64,
    )


def out_of_reach(settings: Settings, seeds: Iterable[Url]) -> list[tuple[Url, str]]:
    """Seeds that the guard would refuse without asking anybody, and why: told at the start, they cost nobody a wait."""
    watch = guard(settings)
    refused: list[tuple[Url, str]] = []
    for url in seeds:
        ip = address.literal(url.host)
        problem = watch.port_problem(url.port) or (
            watch.name_problem(url.host) if ip is None else watch.address_problem(ip)
        )
        if problem is not None:
            refused.append((url, problem))
    return refused


def nothing_in_reach(refused: list[tuple[Url, str]]) -> str:
    """For people, when that is all of them."""
    url, problem = refused[0]
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    if problem.startswith("port "):
        return f"{url.href} may not be asked: {problem}{more}; address.ports in comity.toml says which may"
    return (
        f"{url.href} may not be asked: {problem}{more}; for your own machine or network, pass --allow-private "
        "(address.allow_private)"
    )


def _networks(option: str, texts: Iterable[str]) -> tuple[address.Network, ...]:
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise ValueError(f"address.{option}: {error}: a network is written like 10.1.0.0/16") from error


def fetch_limits(settings: Settings) -> fetch.Limits:
    chosen = settings.fetch
    return fetch.Limits(
        connect_s=chosen.connect_timeout_s,
        between_bytes_s=chosen.read_timeout_s,
        total_s=chosen.total_timeout_s,
        max_body_bytes=chosen.max_bytes,
        max_header_line_bytes=chosen.max_header_line_bytes,
        max_header_bytes=chosen.max_header_bytes,
        max_ratio=chosen.max_ratio,
        drain_bytes=chosen.drain_bytes,
    )


def parse_limits(settings: Settings) -> parse.Limits:
    chosen = settings.parse
    return parse.Limits(
        max_bytes=chosen.max_bytes,
        max_depth=chosen.max_depth,
        max_links=chosen.max_links,
        sitemap_max_bytes=chosen.sitemap_max_bytes,
        sitemap_max_urls=chosen.sitemap_max_urls,
        text=chosen.text,
        per="domain" if settings.politeness.per == "domain" else "host",
    )


def profile(settings: Settings, *, once: bool) -> Profile:
    """`once`: for a crawl that visits every URL once and ends."""
    chosen = settings.lifecycle
    span_s = chosen.min_error_span_s
    if span_s is None:
        span_s = 0.0 if once else DAY_S
    return Profile(
        name=settings.profile,
        success=frozenset(chosen.success),
        gone=frozenset(chosen.gone),
        max_fetch_errors=chosen.max_fetch_errors,
        min_error_span_s=span_s,
        retry_base_s=chosen.retry_base_s,
        retry_factor=chosen.retry_factor,
        retry_max_s=chosen.retry_max_s,
        jitter=chosen.jitter,
        recount_after_error=chosen.recount_after_error,
        host_answers=chosen.host_answers,
        forgive_ours=chosen.forgive_ours,
        refuse_forbidden=chosen.refuse_forbidden,
        conditional_304=chosen.conditional_304,
        redirect_needs_target=chosen.redirect_needs_target,
        max_hops=settings.scope.max_hops if chosen.redirect_loops else None,
        redirect_adds_depth=chosen.redirect_adds_depth,
        refresh_redirects=chosen.refresh_redirects,
        unreadable_ends=chosen.unreadable_ends,
    )


def schedule(settings: Settings) -> recrawl.Schedule:
    chosen = settings.recrawl
    causes = {
        Cause.GONE: chosen.error_gone_s,
        Cause.SCOPE: chosen.error_scope_s,
        Cause.BUDGET: chosen.error_budget_s,
        Cause.ROBOTS: chosen.error_robots_s,
        Cause.MALFORMED: chosen.error_malformed_s,
    }
    return recrawl.Schedule(
        fetched_s=_wait_s(chosen.fetched_s),
        redirection_s=_wait_s(chosen.redirection_s),
        error_s={cause: _wait_s(interval) for cause, interval in causes.items()},
        error_other_s=_wait_s(chosen.error_other_s),
        error_growth=chosen.error_growth,
        error_max_s=chosen.error_max_s,
        fresh_min_s=chosen.fresh_min_s,
        fresh_max_s=chosen.fresh_max_s,
    )


def _wait_s(interval: Interval) -> float | None:
    return None if interval == "never" else interval


def metadata_policy(settings: Settings) -> metadata.Policy:
    chosen = settings.metadata
    return metadata.Policy(chosen.transfer, chosen.persist, chosen.track_depth, chosen.track_path)
