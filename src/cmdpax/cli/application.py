"""The `cmdpax` command: its sub-commands, and how errors end."""

import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

import cmdpax
from cmdpax.cli.audit import audit
from cmdpax.cli.board import board
from cmdpax.cli.data import estimate
from cmdpax.cli.doctor import doctor
from cmdpax.cli.environments import environments
from cmdpax.cli.frontier import frontier
from cmdpax.cli.learning import iterate, learn
from cmdpax.cli.listings import algorithms, schemes
from cmdpax.cli.models import inspect, solve
from cmdpax.cli.output import messages
from cmdpax.cli.policies import policy
from cmdpax.cli.reproduction import reproduce
from cmdpax.cli.safety import solve_safely, uncertainty
from cmdpax.cli.sweeps import compare, plot, report, sweep
from cmdpax.cli.watching import watch
from cmdpax.errors import CmdpaxError, cut
from cmdpax.jax_context import cache_compilation

_LONGEST = 2000  # characters of a line

application = typer.Typer(
    name="cmdpax",
    help="Constrained Markov decision processes: plan, learn, prove, compare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# What each reader looks for, in the order in which `cmdpax --help` shows it.
_DOORS: dict[str, tuple[Callable[..., None], ...]] = {
    "A model or data, and a limit": (
        solve,
        inspect,
        policy,
        frontier,
        estimate,
        solve_safely,
        uncertainty,
    ),
    "A live system": (watch,),
    "A learner, compared": (learn, algorithms, sweep, compare, plot, report, iterate, schemes),
    "The paper, checked": (reproduce, audit),
    "This installation": (doctor,),
}
for _door, _commands in _DOORS.items():
    for _command in _commands:
        application.command(rich_help_panel=_door)(_command)
    if solve in _commands:
        application.add_typer(environments, name="env", rich_help_panel=_door)
    if sweep in _commands:
        application.add_typer(board, name="board", rich_help_panel=_door)


def _show_version(wanted: bool) -> bool:
    if wanted:
        print(f"cmdpax {cmdpax.__version__}")
        raise typer.Exit
    return wanted


@application.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Constrained Markov decision processes: plan, learn, prove, compare."""


def main() -> None:
    """Run the command line and exit with its code."""
    cache_compilation()
    try:
        application()
    except CmdpaxError as error:
        _fail(str(error))
    except BrokenPipeError:  # the reader of standard output has gone, as with `| head`
        sys.stderr.close()
        sys.exit(1)
    except MemoryError:
        _fail("the memory does not suffice; ask for less, or use a larger machine.")
    except OSError as error:  # a disk that is full or gone, where no sentence of ours is nearer
        _fail(f"the operating system refused: {error}.")


def _fail(sentence: str) -> NoReturn:
    """Say why, in lines that a person can read: a name from outside may have any length."""
    lines = "\n".join(cut(line, _LONGEST) for line in sentence.split("\n"))
    messages.print(f"error: {lines}", style="red")
    sys.exit(1)
