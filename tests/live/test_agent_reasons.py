"""What an agent believes and why it does what it does, in the user's words and units."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import broken_learners
import cmdpax
from lanes import quick_or_whole
from learning_cases import OURS
from live_cases import LISTS, assert_sentence, known, make, play
from pump_cases import NAMES, PUMP, WAIT, WAITS, Tank, pump_agent, truth

WORDS: dict[str, Any] = {
    "thresholds": [32.0, -0.5],
    "senses": ["at most", "at least"],
    "constraint_ranges": [(0, 20), (-1, 1)],
    "reward_range": (-3, 5),
    "names": ["energy", "comfort"],
    "units": {"energy": "kWh", "reward": "EUR"},
    "state_names": ["low", "mid", "high"],
    "action_names": ["rest", "work"],
}
CASES: dict[str, dict[str, Any]] = {
    "names and units": WORDS,
    "lists, shared counts": WORDS | {"successors": LISTS, "stationary": True},
    "actions that there are not": WORDS | {"available": [[1, 1], [1, 0], [1, 1]]},
    "known rewards": known() | {"thresholds": [1.2, 1.2]},
    "no constraints": {"thresholds": (), "constraint_ranges": None},
}
every_case = pytest.mark.parametrize(
    "name", [quick_or_whole(name, quick=name in list(CASES)[:3]) for name in CASES]
)


def agent_for(name: str) -> cmdpax.Agent:
    return play(make("replanning", **CASES[name]), 12)


def slow_values(agent: cmdpax.Agent) -> np.ndarray:
    """Q of every signal under the plan in the agent's model, `[J, H, S, A]`, in loops."""
    model, plan = agent.model, np.asarray(agent.plan)
    rows = model.transitions
    if isinstance(rows, cmdpax.Successors):
        full = np.zeros((*np.shape(rows.successors)[:3], 3))
        for *place, slot in np.ndindex(np.shape(rows.successors)):
            at = (*place, slot)
            full[(*place, int(rows.successors[at]))] += rows.probabilities[at]
        rows = full
    horizon, num_states, num_actions = plan.shape
    signals = np.stack(
        [np.broadcast_to(one, plan.shape) for one in (model.rewards, *model.signals)]
    )
    found = np.zeros((len(signals), *plan.shape))
    for j, h, s, a in np.ndindex(*found.shape):
        step = horizon - 1 - h
        value = signals[j, step % signals.shape[1], s, a]
        for t in range(num_states):
            chance = rows[step % len(rows), s, a, t]
            if step + 1 < horizon:
                later = sum(
                    plan[step + 1, t, b] * found[j, step + 1, t, b] for b in range(num_actions)
                )
                value += chance * later
        found[j, step, s, a] = value
    return found


