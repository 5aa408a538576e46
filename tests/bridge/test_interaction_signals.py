"""`interact`: signals that are no costs, and what is hardly meant."""

import contextlib
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.gymnasium import BoxEncoder, MultiDiscreteEncoder, interact, make_env

H = 6


class Walk:
    """Places 0 … 2 on a line, and `info` with whatever is wanted; ends at place 2 if asked to.

    At the end the observation is that of place 0: others go on from there.
    """

    def __init__(self, info: dict[str, Any], ends: bool = False, length: int = 100) -> None:
        self.info, self.ends, self.length = info, ends, length

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        self.place = self.steps = 0
        return np.array([0.0]), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place, self.steps = min(2, self.place + 1), self.steps + 1
        over = self.ends and self.place == 2
        shown = 0.0 if over else float(self.place)
        return np.array([shown]), 0.5, over, self.steps == self.length, self.info


CELLS = BoxEncoder([[0.5, 1.5]])


def make(**changes: Any) -> cmdpax.Agent:
    system = {"num_states": 3, "num_actions": 2, "horizon": H, "thresholds": [4.0], "initial": 0}
    return cmdpax.Agent("vanilla-primal-dual", **(system | changes))


def test_signals_are_taken_as_they_are_declared() -> None:
    mixed = make(
        thresholds=[50.0, 3.0], senses=["at least", "at most"], constraint_ranges=[(0, 10), (0, 1)]
    )
    found = interact(Walk({}), mixed, 2, encoder=CELLS, signals=[lambda s, a, t: 8.0, [1, 0, 0]])
    assert found.constraint_returns.tolist() == [[48.0, 1.0]] * 2
    by_name = make(thresholds=[50.0], constraint_ranges=(0, 10))
    found = interact(Walk({"kWh": 7.5}), by_name, 2, encoder=CELLS, signals="kWh")
    assert found.constraint_returns.tolist() == [[45.0]] * 2


def test_costs_and_signals_are_not_both_given() -> None:
    with pytest.raises(cmdpax.ParameterError, match="costs or signals, not both"):
        interact(Walk({}), make(), 1, encoder=CELLS, costs="a", signals="a")


def test_after_the_end_signals_are_nothing() -> None:
    agent = make(num_states=4, thresholds=[20.0], constraint_ranges=(0, 10))
    walk = Walk({"kWh": 7.5}, ends=True)
    found = interact(walk, agent, 2, encoder=CELLS, signals="kWh", log=True)
    assert found.log.constraint_rewards.tolist() == [[[7.5, 7.5, 0, 0, 0, 0]]] * 2


def test_constraint_rewards_of_the_environment_come_before_its_costs() -> None:
    """Exactly, and in any range."""
    cmdp = cmdpax.environments.make("ring", scale_rewards=False)
    wide = cmdp.replace(constraint_rewards=cmdp.constraint_rewards * 3 - 1)
    low, high = wide.constraint_rewards.min(), wide.constraint_rewards.max()
    _, horizon, num_states, num_actions = wide.sizes
    agent = cmdpax.Agent(
        "vanilla-primal-dual",
        num_states=num_states,
        num_actions=num_actions,
        horizon=horizon,
        thresholds=[horizon * low],
        initial=wide.initial,
        reward_range=(wide.rewards.min(), wide.rewards.max()),
        constraint_ranges=(low, high),
    )
    found = interact(make_env(wide), agent, 3, seed=0, log=True)
    states, actions = found.log.states[:, :-1], found.log.actions
    rewards = np.broadcast_to(wide.constraint_rewards[0], (horizon, num_states, num_actions))
    expected = rewards[np.arange(horizon), states, actions]
    np.testing.assert_array_equal(found.log.constraint_rewards[:, 0], expected)


def test_a_limit_that_was_declared_as_at_least_is_warned_of() -> None:
    """The default is "at least": 2 of 6 steps without cost are soon had."""
    with pytest.warns(cmdpax.CmdpaxWarning, match="at least 2 and gets 1 - cost.*senses='at most'"):
        interact(Walk({"cost": 0.0}), make(thresholds=[2.0]), 3, encoder=CELLS)
    found = interact(Walk({"cost": 0.25}), make(thresholds=[4.0]), 1, encoder=CELLS)
    assert found.constraint_returns.tolist() == [[4.5]]


def test_an_environment_that_is_always_shorter_is_warned_of() -> None:
    walk = Walk({"cost": 0.0}, length=4)
    with pytest.warns(cmdpax.CmdpaxWarning, match=r"all 3 episodes.*of 6,.*after 4 .*horizon=4"):
        interact(walk, make(), 3, encoder=CELLS)


