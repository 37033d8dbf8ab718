"""The command line: what people type, and what they are told.

    exits      exit codes, the same for every command
    faults     errors as one line and one code
    terminal   the two streams; instants, spans, sizes; others' text made safe
    arguments  what commands share
    places     from a name to a crawl's directory, settings and seeds
    asking     who crawls
    crawling   comity crawl, comity run
    progress   while a crawl goes
    summary    when it ends
    status     comity status
    telling    everything known of one URL
    why        comity why
    robots     comity robots
    init       comity init
    demo       comity demo

Invariant: a command ends with a code of `exits`; whatever goes wrong is one line on standard error, never a traceback
unless it was asked for; a reader that leaves (``| head``) ends us in silence.

Every command imports what it needs when it runs: help is there in a tenth of a second. It refuses to know anything that
a programme could not do without it: see `comity.api`.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from comity import __version__
from comity.cli import crawling, demo, faults, init, robots, status, terminal, why
from comity.cli.exits import Exit, told

app = typer.Typer(
    name="comity",
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help is plain text: the same on a terminal, in a file and in the docs
)

TRACEBACK = "--traceback"


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"comity {__version__}\n")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog=told(
        (
            "comity demo                                         # a made-up web, on this machine",
            "comity robots https://books.example/new/            # what a site allows",
            "comity crawl -o books https://books.example/        # crawl it",
            "comity why https://books.example/new/ -o books      # one page's story",
        ),
        *Exit,
    ),
)
def comity(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
    traceback: Annotated[
        bool, typer.Option(TRACEBACK, help="Show where in the code an error arose; anywhere on the line.")
    ] = False,
) -> None:
    """A polite, continuous web crawler: it obeys, it remembers, it can prove both."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


app.command("crawl", short_help="Crawl until every page found was visited once.", epilog=crawling.CRAWL_END)(
    crawling.crawl
)
app.command("run", short_help="Crawl for ever, by schedule.", epilog=crawling.RUN_END)(crawling.run)
app.command("init", short_help="Make a directory with every option explained.", epilog=init.END)(init.init)
app.command("status", short_help="Show how a crawl stands.", epilog=status.END)(status.status)
app.command("why", short_help="Tell one URL's story.", epilog=why.END)(why.why)
app.command("robots", short_help="Show what robots.txt says of some URLs.", epilog=robots.END)(robots.robots)
app.command("demo", short_help="Crawl a made-up web on this machine.", epilog=demo.END)(demo.demo)


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script. Returns the exit code; `arguments` are those of the command line unless given."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    before = given.index("--") if "--" in given else len(given)
    traceback = TRACEBACK in given[:before] or os.environ.get(faults.VARIABLE, "0") not in ("", "0")
    given = [word for at, word in enumerate(given) if word != TRACEBACK or at > before]
    terminal.open_closed()
    terminal.speak_anyhow()
    try:
        code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has seen enough
        _silence()
        return Exit.OK
    except KeyboardInterrupt:
        terminal.tell("interrupted")
        return Exit.INTERRUPTED
    except Exception as error:
        if traceback:
            import traceback as tracing

            tracing.print_exc()
        code, line = faults.explained(error) or (Exit.FAILED, faults.ours(error))
        terminal.tell(line)
    finally:
        terminal.let_go()
    return int(code)


def _run(given: list[str]) -> int:
    try:
        result: Any = app(given, prog_name="comity", standalone_mode=False)
    except typer.Exit as exit_:
        return exit_.exit_code
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except SystemExit as error:  # how the library takes a pipe that nobody reads
        raise BrokenPipeError from error
    except Exception as error:
        if not isinstance(error, USAGE_ERROR):
            raise
        raise faults.Trouble(Exit.USAGE, _usage(error)) from error
    return result if isinstance(result, int) else Exit.OK


USAGE_ERROR = typer.BadParameter.__mro__[1]
"""What the library raises for a line that it cannot read; it has no public name of its own in every release."""


def _usage(error: Any) -> str:
    """The library's sentence, with what was meant and where to read more."""
    said = re.split(r" Did you mean| \(Possible options", error.format_message().replace("\n", " "))[0].rstrip(".")
    said = said[:1].lower() + said[1:]
    context = error.ctx
    wrong = getattr(error, "option_name", None)
    known: list[str] = []
    if wrong is not None:
        known = [name for param in context.command.params for name in param.opts] if context is not None else []
    elif said.startswith("no such command"):
        wrong, known = said.split("'")[1], list(context.command.commands)
    meant = difflib.get_close_matches(wrong, known, n=1, cutoff=0.5) if wrong else []
    where = context.command_path if context is not None else "comity"
    return f"{said}{f'; did you mean {meant[0]}?' if meant else ''} (see {where} --help)"


def _silence() -> None:
    """Nobody reads any more: the interpreter's own last flush must not complain either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
