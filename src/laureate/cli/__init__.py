"""The command line: thin. It parses words, calls lab, catalogue and pages, and prints.

Each command lives in a module of its own that is imported when it is asked for, and loads what it needs inside its
function, so that ``laureate --help`` answers at once.
"""

import importlib
import os
import sys

import click

from laureate import __version__
from laureate.lab.errors import UserError

__all__ = ["main"]

# Command -> "module:function" of this package, in the order in which a person meets them.
COMMANDS = {
    "find": "find:find",
    "run": "run:run",
    "race": "race:race",
    "plan": "plan:plan",
    "bench": "bench:bench",
    "board": "board:board",
    "show": "show:show",
    "runs": "runs:runs",
    "compare": "compare:compare",
    "web": "web:web",
    "report": "report:report",
    "export": "export:export",
    "cite": "cite:cite",
    "import": "import_papers:import_papers",
    "new": "new:new",
    "decentralized": "decentralized:decentralized",
    "doctor": "doctor:doctor",
}


class LazyGroup(click.Group):
    """Imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In our order, not in the alphabet's."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The click command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name].partition(":")
        return getattr(importlib.import_module(f"{__name__}.{module}"), function)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every summary whole: click would cut them to a line."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None:
                rows.append((name, command.get_short_help_str(limit=1000)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """With a suggestion for a mistyped command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from laureate.lab.running.plan import unknown

            raise unknown(args[0], list(COMMANDS)) from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="laureate")
def cli() -> None:
    """Methods of celebrated machine-learning papers, their claims re-measured on this machine.

    \b
    laureate run pes          measure a paper's claims here, against its baselines
    laureate race mine.py:x   which method is best on my own problem, and the code to paste
    laureate board            all claims with their last verdicts
    laureate show pes         the problem, the equation, an example, the claims, the cost
    laureate web              all of this in a browser

    Results lie in LAUREATE_HOME (see `laureate doctor`). Every command but `decentralized launch` takes --json.
    """


def _tell(text: str) -> None:
    """One line; a character that a terminal would obey, as in a file's name, is shown and not sent."""
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    click.echo(f"laureate: {shown}", err=True)


def main() -> None:
    """Entry point: errors a user can mend are one line, Ctrl-C is 130, a closed pipe is no error."""
    try:
        for word in sys.argv[1:]:
            if any("\ud800" <= letter <= "\udfff" for letter in word):
                raise UserError(f"Not UTF-8 text: {word!r}.", "Name files and words in UTF-8.")
        sys.exit(cli.main(standalone_mode=False))
    except UserError as error:
        _tell(str(error))
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("laureate: stopped; what was finished is kept. Repeat the command to go on.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # `laureate board | head`: the reader has what it wanted. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        # A full disk, a folder that may not be written, a file that is a folder: theirs to mend, not ours to explain.
        named = f": {error.filename}" if error.filename is not None else ""
        _tell(f"{error.strerror or error}{named}")
        sys.exit(2)
