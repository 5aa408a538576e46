"""`cmdpax policy`: a policy in words; and what `inspect` says of one."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import cmdpax
from cmdpax.cli.output import cell, print_facts, print_json, results
from cmdpax.model.policy_table import random_places


def policy(
    file: Annotated[Path, typer.Argument(help="A policy as .npz, .json or .csv.")],
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Its CMDP: names, and how often states are reached."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All rows, also those that are never reached.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, as in a .json file.")
    ] = False,
) -> None:
    """Print a policy as a table: what is done in each state, and how often it is reached.

    Example: cmdpax policy policy.npz --model random.npz
    """
    found = cmdpax.load_policy(file, None if model is None else cmdpax.load(model))
    if as_json:
        typer.echo(found.to_json(), nl=False)
    else:
        results.print(found.table(whole=everything))


def describe_policy(file: Path, as_json: bool) -> None:
    """Print the sizes of a policy, and where it is random."""
    found = cmdpax.load_policy(file)
    horizon, num_states, num_actions = found.shape
    facts = {
        "num_states": num_states,
        "num_actions": num_actions,
        "horizon": horizon,
        "stationary": bool((found == found[:1]).all()),
        "random_places": int(random_places(np.asarray(found)).sum()),
        "fingerprint": found.fingerprint,
    }
    if as_json:
        print_json(facts)
        return
    rows = ((name.replace("_", " "), cell(value)) for name, value in facts.items())
    print_facts(f"{file}: a policy", rows, fold=True)
