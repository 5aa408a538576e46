"""Fixed runs of learners and schemes, for `same_numbers.py`.

Compilation takes nearly all of the time, so the models are small and the cases share programs:
what is compiled in (storage, precision, kind of rewards, …) is the same for all cases of a program,
while what is data (hyperparameters, vanilla or regularized steps) varies within it.
"""

import functools
import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cmdpax
from named_arrays import ACCOUNT, HISTORY, MODEL, chosen, named_arrays

Cases = Iterator[tuple[str, Callable[[], Any]]]
"""Names, and functions that compute what is recorded under them."""

NUM_EPISODES, SEEDS = 120, (3, 11)
PROFILES = ("empirical", "live", "theory")
STORED_ONCE = ("once", "lists", "long-lists")  # the models whose learners may share their counts
BLOCK = 1024  # the most episodes between two reports of progress


@functools.cache
def model(name: str) -> cmdpax.CMDP:
    """The models: both storages, short and long horizons, no constraint to three."""
    make = cmdpax.environments.make
    grid = {"height": 3, "width": 3}
    long = {"num_states": 4, "num_actions": 3, "horizon": 20, "num_constraints": 3}
    makers: dict[str, Callable[[], cmdpax.CMDP]] = {
        "dense": lambda: make("random"),
        "once": lambda: make("streaming", horizon=4, budget=2.0),  # dense, the same at every step
        "lists": lambda: make("gridworld", **grid, horizon=4, num_constraints=2),
        "long": lambda: make("random", **long),
        "long-lists": lambda: make("gridworld", **grid, horizon=20),
        "unconstrained": lambda: make("random", num_constraints=0),
        "three": lambda: make("random", num_constraints=3),
        "wide-lists": _wide_lists,
    }
    return makers[name]()


def _wide_lists() -> cmdpax.CMDP:
    """Lists that differ from step to step, longer than those that are unrolled."""
    dense = cmdpax.environments.make("random", num_states=18, num_actions=2, horizon=3)
    places = np.broadcast_to(np.arange(18), dense.transitions.shape)
    return dense.replace(transitions=cmdpax.Successors(places, dense.transitions))


def hyperparameters(kind: str, algorithm: str) -> dict[str, Any]:
    """Arguments of `learn`; vanilla algorithms take no regularization."""
    power = cmdpax.schedules.power
    kinds: dict[str, dict[str, Any]] = {
        "defaults": {},
        "constants": {
            "step_size": 0.2,
            "regularization": 0.05,
            "max_multiplier": 9.0,
            "margin": 0.05,
        },
        "schedules": {
            "step_size": power(0.3, 0.2),
            "regularization": power(0.1, 0.3, 5.0),
            "margin": power(0.2, 0.5),
        },
    }
    given = dict(kinds[kind])
    if algorithm.startswith("vanilla"):
        given.pop("regularization", None)
    return given


def history_of(history: cmdpax.History) -> dict[str, Any]:
    """What is recorded of a history."""
    more = {"summary": history.summary(), "growth": history.growth_exponent()}
    return chosen(history, HISTORY) | more


# ------------------------------------------------------------------------------------------ learn

# What is compiled in, and what is data; a case has one entry of each.
COMPILED = {
    "steps": ("by step", "stationary"),
    "precision": ("double", "single"),
    "observations": ("mean", "bernoulli"),
    "log": ("no log", "log"),
}
CHOICES = COMPILED | {"hyperparameters": ("defaults", "constants", "schedules")}


def matrix() -> list[tuple[str, ...]]:
    """Every algorithm × profile × storage, with other choices such that all pairs occur.

    The other choices of a case are those whose pairs have occurred least often so far. Cases that
    can share a program do: they have the same compiled-in choices.
    """
    seen: Counter[tuple[str, str]] = Counter()
    settled: dict[tuple[Any, ...], tuple[str, ...]] = {}
    cases = []
    for storage, algorithm, profile in itertools.product(
        ("dense", "once", "lists", "long", "long-lists"), sorted(PROGRAMS), PROFILES
    ):
        program = (storage, PROGRAMS[algorithm], profile == "empirical")
        options = [
            (algorithm, profile, storage, *others)
            for others in itertools.product(*CHOICES.values())
            if (others[0] == "by step" or storage in STORED_ONCE)
            and settled.get(program, others[: len(COMPILED)]) == others[: len(COMPILED)]
        ]
        best = max(options, key=lambda case: sum(_worth(pair, seen) for pair in pairs(case)))
        settled[program] = best[3 : 3 + len(COMPILED)]
        seen.update(pairs(best))
        cases.append(best)
    return cases


