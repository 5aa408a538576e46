"""Certificates on hard models: `python tests/certified.py --count 5000 --seed 1`.

Both methods agree to 1e-7 of scale, they agree about feasibility, and each certificate holds in
exact arithmetic. The models in `tests/hard` are tried, then the random degenerate ones of the seeds
from `--seed` on. Flaws are printed, and the exit code is 1 if there are any.
"""

import argparse
import itertools
import pathlib
import sys
import time
import warnings

import numpy as np

import cmdpax
import exact
from degenerate import Degenerate, degenerate

METHODS = ("column-generation", "occupancy-lp")
AGREEMENT = 1e-7
"""Of scale: how far values of the two methods, and a certificate's bound, may be apart."""
HARD = sorted((pathlib.Path(__file__).parent / "hard").glob("*.npz"))
"""105 models on which planning raised, disagreed with itself or certified a wrong value."""


def flaws_on(
    cmdp: cmdpax.CMDP, feasible: bool | None = None, methods: tuple[str, ...] = METHODS
) -> list[str]:
    """What is wrong with the solutions of a model; `feasible` is what is known of it."""
    flaws, values = [], {}
    for method in methods:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cmdpax.CmdpaxWarning)  # HiGHS may need help
            try:
                solution = cmdpax.solve(cmdp, method)
            except cmdpax.InfeasibleError as error:
                values[method] = None
                if not error.slater_gap < 0:
                    flaws.append(f"{method}: infeasible by {error.slater_gap}")
                continue
            except Exception as error:
                return [f"{method} raised {type(error).__name__}: {error}"]
            values[method] = solution.value
            flaws += [f"{method}: {flaw}" for flaw in exact.flaws_of(cmdp, solution)]
            if solution.gap > _largest_gap(cmdp, solution.multipliers):
                flaws.append(f"{method}: a gap of {solution.gap}")
    one, other = values[methods[0]], values[methods[-1]]
    if (one is None) != (other is None):
        flaws.append(f"only one method finds it feasible: {values}")
    elif feasible is not None and (one is not None) != feasible:
        flaws.append(f"feasible is {feasible}, the methods say {values}")
    elif one is not None and abs(one - other) > AGREEMENT * exact.scales_of(cmdp)[0]:
        flaws.append(f"the methods differ: {values}")
    return flaws


def _largest_gap(cmdp: cmdpax.CMDP, multipliers: np.ndarray) -> float:
    """Steep optima hang on the last bits of V_u: without slack, or with probabilities of 1e-12.

    Without slack, thresholds are relaxed by 1e-15 H s and more, and the optimum by λ times that.
    """
    of_reward, *of_constraints = exact.scales_of(cmdp)
    last_bits = 2.0**-48 * cmdp.horizon * np.array(of_constraints)
    return AGREEMENT * of_reward + float(multipliers @ last_bits)


def flaws_of_gap(model: Degenerate) -> list[str]:
    """What is wrong with the Slater gap, of which both ends are known."""
    cmdp = model.cmdp
    scales = exact.scales_of(cmdp)[1:]
    rounding = 1e-12 * cmdp.horizon * scales.max()  # units may be 1e16 apart
    gap = cmdpax.slater_gap(cmdp).gap
    if gap < model.least_gap - rounding:
        return [f"the Slater gap is {gap}, and some policy has {model.least_gap}"]
    if model.most_slack is None:
        return []
    # Some constraint has no more than that of its own scale, whichever it is.
    most = max(model.most_slack * scales)
    if gap > most + rounding:
        return [f"the Slater gap is {gap}, and no policy has more than {most}"]
    return []


def flaws_of_seed(seed: int) -> list[str]:
    """What is wrong with the solutions of the degenerate model of a seed."""
    found = degenerate(seed)
    flaws = flaws_on(found.cmdp, found.feasible) + flaws_of_gap(found)
    return [f"seed {seed}: {flaw}" for flaw in flaws]


def main() -> int:
    """Try many seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5_000, help="how many models")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    start, num_flawed = time.monotonic(), 0
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    hard = ([f"{path.stem}: {flaw}" for flaw in flaws_on(cmdpax.load(path))] for path in HARD)
    for flaws in itertools.chain(hard, map(flaws_of_seed, seeds)):
        num_flawed += bool(flaws)
        for flaw in flaws:
            print(flaw, flush=True)
    seconds = time.monotonic() - start
    print(f"{len(HARD)} hard models, {arguments.count} from seed {arguments.seed} on:", end=" ")
    print(f"{num_flawed} flawed, {seconds:.0f} s")
    return 1 if num_flawed else 0


if __name__ == "__main__":
    sys.exit(main())
