"""What the decisions cost: one line a figure, beside its budget.

    python bench/decisions.py [folder of conformance vectors]

Verdicts, parsing and compiling are measured on the real robots.txt files of the conformance vectors, where they are at
hand (`COMITY_SHARED`, or `shared` beside this repository), and on files made here. Each figure is the best of several
runs, because the question is what the code costs and not what else the machine does. Ends with 1 when a budget is
exceeded.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from comity import politeness, robots, scope
from comity.model import HostState
from comity.url import parse as parse_url

TOKEN, ORIGIN = "ourbot", "https://a.example"
OVER: list[str] = []


def cost_us(do: Callable[[], object], times: int = 100, runs: int = 7) -> float:
    best = float("inf")
    for _ in range(runs):
        began = time.perf_counter()
        for _ in range(times):
            do()
        best = min(best, (time.perf_counter() - began) / times)
    return best * 1e6


def show(what: str, figure: float, unit: str, budget: float | None = None) -> None:
    over = budget is not None and figure > budget
    print(f"{what:<62} {figure:>10.2f} {unit:<3} {'' if budget is None else f'budget {budget:g}':<12}{' OVER' * over}")
    if over:
        OVER.append(what)


def rules(body: bytes) -> robots.Rules:
    return robots.compile(robots.parse(body), TOKEN, ORIGIN)


def real_files(folder: Path) -> None:
    files = json.loads((folder / "robots" / "realworld.json").read_text(encoding="utf-8"))["vectors"]
    bodies = [file["robots_txt"].encode() for file in files]
    lines = sum(len(body.splitlines()) for body in bodies)
    show("robots: parse, a line", sum(cost_us(partial(robots.parse, body), 3, 3) for body in bodies) / lines, "µs", 15)
    show("robots: parse and compile, a line", sum(cost_us(partial(rules, body), 3, 3) for body in bodies) / lines, "µs")
    compiled = [rules(body) for body in bodies]
    costs = sorted(
        cost_us(partial(robots.verdict, r, target), 30, 5)
        for r, file in zip(compiled, files, strict=True)
        for target in {parse_url(check["url"]).target for check in file["checks"]}
    )
    show(f"robots: verdict on {len(files)} real files, median of {len(costs)}", statistics.median(costs), "µs", 2)
    show("robots: verdict on real files, 99th in a hundred", costs[int(len(costs) * 0.99)], "µs", 20)
    tracemalloc.start()
    kept = [rules(body) for body in bodies]
    bytes_each = tracemalloc.get_traced_memory()[0] / sum(len(each.lines) for each in kept)
    tracemalloc.stop()
    show("robots: memory of real files, a rule", bytes_each, "B")


def made_files() -> None:
    plain = [f"Disallow: /section{n}/page" for n in range(45)]
    wild = [f"Disallow: /*/part{n}*q{n}=" for n in range(15)]
    sixty = rules("\n".join(["User-agent: *", *plain, *wild]).encode())
    for what, target in (
        ("no rule", "/products/item/detail.html?id=5"),
        ("plain", "/section44/page1"),
        ("*", "/a/part3?q3="),
    ):
        cost = cost_us(partial(robots.verdict, sixty, target))
        show(f"robots: verdict, 60 rules of which 15 with *, decided by {what}", cost, "µs", 15)
    stars = rules(b"User-agent: *\nDisallow: /" + b"*a" * 40 + b"*b\n")
    show("robots: 40 stars against 8 KiB", cost_us(lambda: robots.verdict(stars, "/" + "a" * 8191), 5) / 1e3, "ms", 5)
    body = b"User-agent: *\n" + b"".join(b"Disallow: /*a%dx*b%d$\n" % (n, n) for n in range(19_000))
    show("robots: 512 KiB of hostile rules, parse and compile", cost_us(lambda: rules(body), 1, 3) / 1e3, "ms")
    hostile, long = rules(body), "/" + "a" * 2000
    show("robots: the same against a path of 2,000", cost_us(lambda: robots.verdict(hostile, long), 1, 3) / 1e3, "ms")


def the_others() -> None:
    ours = scope.from_seeds("domain", [parse_url("https://www.a.example/")])
    host = "www.a.example"
    for what, url, of in (
        ("kept", "https://www.a.example/products/item-123/detail.html?id=5", host),
        ("kept, nine segments", "https://www.a.example/a/b/c/d/e/f/g/h/i.html", host),
        ("another site", "https://b.example/x", "b.example"),
    ):
        cost = cost_us(partial(scope.judge, ours, url, of, 3), 2000)
        show(f"scope: {what}", cost, "µs", 1.5)
    policy = politeness.Policy()
    state = politeness.started(HostState(), policy, 1.0)

    def ended() -> HostState:
        return politeness.finished(
            state, policy, answer=politeness.Answer.GOOD, heard_at=1.1, finished_at=1.2, service_s=0.2, jitter=0.5
        )

    show("politeness: started", cost_us(lambda: politeness.started(state, policy, 1.0), 2000), "µs")
    show("politeness: finished", cost_us(ended, 2000), "µs")


if __name__ == "__main__":
    shared = Path(os.environ.get("COMITY_SHARED") or Path(__file__).parents[2] / "shared")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else shared / "conformance"
    if folder.is_dir():
        real_files(folder)
    else:
        print("no conformance vectors: real files are left out (set COMITY_SHARED)")
    made_files()
    the_others()
    if OVER:
        sys.exit("over budget: " + "; ".join(OVER))