def pairs(case: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """All pairs of a case's choices."""
    return itertools.combinations(case, 2)


def _worth(pair: tuple[str, str], seen: Counter[tuple[str, str]]) -> float:
    """Single precision is compared less strictly, so it is taken only where a pair is new."""
    return float(not seen[pair]) if "single" in pair else 1 / (1 + seen[pair])


# The paper's: those with the same entry differ in data alone, and share a program.
PROGRAMS = {
    "regularized-primal-dual": "primal-dual",
    "vanilla-primal-dual": "primal-dual",
    "regularized-dual": "soft",
    "vanilla-dual": "greedy",
}


def learn_cases() -> Cases:
    """The matrix, then what it leaves out."""
    for case in matrix():
        yield "/".join(case).replace("by step/", ""), functools.partial(_learn_case, *case)
    for name, (where, algorithm, given) in _further_cases().items():
        yield f"further/{name}", functools.partial(_learn, where, algorithm, **given)


def _learn_case(
    algorithm: str,
    profile: str,
    storage: str,
    steps: str,
    precision: str,
    observations: str,
    log: str,
    kind: str,
) -> dict[str, Any]:
    optimism: Any = profile
    if profile == "theory" and kind != "defaults":  # in full, all policies stay uniform
        optimism = cmdpax.Optimism.theory(NUM_EPISODES, scale=0.01)
    return _learn(
        storage,
        algorithm,
        optimism=optimism,
        stationary=steps == "stationary",
        precision=precision,
        observations=observations,
        log=log == "log",
        **hyperparameters(kind, algorithm),
    )


def _learn(where: str, algorithm: str, **given: Any) -> dict[str, Any]:
    """What is recorded of a run."""
    arguments: dict[str, Any] = {"num_episodes": NUM_EPISODES, "seeds": SEEDS} | given
    return history_of(cmdpax.learn(model(where), algorithm, **arguments))


def _further_cases() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """By name: a model, an algorithm, and further arguments of `learn`."""
    primal_dual, dual = "regularized-primal-dual", "regularized-dual"
    own = cmdpax.Optimism.live(scale=0.1).replace(unvisited_rows="zero")
    preset = cmdpax.parameters.regret_theorem(model("dense"), NUM_EPISODES)._asdict()
    blocks = {"num_episodes": BLOCK + 500, "record": range(1, BLOCK, 9)}
    log = {"log": True}  # as the matrix has it: these share a program
    return {
        "potential, primal-dual": ("dense", primal_dual, log | {"potential": True}),
        "potential, dual": ("lists", dual, {"potential": True, "regularization": 0.05}),
        "no constraint": ("unconstrained", primal_dual, {}),
        "three constraints": ("three", dual, {"optimism": own, "max_multiplier": 20.0}),
        "wide lists": ("wide-lists", primal_dual, log),
        "wide lists, dual": ("wide-lists", "vanilla-dual", {"optimism": "live"}),
        "theorem": ("dense", primal_dual, log | preset),
        "own levels": ("dense", primal_dual, log | {"record": [1, 50], "unsafe_at": [0.0, 0.3]}),
        "two blocks": ("dense", primal_dual, log | blocks),
        "two groups": ("dense", primal_dual, {"seeds": 70, "record": [10, 60]}),
    }


# --------------------------------------------------------------------------- interrupted, repeated


class Interrupting:
    """As `progress`: Ctrl-C after the first block of episodes, or after the first group of runs."""

    def __call__(self, done: int, total: int) -> None:
        """Interrupt as soon as something is done."""
        if done:
            raise KeyboardInterrupt


def interrupted(
    path: Path, cmdp: cmdpax.CMDP, algorithm: str, arguments: dict[str, Any]
) -> cmdpax.History:
    """Interrupt a run that keeps a checkpoint, and let it go on from there."""
    try:
        cmdpax.learn(cmdp, algorithm, **arguments, checkpoint=path, progress=Interrupting())
    except KeyboardInterrupt:
        return cmdpax.learn(cmdp, algorithm, **arguments, checkpoint=path)
    raise RuntimeError("the run ended before it was interrupted.")


def checkpoint_cases() -> Cases:
    """Interrupted runs, which must also equal those that were not interrupted."""
    power = cmdpax.schedules.power
    long = {"num_episodes": BLOCK + 300, "seeds": SEEDS, "record": range(5, BLOCK + 300, 5)}
    log = long | {"log": True}
    several: dict[str, Any] = {"num_episodes": 60, "seeds": 70}
    cases: dict[str, tuple[str, str, dict[str, Any]]] = {
        "primal-dual": ("dense", "regularized-primal-dual", log | {"step_size": power(0.3, 0.2)}),
        "soft": ("lists", "regularized-dual", log | {"optimism": "live"}),
        "greedy": ("once", "vanilla-dual", log | {"optimism": "live", "stationary": True}),
        "potential": ("dense", "regularized-primal-dual", log | {"potential": True}),
        "groups": ("dense", "regularized-primal-dual", several),
    }
    for name, case in cases.items():
        yield name, functools.partial(_interrupted_case, *case)


def _interrupted_case(where: str, algorithm: str, arguments: dict[str, Any]) -> dict[str, Any]:
    whole = cmdpax.learn(model(where), algorithm, **arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = interrupted(Path(folder) / "run.npz", model(where), algorithm, arguments)
    one, other = (named_arrays("", history_of(history)) for history in (whole, found))
    same = [np.array_equal(one[name], other[name], equal_nan=True) for name in one]
    if not all(same):
        raise RuntimeError("the run that was interrupted differs from the one that was not.")
    return history_of(found)


# ------------------------------------------------------------------- replay, schemes, plans, logs


@functools.cache
def logged(where: str, algorithm: str) -> cmdpax.History:
    """A run with its log, in a program that several groups use."""
    return cmdpax.learn(
        model(where), algorithm, num_episodes=NUM_EPISODES, seeds=SEEDS, optimism="live", log=True
    )


def replay_cases() -> Cases:
    """Logs fed to every algorithm, the account of its policies, models made of logs, repeats."""
    for where, algorithm in itertools.product(("dense", "long-lists"), sorted(PROGRAMS)):
        yield f"{where}/{algorithm}", functools.partial(_replay_case, where, algorithm)
    for storage, unvisited in (("dense", "uniform"), ("successors", "absorbing")):
        for stationary in (False, True):
            name = f"estimate/{storage}/{'stationary' if stationary else 'by step'}"
            given = {"storage": storage, "unvisited": unvisited, "stationary": stationary}
            yield name, functools.partial(_estimate_case, given)
    yield "repeat", _repeat_case


def _replay_case(where: str, algorithm: str) -> dict[str, Any]:
    log = logged(where, "regularized-primal-dual").log.run(0)
    found: dict[str, Any] = {}
    for profile, kind in (("live", "schedules"), ("empirical", "defaults")):
        if profile == "empirical" and where != "dense":  # one program is enough
            continue
        given = hyperparameters(kind, algorithm)
        replayed = cmdpax.replay(model(where), algorithm, log, optimism=profile, **given)
        account = cmdpax.account(model(where), replayed.policies)
        found[profile] = {"replay": replayed, "account": chosen(account, ACCOUNT)}
    return found


def _estimate_case(given: dict[str, Any]) -> dict[str, Any]:
    log = logged("dense", "regularized-primal-dual").log
    return chosen(cmdpax.estimate(log, thresholds=1.0, **given), MODEL)


def _repeat_case() -> dict[str, Any]:
    history = logged("dense", "regularized-primal-dual")
    return history_of(cmdpax.repeat(model("dense"), history.manifest))


def iterate_cases() -> Cases:
    """Both schemes, vanilla and regularized, with schedules and a policy floor."""
    power = cmdpax.schedules.power
    kinds: dict[str, dict[str, Any]] = {
        "vanilla": {},
        "regularized": {"regularization": 0.05, "step_size": 0.2, "max_multiplier": 9.0},
        "schedules": {"regularization": power(0.2, 0.3), "step_size": power(0.3, 0.2, 2.0)},
        "floor": {"regularization": 0.05, "policy_floor": 0.1},
        "vanilla, floor": {"policy_floor": 0.2},
    }
    for where, scheme, kind in itertools.product(
        ("dense", "lists"), ("primal-dual", "dual"), kinds
    ):
        if scheme == "primal-dual" or "floor" not in kind:
            given = {"num_iterations": 150, **kinds[kind]}
            yield (
                f"{where}/{scheme}/{kind}",
                functools.partial(cmdpax.iterate, model(where), scheme, **given),
            )


def planning_cases() -> Cases:
    """The optima that the accounts are measured against, of every model."""
    for name in ("dense", "once", "lists", "long", "long-lists", "three", "wide-lists"):
        yield name, functools.partial(_plan_case, name)


def _plan_case(name: str) -> dict[str, Any]:
    cmdp = model(name)
    solution = cmdpax.solve(cmdp)
    found = chosen(
        solution, ("value", "constraint_values", "multipliers", "slater_gap", "policy", "occupancy")
    )
    return {
        "fingerprint": cmdp.fingerprint,
        "solution": found,
        "saddle": cmdpax.solve_regularized(cmdp, regularization=0.05),
        "evaluation": cmdpax.evaluate(cmdp, found["policy"]),
        "frontier": cmdpax.frontier(cmdp, num_points=4),
    }