class TestExplained:
    @every_case
    def test_values_prices_and_counts(self, name: str) -> None:
        agent = agent_for(name)
        slow, plan = slow_values(agent), np.asarray(agent.plan)
        prices = [one.price for one in agent.account]
        for step, state in np.ndindex(3, 3):
            found = agent.explain(state, step)
            possible = [a for a in range(2) if agent.declaration.is_available(step, state, a)]
            words = agent.declaration.words
            assert found.actions == tuple(words.action(a) for a in possible)
            np.testing.assert_array_equal(found.probabilities, plan[step, state, possible])
            visits = agent.visits[step % len(agent.visits), state, possible]
            np.testing.assert_array_equal(found.visits, visits)
            expected = slow[:, step, state, possible]
            np.testing.assert_allclose(found.values, expected[0], rtol=0, atol=1e-9)
            np.testing.assert_allclose(found.constraint_values, expected[1:].T, rtol=0, atol=1e-9)
            np.testing.assert_allclose(found.prices, prices, rtol=1e-12)
            signs = [-1 if one.sense == "at most" else 1 for one in agent.account]
            scores = expected[0] + sum(
                sign * price * values
                for sign, price, values in zip(signs, prices, expected[1:], strict=True)
            )
            np.testing.assert_allclose(found.scores, scores, rtol=0, atol=1e-9)

    def test_the_plan_takes_the_best_with_prices(self) -> None:
        """Where nothing is explored, and the plan was just made of these counts."""
        chosen = {"exploration": "none", "random_visits": 0.0, "pooling": "none", "growth": 0.0}
        agent = pump_agent(threshold=1.5, **chosen)
        Tank().play(agent, 40)
        assert agent.account[0].price > 0
        for step, state in np.ndindex(3, 2):
            found = agent.explain(state, step)
            played = found.probabilities > 1e-6
            assert (found.scores[played] >= found.scores.max() - 1e-6).all()

    def test_where_the_agent_is(self) -> None:
        agent = agent_for("names and units")
        with pytest.raises(cmdpax.ParameterError, match="no episode is open, so no state is known"):
            agent.explain()
        agent.start("mid")
        assert (agent.explain().state, agent.explain().step) == ("mid", 0)
        agent.act("mid")
        agent.observe(1, [2, 0], "high")
        assert (agent.explain().state, agent.explain().step) == ("high", 1)
        assert agent.explain("low").step == 1
        assert agent.explain("low", 2).step == 2
        assert agent.explain(np.int64(0), np.int64(2)).state == "low"
        for _ in range(2):
            agent.act(agent.state)
            agent.observe(1, [2, 0], "high")
        assert (agent.expects, agent.explain().step) == ("end", 2)

    @pytest.mark.parametrize(
        ("state", "step", "sentence"),
        [
            ("hihg", 0, "there is no state 'hihg'; did you mean 'high'? known: high, low, mid."),
            (3, 0, "the state is 3, the states are 0 … 2."),
            (0, 3, "step is 3, it must be a whole number from 0 to 2."),
            (0, -1, "step is -1, it must be a whole number from 0 to 2."),
            (0, 1.0, "step is 1.0, it must be a whole number from 0 to 2."),
            (0, True, "step is True, it must be a whole number from 0 to 2."),
            (0, "first", "step is 'first', it must be a whole number from 0 to 2."),
        ],
    )
    def test_no_such_place(self, state: Any, step: Any, sentence: str) -> None:
        with pytest.raises(cmdpax.ParameterError) as caught:
            make("replanning", **WORDS).explain(state, step)
        assert str(caught.value) == sentence

    def test_printed_in_columns(self) -> None:
        agent = agent_for("names and units")
        lines = str(agent.explain("high", 1)).splitlines()
        assert lines[0] == "in high at step 1, expected from here on"
        price = rf"{agent.account[0].price:.4g}"
        assert lines[1] == f"energy [kWh], at most its threshold, has a price of {price} per unit"
        assert lines[2].startswith("comfort, at least its threshold, has a price of ")
        table = lines[3:]
        heads = re.split(r"  +", table[0])
        assert heads == [
            "action", "plan", "tried", "reward [EUR]", "energy [kWh]", "comfort", "with prices",
        ]  # fmt: skip
        assert [row.split()[0] for row in table[1:]] == ["rest", "work"]
        for head in heads[1:]:
            end = table[0].index(head) + len(head)
            assert all(row[end - 1] != " " for row in table)
            assert all(row[end : end + 2] in ("", "  ") for row in table)

    def test_as_a_frame(self) -> None:
        found = agent_for("names and units").explain(0)
        frame = found.frame()
        assert frame.columns == [
            "action", "probability", "tried",
            "reward [EUR]", "energy [kWh]", "comfort", "with prices",
        ]  # fmt: skip
        assert frame["action"].to_list() == ["rest", "work"]
        np.testing.assert_array_equal(frame["with prices"].to_numpy(), found.scores)


class TestModel:
    def test_words_and_numbers(self) -> None:
        agent = agent_for("names and units")
        model = agent.model
        assert model.words.state_names == ("low", "mid", "high")
        assert model.words.action_names == ("rest", "work")
        assert model.words.constraint_names == ("energy", "comfort")
        assert model.words.units == ("EUR", "kWh", "")
        assert model.words.senses == ("at most", "at least")
        assert (model.horizon, model.num_states, model.num_actions) == (3, 3, 2)
        np.testing.assert_array_equal(model.bounds, [32.0, -0.5])
        found = cmdpax.evaluate(model, agent.plan)
        assert "energy" in str(found) or found.constraint_values.shape == (2,)
        assert cmdpax.solve(model).feasible in (True, False)

    def test_frequencies_and_means(self) -> None:
        """Of a log that says it all; what was never tried may be the worst."""
        agent, log = pump_agent(**NAMES), Tank().log(WAIT, 50)
        agent.feed(log)
        model = agent.model
        for state in range(2):
            here = log.states[:, :3] == state
            wet = (log.states[:, 1:] == 1)[here].mean()
            np.testing.assert_allclose(
                model.transitions[0, state, WAIT], [1 - wet, wet], atol=1e-12
            )
            np.testing.assert_allclose(model.rewards[0, state, WAIT], log.rewards[here].mean())
            spills = log.constraint_rewards[:, 0][here].mean()
            np.testing.assert_allclose(model.signals[0, 0, state, WAIT], spills, atol=1e-12)
        np.testing.assert_array_equal(model.transitions[0, :, PUMP], 0.5)
        np.testing.assert_array_equal(model.rewards[0, :, PUMP], 0)
        np.testing.assert_array_equal(model.signals[0, 0, :, PUMP], 2)

    def test_only_what_may_follow_and_what_there_is(self) -> None:
        listed = agent_for("lists, shared counts").model
        assert isinstance(listed.transitions, cmdpax.Successors)
        assert cmdpax.validate(listed) is not None
        flags = agent_for("actions that there are not").model.available
        assert flags is not None
        assert not flags[:, 1, 1].any()

    def test_known_signals_are_the_users(self) -> None:
        told, agent = known(), play(make("replanning", **known(), thresholds=[1.2, 1.2]), 3)
        np.testing.assert_allclose(agent.model.rewards, told["rewards"], rtol=0, atol=1e-12)
        found = np.broadcast_to(agent.model.signals, (2, 3, 3, 2))
        expected = np.broadcast_to(told["constraint_rewards"], (2, 3, 3, 2))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


