"""The bare loop: what the libraries cost when nothing is promised.

The same pages as a crawl, by the same libraries (libcurl, lexbor, ada), and nothing else: no robots.txt, no clocks, no
frontier but a set and a queue a host, no record of what was done, no care for what a server might answer. One request
in flight per host, hosts in parallel, links found and resolved, so that what is left out is the crawler and not the
work. `bench/crawl.py` divides by its rate; on its own it needs only a file of seed URLs, and must never be aimed at
anything but one's own machine, which is why it refuses any other address.

Prints one JSON object: pages, links, bytes, seconds, pages_per_s, cpu_s, cpu_ms_per_page, max_rss_mb.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import time
from collections import deque
from pathlib import Path

import pycurl
from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser


def host_of(url: str) -> str:
    return url.split("/", 3)[2]


def links(body: bytes, base: str, leave: tuple[str, ...]) -> list[str]:
    """Every link of the page that may be followed, resolved. `leave`: beginnings of paths not asked for."""
    found = []
    for node in LexborHTMLParser(body).css("a[href]"):
        marks = node.attributes
        if "nofollow" in (marks.get("rel") or ""):
            continue
        try:
            url = join_url(base, marks.get("href") or "")
        except ValueError:
            continue
        if url.startswith("http") and not ("/" + url.split("/", 3)[3]).startswith(leave):
            found.append(url)
    return found


def crawl(seeds: list[str], handles: int, pages_limit: int, leave: tuple[str, ...]) -> dict[str, float]:
    queues: dict[str, deque[str]] = {host_of(url): deque() for url in seeds}
    seen: set[str] = set()
    ready: deque[str] = deque()  # hosts with work and no request in flight
    busy: dict[str, tuple[str, io.BytesIO]] = {}  # by host: what is in flight
    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_MAXCONNECTS, len(queues) + handles)
    free = [pycurl.Curl() for _ in range(handles)]
    for curl in free:
        curl.setopt(pycurl.USERAGENT, "bare-loop")
        curl.setopt(pycurl.ENCODING, "")
    host_in: dict[pycurl.Curl, str] = {}
    pages = asked = found = size = 0

    def enqueue(url: str) -> None:
        if url not in seen and (queue := queues.get(host := host_of(url))) is not None:
            seen.add(url)
            queue.append(url)
            if len(queue) == 1 and host not in busy:
                ready.append(host)

    for url in seeds:
        enqueue(url)
    while ready or busy:
        while ready and free and asked < pages_limit:
            host, curl, body = ready.popleft(), free.pop(), io.BytesIO()
            busy[host] = (url := queues[host].popleft(), body)
            curl.setopt(pycurl.URL, url)
            curl.setopt(pycurl.WRITEDATA, body)
            multi.add_handle(curl)
            host_in[curl] = host
            asked += 1
        if not busy:
            break  # the limit is reached
        multi.perform()
        _, done, failed = multi.info_read()
        for curl in [*done, *(curl for curl, _, _ in failed)]:
            multi.remove_handle(curl)
            free.append(curl)
            host = host_in.pop(curl)
            url, body = busy[host]
            if curl.getinfo(pycurl.RESPONSE_CODE) == 200:
                pages += 1
                size += len(body.getbuffer())
                for link in links(body.getvalue(), url, leave):
                    found += 1
                    enqueue(link)
            del busy[host]
            if queues[host]:
                ready.append(host)
        if not done and not failed:
            multi.select(0.1)
    return {"pages": pages, "links": found, "bytes": size}


def main() -> None:
    parser = argparse.ArgumentParser(description="The bare loop: fetch, parse, resolve, nothing else.")
    parser.add_argument("--seeds", type=Path, required=True, help="a file of URLs, one a line, all of 127.0.0.0/8")
    parser.add_argument("--handles", type=int, default=100, help="requests in flight at most (default 100)")
    parser.add_argument("--pages-limit", type=int, default=1_000_000, help="requests at most")
    parser.add_argument("--leave", action="append", default=["/private/"], help="beginning of paths not asked for")
    args = parser.parse_args()
    seeds = [line.strip() for line in args.seeds.read_text().splitlines() if line.strip()]
    if strangers := [url for url in seeds if not host_of(url).startswith("127.")]:
        parser.error(f"not this machine: {strangers[0]}")
    began, used = time.monotonic(), time.process_time()
    counts = crawl(seeds, args.handles, args.pages_limit, tuple(args.leave))
    seconds, cpu = time.monotonic() - began, time.process_time() - used
    counts |= {
        "seconds": round(seconds, 3),
        "pages_per_s": round(counts["pages"] / seconds, 1),
        "cpu_s": round(cpu, 3),
        "cpu_ms_per_page": round(1000 * cpu / max(counts["pages"], 1), 3),
        "max_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