@pytest.mark.parametrize(
    ("encoder", "end_state", "num_states", "stays"),
    [
        (CELLS, None, 4, 3),  # one more than the encoder says
        (lambda shown: int(shown[0]), 3, 4, 3),  # told
        (CELLS, 2, 3, 2),
        (lambda shown: int(shown[0]), 1, 5, 1),
    ],
)
def test_where_terminated_episodes_stay(
    encoder: Any, end_state: int | None, num_states: int, stays: int
) -> None:
    agent = make(num_states=num_states)
    walk = Walk({"cost": 0.0}, ends=True)
    with pytest.warns(match="went on") if stays == 1 else contextlib.nullcontext():
        found = interact(walk, agent, 2, encoder=encoder, end_state=end_state, log=True)
    assert found.log.states.tolist() == [[0, 1, *[stays] * 5]] * 2


def test_an_end_without_a_state_of_its_own_is_warned_of() -> None:
    with pytest.warns(cmdpax.CmdpaxWarning, match="terminated in state 0 and also went on from it"):
        interact(Walk({"cost": 0.0}, ends=True), make(), 3, encoder=CELLS)
    interact(
        Walk({"cost": 0.0}, ends=True), make(), 3, encoder=CELLS, on_termination="end"
    )  # nothing stays anywhere


def test_an_end_state_out_of_range() -> None:
    with pytest.raises(cmdpax.ParameterError, match="end_state is 3, the states are 0 … 2"):
        interact(Walk({}), make(), 1, encoder=CELLS, end_state=3)
    with pytest.raises(cmdpax.ParameterError, match=r"encoder has 12 states, the agent 3"):
        interact(Walk({}), make(), 1, encoder=MultiDiscreteEncoder([3, 4]))


def test_arguments_in_the_wrong_order_and_a_reset_of_another_kind() -> None:
    with pytest.raises(cmdpax.ParameterError, match="agent is a Walk; give the environment first"):
        interact(make(), Walk({}), 1)
    walk = Walk({})
    walk.reset = lambda seed=None: 0  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(cmdpax.ParameterError, match="reset returns 0; it must return"):
        interact(walk, make(), 1, encoder=CELLS)


def test_after_the_end_there_are_no_constraint_rewards_either() -> None:
    """An environment that gives them is not paid for ending; one with costs has none to pay."""
    walk = Walk({"constraint_rewards": [0.5]}, ends=True)
    found = interact(walk, make(num_states=4), 1, encoder=CELLS)
    assert found.constraint_returns.tolist() == [[1.0]]
    found = interact(Walk({"cost": 0.5}, ends=True), make(num_states=4), 1, encoder=CELLS)
    assert found.constraint_returns.tolist() == [[0.5 * 2 + 4]]


def test_costs_beside_constraint_rewards() -> None:
    mixed = make(thresholds=[3.0, 3.0], senses=["at most", "at least"])
    info = {"constraint_rewards": [0.1, 0.9], "cost": [0.75, 0.1]}
    found = interact(Walk(info), mixed, 1, encoder=CELLS)
    assert found.constraint_returns == pytest.approx(np.array([[4.5, 5.4]]))


def test_an_end_state_among_those_of_the_environment() -> None:
    """A cost for every state of the environment, whose last one is where episodes stay."""
    agent = make()
    walk = Walk({}, ends=True)
    found = interact(walk, agent, 1, encoder=CELLS, end_state=2, costs=[1.0, 0.5, 9.0])
    assert found.constraint_returns.tolist() == [[0.0 + 0.5 + 4]]


def test_a_checkpoint_that_has_learned_more_is_not_overwritten(tmp_path: Any) -> None:
    path = tmp_path / "a.npz"
    interact(Walk({"cost": 0.0}), make(), 5, encoder=CELLS, checkpoint=path)
    with pytest.raises(cmdpax.FileError, match=r"agent of 5 episodes, this one has 0; go on with"):
        interact(Walk({"cost": 0.0}), make(), 5, encoder=CELLS, checkpoint=path)
    loaded = cmdpax.Agent.load(path)
    interact(Walk({"cost": 0.0}), loaded, 2, encoder=CELLS, checkpoint=path)
    assert cmdpax.Agent.load(path).num_episodes == 7


def test_ranges_that_are_not_declared_refuse_nothing() -> None:
    """What was seen so far is no limit: a walk that ends gives nothing after its end."""
    agent = cmdpax.Agent(
        num_states=4,
        num_actions=2,
        horizon=H,
        thresholds=[4.0, 12.0],
        senses=["at least", "at most"],
        initial=0,
        stationary=True,
    )
    interact(Walk({}), agent, 2, encoder=CELLS, costs=[[0.5] * 3, [3.0, 4.0, 5.0]])
    found = interact(
        Walk({}, ends=True), agent, 1, encoder=CELLS, costs=[[0.5] * 3, [3.0, 4.0, 5.0]], log=True
    )
    assert found.log.constraint_rewards[0].tolist() == [
        [0.5, 0.5, 1, 1, 1, 1],
        [3, 4, 0, 0, 0, 0],
    ]