class TestUncertain:
    def test_in_the_users_units(self) -> None:
        agent = pump_agent(**NAMES)
        agent.feed(Tank().log(WAIT, 30))
        lines = str(agent.uncertainty).splitlines()
        assert lines[0].startswith("reward [EUR]: ")
        assert lines[1].startswith("spills [l]: ")
        assert "; at most 2 l with probability " in lines[1]

    def test_narrow_where_much_is_known(self) -> None:
        """Of what is played: here a baseline that was logged a thousand times."""
        agent, log = pump_agent(0.4, baseline=[WAIT, WAIT]), Tank().log(WAIT, 1000)
        agent.feed(log)
        assert agent.mixture is not None
        assert agent.mixture.share == 0
        found, exact = agent.uncertainty, cmdpax.evaluate(agent.model, WAITS)
        np.testing.assert_allclose(found.expected[0], exact.value, rtol=0.02)
        np.testing.assert_allclose(found.expected[1], exact.constraint_values[0], rtol=0.05)
        true = cmdpax.evaluate(truth(), WAITS)
        assert found.value[0] < true.value < found.value[1]
        low, high = found.constraint_values[0]
        assert low < true.constraint_values[0] < high < low + 0.25
        assert 0 < found.probability_met.joint < 0.6
        assert found.probability_met.joint == found.probability_met.each[0]

    def test_of_the_mixture(self) -> None:
        """Beside a baseline, the share of the plan counts."""
        agent, tank = pump_agent(2.0, baseline=[WAIT, WAIT]), Tank()
        agent.feed(tank.log(WAIT, 40))
        mixture = agent.mixture
        assert mixture is not None
        assert 0 < mixture.share < 1
        found = agent.uncertainty
        alone = pump_agent(2.0, exploration="none")
        alone.feed(tank.log(WAIT, 40))
        assert found.expected[1] < 2.0
        assert agent.uncertainty.expected.tolist() == found.expected.tolist()  # drawn once

    def test_of_several_constraints(self) -> None:
        found = agent_for("names and units").uncertainty
        each = found.probability_met.each
        assert max(0.0, each.sum() - 1) - 1e-12 <= found.probability_met.joint <= each.min()
        assert "all constraints are met with probability" in str(found)


PROPERTIES = (
    "policy", "plan", "mixture", "plays_plan", "frozen", "planning", "multipliers", "model",
    "uncertainty", "account", "recent", "visits", "learner_state", "declaration", "num_episodes",
    "episode", "step", "state", "action", "expects",
)  # fmt: skip
CALLS: dict[str, Callable[[cmdpax.Agent], Any]] = {
    **{name: lambda agent, name=name: str(getattr(agent, name)) for name in PROPERTIES},
    "explain": lambda agent: str(agent.explain(0)),
    "freeze": lambda agent: agent.freeze(),
    "resume": lambda agent: agent.resume(),
}
NO_PLANS = ("regularized-dual", "regularized-primal-dual", "vanilla-dual", "vanilla-primal-dual")


@pytest.mark.parametrize("told", ["observed", "known"])
@pytest.mark.parametrize(
    "algorithm",
    [
        quick_or_whole(name, quick=name in ("regularized-primal-dual", "replanning"))
        for name in OURS
    ],
)
def test_every_algorithm_answers_or_says_why_not(algorithm: str, told: str) -> None:
    agent = play(make(algorithm, **(known() if told == "known" else {})), 4)
    refused = {}
    for name, call in CALLS.items():
        try:
            call(agent)
        except cmdpax.ParameterError as error:
            refused[name] = str(error)
    expected = f"{algorithm} does not plan, so there are no plans."
    assert refused == ({"planning": expected} if algorithm in NO_PLANS else {})
    assert cmdpax.evaluate(agent.model, agent.policy).value >= 0


def test_an_own_algorithm_that_shows_nothing() -> None:
    agent = play(make(broken_learners.sound), 2)
    refused = {}
    for name, call in CALLS.items():
        try:
            call(agent)
        except cmdpax.ParameterError as error:
            assert_sentence(error)
            refused[name] = str(error)
    assert set(refused) == {"planning", "model", "uncertainty", "visits", "explain"}
    assert refused["model"] == refused["explain"] == refused["uncertainty"]
    assert refused["model"].startswith(
        "sound shows no statistics, so what it has counted is not kn"
    )


def test_a_policy_is_a_table_with_names() -> None:
    agent = agent_for("names and units")
    assert agent.policy.words.state_names == ("low", "mid", "high")
    assert str(agent.plan).splitlines()[1].split()[0] == "state"
    assert "work" in str(agent.plan) + str(agent.explain("low"))
