"""`enumerate_env`: the model of an environment that has no table, by trying it out."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import require_count
from cmdpax.errors import ParameterError, shown
from cmdpax.gymnasium.expectations import as_limits
from cmdpax.gymnasium.found_states import FoundStates
from cmdpax.gymnasium.limits import warn_of_limit
from cmdpax.gymnasium.outcomes import assemble, expected
from cmdpax.gymnasium.readers import (
    Reader,
    function_kind,
    given_cost,
    reader_of,
    require_one_each,
)
from cmdpax.gymnasium.restoring import restorer_of
from cmdpax.gymnasium.spaces import Decoder, actions_of, decoder_of, require_single
from cmdpax.gymnasium.stepping import Objective, Taken
from cmdpax.gymnasium.trying import Trials
from cmdpax.model.arrays import ArrayLike
from cmdpax.model.cmdp import CMDP
from cmdpax.model.toolbox import require_words

_RESETS = 10  # to see whether episodes begin in one state


class EnumeratedEnv(NamedTuple):
    """An environment that was tried out: its model, and how to speak of the same states.

    `interact(env, agent, …, **found.arguments)` and `play(env, policy, …, **found.arguments)`
    play in the environment with the model's states, actions and costs.

    Attributes:
        cmdp: the model.
        encoder: turns an observation into the model's state; one that was not met is an error.
        states: for each state the observation, or what the encoder that was given made of it; a
            last state of the model that is not among them is that of ended episodes.
        arguments: encoder, decoder, costs and objective for `interact` and `play`.
    """

    cmdp: CMDP
    encoder: FoundStates
    states: tuple[Any, ...]
    arguments: dict[str, Any]

    def __repr__(self) -> str:
        """The model; observations may be large."""
        return f"EnumeratedEnv({self.cmdp!r})"


def enumerate_env(
    env: Any,
    horizon: int,
    *,
    costs: Any = None,
    limits: ArrayLike | None = None,
    objective: Any = None,
    states: Iterable[Any] | None = None,
    set_state: Callable[[Any, Any], Any] | str | None = None,
    get_state: Callable[[Any], Any] | None = None,
    samples: int = 1,
    resets: int | None = None,
    encoder: Callable[[Any], Any] | None = None,
    decoder: Decoder | None = None,
    seed: int | None = 0,
    max_states: int = 10_000,
    state_names: Any = None,
    **words: Any,
) -> EnumeratedEnv:
    """The CMDP of an environment without a table, by trying every action in every state.

    From the first states on, each state that is reached is restored for every action, breadth
    first. A deterministic environment is tried once for each pair, and the model is exact; every
    pair is then tried again, and some random episodes are played, to see that it is. One that is
    random is tried `samples` times, and the model has frequencies and means: an estimate, whose
    errors a plan may exploit.

    An environment is put into a state by `set_state`, by `env.unwrapped.s` or
    `env.unwrapped.state` if there is one, or by copies of everything that it and its wrappers
    hold (MiniGrid). An environment that allows none of these can only be played: let an agent do
    so, `interact(…, log=True)`, and take `cmdpax.estimate` of the log.

    What it cannot see: states that nothing observed tells apart are one state. With `samples=1`
    that is found out where the second try, made from where the state was met last, or an episode
    has another outcome. With more samples it looks like randomness: a state is tried from up to
    fifty of the places where it was met, which is right only if these are as frequent in the
    episodes of a plan. So an encoder that puts many observations into one state makes a coarse
    model. A limit on time is no part of the state: truncations are not read, and a horizon beyond
    the limit is warned of. Ends are treated as by `from_env`.

    Args:
        env: the environment. It is left in the middle of an episode.
        horizon: H.
        costs: as for `interact`: None (what the environment gives, or the components of a vector
            reward that are not the objective, with the other sign), a name in `info`, a function
            of (state, action, next_state) or of `info`, or a list with one for each constraint.
            States are observations here, or what `encoder` makes of them. Arrays `[S]` and
            `[S, A]` will do where states are whole numbers.
        limits: for each constraint, the largest allowed expected sum of its costs; None makes a
            plain MDP.
        objective: which component of a vector reward is maximised, as for `interact`.
        states: observations of further states to begin in, which `set_state` can reach.
        set_state: `set_state(env, state)` puts the environment into the state; or "copy".
        get_state: `get_state(env)` is what `set_state` takes; None: the observation.
        samples: tries for each state and action.
        resets: how many first states are drawn, to estimate where episodes begin. None takes ten,
            which must be the same.
        encoder: turns observations into what tells states apart: numbers, texts, arrays, or tuples
            and dicts of these. None takes observations as they are.
        decoder: a list of the actions to try, where these are not Discrete or some are of no use.
        seed: the seed of the first reset; None for environments that take none.
        max_states: how many states there may be.
        state_names: a name for each state, or a function that makes one of an observation; None
            makes names of observations that are short, such as "(0, 3)".
        words: names and units, as for `cmdpax.CMDP`.

    Raises:
        ParameterError: the environment cannot be restored, is random or has hidden states although
            `samples` is 1, or has too many states.

    Examples:
        >>> import cmdpax, gymnasium
        >>> from cmdpax.gymnasium import enumerate_env, play
        >>> cliff = gymnasium.make("CliffWalking-v1")
        >>> edge = lambda s, a, t: 24 <= t < 36  # beside the cliff
        >>> found = enumerate_env(cliff, 30, costs=edge, limits=5)
        >>> found
        EnumeratedEnv(CMDP(S=48, A=4, H=30, I=1, successors))
        >>> plan = cmdpax.solve(found.cmdp)
        >>> print(f"{plan.value:.2f} with {plan.constraint_values[0]:.2f} steps at the edge")
        -14.40 with 5.00 steps at the edge
        >>> print(play(cliff, plan.policy, 200, seed=0, **found.arguments))
        200 episodes: reward -14... ± ..., cost ... ± ...; 200 terminated, 14... steps on average
    """
    horizon = require_count("horizon", horizon)
    samples, max_states = require_count("samples", samples), require_count("max_states", max_states)
    seed = None if seed is None else require_count("seed", seed, 0)
    require_words("enumerate_env", words)
    require_single(env, "which cannot be tried; give a single environment, or enumerate one")
    found = FoundStates(env, encoder, max_states)
    actions = _actions(env, decoder)
    read, bounds = _costs(costs, limits, (found.num_states, len(actions)), found.numbered)
    trials = Trials(
        env, found, actions, objective=Objective(objective), costs=read, samples=samples, seed=seed
    )
    begun = _begin(trials, seed, resets, lambda: restorer_of(env, set_state, get_state))
    _add(trials, env, encoder, states)
    begin = trials.begun
    trials.run(horizon)
    names = {"state_names": _names(found, state_names)}
    cmdp = _assembled(
        trials, (found.num_states, len(actions)), begun, begin, horizon, bounds, **(words | names)
    )
    warn_of_limit(env, horizon)
    own = {"costs": _translated(costs, found), "objective": objective}
    arguments = {"encoder": found, "decoder": decoder} | own
    return EnumeratedEnv(cmdp, found, tuple(found.states), arguments)


def _assembled(
    trials: Trials,
    shape: tuple[int, int],
    begun: list[int],
    begin: list[int],
    horizon: int,
    limits: np.ndarray,
    **words: Any,
) -> CMDP:
    """The model of what was tried; episodes begin as `begun` says, or may where `begin` does."""
    outcomes, paid = trials.outcomes()
    costs = [expected(outcomes, cost, shape) for cost in paid.T]
    return assemble(
        outcomes,
        shape,
        start=np.bincount(begun, minlength=shape[0]) / len(begun),
        begin=np.isin(np.arange(shape[0]), begin),
        horizon=horizon,
        rewards=lambda _: expected(outcomes, outcomes["reward"], shape),
        costs=lambda _: np.reshape(costs, (len(limits), *shape)),
        limits=limits,
        words=words,
    )


def _actions(env: Any, decoder: Any) -> list[Any]:
    """The environment's actions, in the order of 0 … A - 1."""
    count = actions_of(env, decoder)
    if count is None:
        raise ParameterError(
            "the number of actions is not known; give decoder=, a list of the actions to try, such "
            "as [0, 1, 2]."
        )
    decode = decoder_of(env, decoder)
    return [decode(action) for action in range(count)]


