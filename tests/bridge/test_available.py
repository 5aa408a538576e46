"""Actions that are not available, in Gymnasium: `info["action_mask"]`, and no step with them."""

import numpy as np
import pytest

import cmdpax
from available_cases import HORIZON, STORAGES, case
from cmdpax.gymnasium import interact, make_env


@pytest.mark.parametrize("storage", STORAGES)
def test_info_says_what_is_available_next(storage: str) -> None:
    one = case(storage)
    env = make_env(one.cmdp)
    env.action_space.seed(0)
    for episode in range(20):
        state, info = env.reset(seed=episode)
        for step in range(HORIZON):
            mask = info["action_mask"]
            assert mask.dtype == np.int8
            np.testing.assert_array_equal(mask, one.flags[step, state])
            state, _, _, truncated, info = env.step(env.action_space.sample(mask=mask))
        assert truncated
        np.testing.assert_array_equal(info["action_mask"], one.flags[HORIZON - 1, state])


def test_other_actions_are_refused_by_name() -> None:
    one = case("steps")
    names = {"state_names": ["dock", "road", "shop"], "action_names": ["go", "wait", "load"]}
    env = make_env(one.cmdp.replace(**names))
    _, info = env.reset(seed=0, options={"state": 1})
    wrong, right = np.argsort(info["action_mask"])[[0, -1]]
    with pytest.raises(cmdpax.ParameterError) as raised:
        env.step(int(wrong))
    assert str(raised.value) == (
        f"{names['action_names'][wrong]} is not available in road at step 0; choose one that "
        'info["action_mask"] marks with 1.'
    )
    assert env.step(int(right))[-1]["step"] == 1


def test_a_model_without_flags_has_no_mask() -> None:
    env = make_env(case("steps").plain)
    assert "action_mask" not in env.reset()[1]
    assert "action_mask" not in env.step(0)[-1]


def test_an_agent_with_the_same_flags_plays_in_it() -> None:
    one = case("steps")
    told = {
        "num_states": 3,
        "num_actions": 3,
        "horizon": HORIZON,
        "thresholds": one.cmdp.thresholds,
        "initial": one.cmdp.initial,
    }
    agent = cmdpax.Agent("regularized-primal-dual", **told, available=one.cmdp.available)
    found = interact(make_env(one.cmdp), agent, 30, seed=1, log=True)
    assert found.log is not None
    assert one.flags[np.arange(HORIZON), found.log.states[:, :-1], found.log.actions].all()
    other = cmdpax.Agent("regularized-primal-dual", **told)
    with pytest.raises(cmdpax.ParameterError, match="is not available in state"):
        interact(make_env(one.cmdp), other, 30, seed=1)
