"""comity: a polite, continuous web crawler.

    async for visit in comity.crawl("https://your.site/", contact="you@your.site"):
        ...

The modules in reading order, words first; imports go upwards in this list only.

    url         one address: what is asked, what is compared, whose host it is
    model       what flows: entries, outcomes, visits
    headers     reading HTTP fields
    body        what is kept of a body that was seen
    directives  the page's own wishes
    failures    what an attempt met, and who is to blame
    metadata    the user's own keys: kept, handed on, rendered
    profiles    how strict a life is: two profiles, one table
    recrawl     how long until the next visit
    discovery   how a URL that was found becomes an entry
    events      what an outcome means under a profile
    lifecycle   what an entry becomes: the table of transitions
    robots      robots.txt: rules, verdicts, what an answer means
    politeness  when a host may next be asked
    scope       is this URL ours?
    parse       what is in a page
    tally       counters as a fold over visits
    wording     all of it in plain sentences
    ports       what the engine asks of the world
    clock       real time, and virtual time
    fakeweb     a made-up web with a log of its own
    fetch       one request under caps
    frontier    every URL's life story
    outputs     where results and evidence go
    plan        what a run is told
    lease       how long the store takes our claims for granted
    hosts       a claimed host: go, wait until, refuse; the one way to the network
    settling    outputs before settle, a batch at a time
    sifting     which links become entries
    crawl       the whole path of one URL, on one screen
    config      every option once
    identity    who asks
    seeds       where a crawl begins
    crawldir    a crawl is a directory
    assemble    settings become a running crawl
    api         comity from Python
    demo        the fake web, crawled and judged
    cli         the commands
"""

__version__ = "0.1.0"

# The engine's module has the same name as the function. It is imported first, so that the name below stays the
# function, whoever imports the module later.
import comity.crawl  # noqa: F401  (for its order only)
from comity.api import crawl
from comity.model import Entry, Status, Visit

__all__ = ["Entry", "Status", "Visit", "__version__", "crawl"]
