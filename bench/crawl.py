"""A whole crawl against the bare loop, on a synthetic web, judged by its server.

Starts `synthweb.py` (nginx with Lua on loopback, every 127.A.B.C a host), lets `bench/bare.py` and `comity crawl` take
the same pages in turn, so that both meet the same noise, and reads from the *server's* log what each really did. Rates
are pages by the time from the first request to the last as the server saw them, so start-up counts for neither; whole
run times, CPU and the largest resident set are of our own processes, by `wait4`.

What it does not do: compare with numbers from another machine. Only ratios within one run travel.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FAULTS = ("forbidden", "nofollow", "repeats", "before_robots", "overlaps", "too_soon")
BARE_FAULTS = {"before_robots"}  # it reads none


@dataclass(frozen=True)
class Run:
    """One process, start to end. `pages`, `pages_per_s` and `judged` are the server's view of it."""

    what: str
    pages: int
    pages_per_s: float
    whole_s: float
    cpu_ms_per_page: float
    max_rss_mb: float
    judged: dict[str, Any]

    @property
    def faults(self) -> dict[str, int]:
        left_out = BARE_FAULTS if self.what == "bare" else set()
        return {name: self.judged[name] for name in FAULTS if self.judged.get(name) and name not in left_out}


class SyntheticWeb:
    """The load generator: a script kept beside the project, because it is nobody's product."""

    def __init__(self, shared: Path, folder: Path, args: argparse.Namespace) -> None:
        self.script = shared / "bench" / "synthweb.py"
        if not self.script.exists():
            sys.exit(f"no {self.script}: name the folder that holds bench/synthweb.py with --shared or COMITY_SHARED")
        if not shutil.which("nginx"):
            sys.exit("the synthetic web needs nginx-light and libnginx-mod-http-lua")
        with socket.socket() as probe:  # nginx would share the port with whoever has it, and each get half the requests
            if probe.connect_ex(("127.0.0.1", args.port)) == 0:
                sys.exit(f"somebody listens on port {args.port} already: name another with --port")
        self.options = ["--dir", str(folder), "--port", str(args.port)]
        self.size = ["--hosts", str(args.hosts), "--pages", str(args.pages)]
        self.delay = ["--delay", str(args.delay)] if args.delay else []

    def start(self) -> Path:
        return Path(self._do("start", *self.size).strip())

    def judge(self) -> dict[str, Any]:
        judged: dict[str, Any] = json.loads(self._do("judge", *self.delay))
        return judged

    def stop(self) -> None:
        self._do("stop")

    def _do(self, what: str, *more: str) -> str:
        command = [sys.executable, str(self.script), what, *self.options, *more]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(what: str, command: list[str], web: SyntheticWeb, log: Path) -> Run:
    began = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    whole_s = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{what} ended with {process.returncode}:\n{log.read_text(errors='replace')[-2000:]}")
    judged = web.judge()
    pages = judged["pages"]
    return Run(
        what=what,
        pages=pages,
        pages_per_s=round(pages / judged["span_s"], 1),
        whole_s=round(whole_s, 2),
        cpu_ms_per_page=round(1000 * (used.ru_utime + used.ru_stime) / max(pages, 1), 3),
        max_rss_mb=round(used.ru_maxrss / 1024, 1),
        judged=judged,
    )


def one_pair(args: argparse.Namespace, web: SyntheticWeb, folder: Path, number: int) -> list[Run]:
    runs = []
    if not args.delay and not args.no_bare:  # the bare loop knows no delay
        bare = [sys.executable, str(ROOT / "bench" / "bare.py"), "--seeds", str(web.start())]
        runs.append(measure("bare", bare, web, folder / "bare.log"))
    into = folder / f"crawl-{number}"
    crawl = [str(Path(sys.executable).with_name("comity")), "crawl", "--seeds", str(web.start()), "--scope", "any"]
    crawl += ["--delay", str(args.delay), "--allow-private", "-o", str(into), *args.crawl_option]
    runs.append(measure("comity", crawl, web, folder / "crawl.log"))
    shutil.rmtree(into)
    return runs


def table(runs: list[Run]) -> str:
    lines = [f"{'':8}{'pages':>8}{'pages/s':>10}{'whole s':>9}{'CPU ms/page':>13}{'max RSS MB':>12}  faults"]
    for run in runs:
        faults = ", ".join(f"{name} {count}" for name, count in run.faults.items()) or "none"
        lines.append(
            f"{run.what:8}{run.pages:>8,}{run.pages_per_s:>10,.0f}{run.whole_s:>9.2f}{run.cpu_ms_per_page:>13.3f}"
            f"{run.max_rss_mb:>12.1f}  {faults}"
        )
    return "\n".join(lines)


def summary(runs: list[Run]) -> dict[str, float | None]:
    """Medians; the ratio is of the medians of one run of this script, and of nothing else."""

    def median(what: str, field: str) -> float | None:
        values = [getattr(run, field) for run in runs if run.what == what]
        return round(statistics.median(values), 3) if values else None

    ours, bare = median("comity", "pages_per_s"), median("bare", "pages_per_s")
    return {
        "pages_per_s": ours,
        "bare_pages_per_s": bare,
        "ratio": round(ours / bare, 3) if ours and bare else None,
        "cpu_ms_per_page": median("comity", "cpu_ms_per_page"),
        "bare_cpu_ms_per_page": median("bare", "cpu_ms_per_page"),
        "max_rss_mb": max((run.max_rss_mb for run in runs if run.what == "comity"), default=None),
        "fullness": min((run.judged["fullness"] for run in runs if "fullness" in run.judged), default=None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="comity crawl against the bare loop, judged by the server.")
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--pages", type=int, default=50, help="pages a host (default 50)")
    parser.add_argument(
        "--delay", type=float, default=0.0, help="seconds between requests to a host; no bare loop then"
    )
    parser.add_argument("--runs", type=int, default=3, help="of each, in turn (default 3)")
    parser.add_argument("--no-bare", action="store_true")
    parser.add_argument("--crawl-option", action="append", default=[], help="handed to comity crawl as it is")
    parser.add_argument("--port", type=int, default=8200)
    parser.add_argument("--json", action="store_true", help="every run and the summary as data")
    parser.add_argument(
        "--shared",
        type=Path,
        default=Path(os.environ.get("COMITY_SHARED", ROOT.parent / "shared")),
        help="holds bench/",
    )
    args = parser.parse_args()
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="comity-bench-") as name:
        web = SyntheticWeb(args.shared, Path(name) / "web", args)
        try:
            for number in range(args.runs):
                pair = one_pair(args, web, Path(name), number)
                runs += pair
                if not args.json:
                    print(table(pair) if number == 0 else table(pair).split("\n", 1)[1], flush=True)
        finally:
            web.stop()
    found = summary(runs)
    if args.json:
        print(json.dumps({"runs": [asdict(run) for run in runs], "summary": found}, indent=1))
    else:
        print("\n" + "\n".join(f"{key:22}{value}" for key, value in found.items() if value is not None))
    sys.exit(1 if any(run.faults for run in runs) else 0)


if __name__ == "__main__":
    main()