def _costs(
    costs: Any, limits: Any, pairs: tuple[int, int], numbered: bool
) -> tuple[Callable[[Any, int, Any, Taken], np.ndarray], np.ndarray]:
    """What reads the costs of a step, `[I]`, and the limits."""
    if limits is None:
        if costs is not None:
            raise ParameterError("costs came without limits; give both or neither.")
        return lambda *_: np.zeros(0), np.zeros(0)
    bounds = as_limits(limits)
    read: Reader | None = None if costs is None else reader_of(costs, pairs if numbered else None)

    def of_step(state: Any, action: int, following: Any, taken: Taken) -> np.ndarray:
        if read is not None:
            found = read(state, action, following, taken.info)
        elif taken.components is not None and taken.components.size:
            found = -taken.components + 0.0  # no -0.0
        else:
            found = given_cost(taken.cost, taken.info)
        return require_one_each(found, len(bounds), f"there are {len(bounds)} limits")

    return of_step, bounds


def _begin(
    trials: Trials, seed: int | None, resets: int | None, restorer: Callable[[], Any]
) -> list[int]:
    """The first states of some episodes."""
    count = _RESETS if resets is None else require_count("resets", resets)
    first = trials.begin(seed, restorer)
    begun = [first, *(trials.begin(None) for _ in range(count - 1))]
    if resets is None and len(set(begun)) > 1:
        raise ParameterError(
            f"{count} episodes began in {len(set(begun))} different states; give resets=, how many "
            "to estimate their distribution from, such as resets=1000."
        )
    return begun


def _add(trials: Trials, env: Any, encoder: Any, states: Iterable[Any] | None) -> None:
    """Begin in the states that the user lists, too."""
    if states is None:
        return
    if not trials.restorer.settable:
        raise ParameterError(
            f"states cannot be given where {trials.restorer.means} restores them; give a "
            "set_state(env, state) that takes an observation."
        )
    space = getattr(env, "observation_space", None)
    for index, state in enumerate(states):
        if encoder is None and space is not None and not space.contains(state):
            raise ParameterError(
                f"states[{index}] is {shown(state)}, which is no observation of {shown(space)}."
            )
        trials.add(state)


def _names(found: FoundStates, given: Any) -> Any:
    if callable(given):
        return [given(state) for state in found.states]
    return found.names() if given is None else given


def _translated(costs: Any, found: FoundStates) -> Any:
    """Costs that take states by their numbers, as `interact` and `play` have them."""
    if found.numbered:
        return costs
    if isinstance(costs, list | tuple):
        return [_translated(cost, found) for cost in costs]
    if callable(costs) and function_kind(costs, "costs") == "step":
        return lambda s, a, t: costs(found.states[s], a, found.states[t])
    return costs
