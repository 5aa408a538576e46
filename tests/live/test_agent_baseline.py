"""A baseline is trusted and played first; plans are played as often as the data allow."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
from baseline_cases import CAUTIOUS, mixture
from cmdpax.live.checking import confidence_of
from cmdpax.model.cmdp import Sizes
from cmdpax.model.policy_forms import baseline_of
from cmdpax.model.words import PLAIN, Words, make_words
from live_cases import assert_same, assert_sentence
from pump_cases import NAMES, PUMP, WAIT, WAITS, Tank, pump_agent, truth

SIZES = Sizes(1, 2, 3, 2)  # two steps, three states, two actions
NAMED = make_words((3, 2, 1), state_names=["low", "mid", "high"], action_names=["wait", "work"])
WORKS_IN_MID = np.eye(2)[[[0, 1, 0], [0, 1, 0]]]
THE_SAME = {
    "a policy": WORKS_IN_MID,
    "a policy of one step": WORKS_IN_MID[:1],
    "a table of probabilities": [[1, 0], [0, 1], [1, 0]],
    "actions": [0, 1, 0],
    "actions as a tuple": (0, 1, 0),
    "actions as an array": np.array([0, 1, 0], np.uint8),
    "a mapping": {2: 0, 0: 0, 1: 1},
    "a mapping to probabilities": {0: [1, 0], 1: [0, 1], 2: [1.0, 0.0]},
    "a function": lambda state: int(state == 1),
    "a function to probabilities": lambda state: [float(state != 1), float(state == 1)],
    "a function with a default": lambda state, level=1: int(state == level),
    "a function with a keyword": lambda state, *, level=1: int(state == level),
    "an object that is called": type("Rule", (), {"__call__": lambda self, state: state % 2})(),
    "a policy of the library": cmdpax.Policy(WORKS_IN_MID),
}
THE_SAME_BY_NAME = {
    "actions": ["wait", "work", "wait"],
    "some by index": ["wait", 1, 0],
    "a mapping": {"low": "wait", "high": "wait", "mid": "work"},
    "a mapping by index": {0: "wait", 1: "work", 2: 0},
    "a function": lambda state: "work" if state == "mid" else "wait",
}
WRONG: dict[str, tuple[Any, str]] = {
    "too few actions": ([0, 1], "baseline has shape (2,), expected (2, 3, 2) or (3, 2); give a po"),
    "too many steps": (np.ones((3, 3, 2)) / 2, "baseline has shape (3, 3, 2), expected (2, 3, 2)"),
    "a number": (0, "baseline has shape ()"),
    "nothing": ([], "baseline has shape (0,)"),
    "a text": ("wait", "baseline is 'wait'; give a policy"),
    "a set": ({0, 1}, "baseline is {0, 1}; give a policy"),
    "an object": (object(), "baseline is <object"),
    "rows of various lengths": ([[1, 0], [1], [0, 1]], "baseline is [[1, 0], [1], [0, 1]]; give"),
    "complex numbers": ([[1j, 0]] * 3, "baseline is [[1j, 0], [1j, 0], [1j, 0]]; give a policy"),
    "an action that is none": ([0, 2, 0], "baseline gives 2 for a state; give one of the actions"),
    "half an action": ([0, 0.5, 0], "baseline gives 0.5 for a state"),
    "a flag": ([0, True, 0], "baseline gives True for a state"),
    "no action": ([0, None, 0], "baseline gives None for a state; give one of the actions 0 … 1, "),
    "a huge action": ([0, 10**30, 0], "for a state; give one of the actions 0 … 1, or 2 probabili"),
    "a name without names": (["wait"] * 3, "there is no action 'wait'; the actions have no names"),
    "a state without a name": ({"low": 0}, "there is no state 'low'; the states have no names"),
    "no entry": ({0: 0, 1: 0}, "baseline has no entry for state 2; give an action for each state."),
    "an entry for no state": ({0: 0, 3: 0}, "state is 3, the states are 0 … 2."),
    "not a number": ([[1, np.nan]] * 3, "baseline has [1.0, nan] in state 0 at step 0; its probab"),
    "a sum above 1": ([[1, 0], [0.5, 0.6], [1, 0]], "baseline has [0.5, 0.6] in state 1 at step 0"),
    "a negative one": ([[1, 0], [1, 0], [1.5, -0.5]], "baseline has [1.5, -0.5] in state 2 at st"),
    "a function that fails": (lambda state: 1 // state, "baseline(0) failed with ZeroDivisionErr"),
    "a function of nothing": (lambda: 0, "baseline(0) failed with TypeError: "),
    "a function of three": (lambda s, h, a: 0, "baseline(0) failed with TypeError: "),
    "a function to nothing": (lambda state: None, "baseline gives None for a state"),
    "a function to lists": (lambda state: [[1], [1, 2]], "baseline gives [[1], [1, 2]] for a stat"),
}


class TestForms:
    @pytest.mark.parametrize("form", THE_SAME)
    def test_all_mean_the_same(self, form: str) -> None:
        found = baseline_of(THE_SAME[form], SIZES, PLAIN, None)
        np.testing.assert_array_equal(found, WORKS_IN_MID)
        assert found is not None
        assert not found.flags.writeable

    @pytest.mark.parametrize("form", THE_SAME_BY_NAME)
    def test_by_name(self, form: str) -> None:
        found = baseline_of(THE_SAME_BY_NAME[form], SIZES, NAMED, None)
        np.testing.assert_array_equal(found, WORKS_IN_MID)

    @pytest.mark.parametrize("rule", [lambda state, hour: hour, lambda state, step=0: step])
    def test_of_the_step(self, rule: Any) -> None:
        found = baseline_of(rule, SIZES, PLAIN, None)
        np.testing.assert_array_equal(found, np.eye(2)[[[0] * 3, [1] * 3]])

    @pytest.mark.parametrize("form", WRONG)
    def test_wrong_ones_are_refused_in_a_sentence(self, form: str) -> None:
        given, sentence = WRONG[form]
        with pytest.raises(cmdpax.ParameterError) as caught:
            baseline_of(given, SIZES, PLAIN, None)
        assert_sentence(caught.value)
        assert sentence in str(caught.value)

    def test_actions_that_there_are_not(self) -> None:
        flags = np.array([[[1, 1], [1, 0], [1, 1]]], bool)
        sentence = "baseline plays work in mid at step 0, where it is not available; correct the ba"
        with pytest.raises(cmdpax.ParameterError, match=sentence):
            baseline_of([0, 1, 0], SIZES, NAMED, flags)
        assert baseline_of([0, 0, 0], SIZES, NAMED, flags) is not None

    def test_a_policy_with_names_in_another_order(self) -> None:
        def rule(**names: Any) -> cmdpax.Policy:
            rows = np.ones((1, 3, 2, 1)) * np.eye(3)[0]
            arrays = (rows, np.zeros((1, 3, 2)), np.zeros((0, 1, 3, 2)), [], [1, 0, 0], 2)
            model = cmdpax.CMDP(*arrays, **names)
            return cmdpax.Policy(np.eye(2)[[[0, 0, 1]]], model)

        other = {"state_names": ["high", "low", "mid"], "action_names": ["wait", "work"]}
        found = baseline_of(rule(**other), SIZES, NAMED, None)
        np.testing.assert_array_equal(found, WORKS_IN_MID)
        others = rule(**(other | {"state_names": ["high", "low", "middle"]}))
        with pytest.raises(cmdpax.ParameterError, match="only the model has the state 'mid'; give"):
            baseline_of(others, SIZES, NAMED, None)

    def test_sums_are_made_1_once_and_for_all(self) -> None:
        """A file must hold the very numbers that were played."""
        rows = np.random.default_rng(0).random((200, 7))
        sizes, words = Sizes(1, 1, 200, 7), Words()
        once = baseline_of(rows / rows.sum(axis=1, keepdims=True) * (1 + 1e-7), sizes, words, None)
        np.testing.assert_allclose(once.sum(axis=-1), 1, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(baseline_of(once, sizes, words, None), once)

    @pytest.mark.parametrize("given", [0, 1, 1.5, "much", True, np.nan])
    def test_confidences_that_are_none(self, given: Any) -> None:
        with pytest.raises(cmdpax.ParameterError, match="it must be between 0 and 1"):
            confidence_of(given, [0, 0])

    def test_confidence_goes_with_a_baseline(self) -> None:
        assert confidence_of(None, None) is None
        assert confidence_of(None, [0, 0]) == 0.9
        assert confidence_of(np.float32(0.5), [0, 0]) == 0.5
        with pytest.raises(
            cmdpax.ParameterError, match=r"confidence is 0.5, but there is no basel"
        ):
            confidence_of(0.5, None)

    @pytest.mark.parametrize("name", ["baseline", "approve"])
    def test_algorithms_that_never_keep_a_policy(self, name: str) -> None:
        given = {"baseline": [0, 0], "approve": bool}[name]
        sentence = f"{name} was given, but vanilla-dual changes its policy in every episode; use an"
        with pytest.raises(cmdpax.ParameterError, match=sentence):
            pump_agent(algorithm="vanilla-dual", **{name: given})


class TestPlayed:
    def test_first(self) -> None:
        """Nothing is known, so the baseline is all that is trusted."""
        agent, tank = pump_agent(baseline=[WAIT, WAIT]), Tank()
        assert agent.mixture is not None
        assert agent.mixture.share == 0
        while agent.mixture.share == 0:
            np.testing.assert_array_equal(agent.policy, WAITS)
            assert not agent.plays_plan
            tank.play(agent, agent.num_episodes + 1)
        assert agent.visits[0, :, PUMP].sum() == 0
        assert agent.num_episodes < 40

    def test_policies_are_the_plan_or_the_baseline_by_a_coin(self) -> None:
        """The coin of an episode is a function of the seed and the episode's number alone."""
        shares = set()
        for world in (0, 1):
            agent, tank = pump_agent(threshold=1.2, baseline=[WAIT, WAIT], growth=0.2), Tank(world)
            for episode in range(1, 81):
                assert agent.mixture is not None
                key = jax.random.fold_in(jax.random.key(3, impl="threefry2x32"), episode)
                with jax.enable_x64(True):
                    coin = float(jax.random.uniform(jax.random.fold_in(key, 2**31), (), float))
                assert agent.plays_plan == (coin < agent.mixture.share)
                expected = agent.plan if agent.plays_plan else agent.declaration.baseline
                np.testing.assert_array_equal(agent.policy, expected)
                shares.add(agent.mixture.share)
                tank.play(agent, episode)
        assert any(0 < share < 1 for share in shares)

    def test_logs_of_the_baseline_count_at_once(self) -> None:
        """Also where the learner makes no new plan of them."""
        agent, log = pump_agent(baseline=[WAIT, WAIT]), Tank().log(WAIT, 60)
        assert agent.mixture is not None
        before = agent.mixture
        agent.feed(log)
        assert agent.mixture.share > before.share == 0
        assert agent.mixture.slack[0] > 0.5 > before.slack[0]
        assert agent.account.fed == 60
        twice = pump_agent(baseline=[WAIT, WAIT], growth=1.0, stretch=1e6)
        twice.feed(cmdpax.Log(*(array[:32] for array in log)))
        assert twice.mixture is not None
        plans, slack = twice.planning.plans, twice.mixture.slack
        twice.feed(cmdpax.Log(*(array[32:34] for array in log)))
        assert twice.planning.plans == plans
        assert twice.mixture.slack != slack

    def test_without_slack_it_stays_with_the_baseline_and_says_so(self) -> None:
        exact = cmdpax.evaluate(truth(), WAITS).constraint_values[0]
        agent = pump_agent(exact, baseline=[WAIT, WAIT], **NAMES)
        agent.feed(Tank().log(WAIT, 200))
        for episode in range(201, 231):
            assert agent.mixture is not None
            assert agent.mixture.share == 0
            Tank().play(agent, episode)
        assert agent.visits[0, :, PUMP].sum() == 0
        told = str(agent.account).splitlines()[-1]
        assert told.startswith(
            "the baseline is played in all episodes: its slack is believed to be"
        )
        assert told.endswith(" l in spills, and no share of the plan is safe enough")
        assert agent.account.playing == (told,)
        assert cmdpax.AgentAccount.from_dict(agent.account.to_dict()) == agent.account
        assert str(agent.mixture) == told.replace(" l in spills", "")

    def test_data_contradict_an_unsafe_baseline(self) -> None:
        agent = pump_agent(threshold=2.0, baseline=[PUMP, PUMP], **NAMES)
        assert agent.mixture is not None
        assert (agent.mixture.share, agent.mixture.trusted) == (0, True)
        Tank().play(agent, 100)
        assert not agent.mixture.trusted
        assert agent.mixture.slack[0] < 0
        assert "the data contradict the baseline, whose slack is believed" in str(agent.account)
        assert agent.mixture.share > 0.9
        assert float(agent._now.inputs.parameters["doubt"]) == 0  # looks for what is safe

    def test_plans_keep_margins_as_large_as_the_slack_allows(self) -> None:
        agent = Tank().play(pump_agent(threshold=1.5, baseline=[WAIT, WAIT]), 40)
        mixture = agent.mixture
        assert mixture is not None
        margin, slack = mixture.margins[0], mixture.slack[0]
        assert 0 < margin <= 0.7 * slack + 1e-12
        inside = float(agent._now.inputs.thresholds[0])  # 3 · 2 - (1.5 - margin), in units of 2
        assert inside == pytest.approx((6 - 1.5 + margin) / 2)

    def test_a_margin_of_the_users_comes_first(self) -> None:
        plain, strict = (
            Tank().play(pump_agent(threshold=1.5, baseline=[WAIT, WAIT], margin=margin), 1)
            for margin in (None, 0.4)
        )
        found = [float(one._now.inputs.thresholds[0]) for one in (plain, strict)]
        assert found[1] - found[0] == pytest.approx(0.2)

    def test_most_episodes_of_several_agents_are_safe(self) -> None:
        """What is played is judged by the true model."""
        cmdp, values = truth(2.0), []
        for world in range(4):
            agent, tank = pump_agent(baseline=[WAIT, WAIT], seed=world), Tank(world)
            for episode in range(1, 61):
                tank.play(agent, episode)
                assert agent.mixture is not None
                both = [cmdpax.evaluate(cmdp, one) for one in (WAITS, agent.plan)]
                share = agent.mixture.share
                mixed = (1 - share) * both[0].constraint_values + share * both[1].constraint_values
                values.append(mixed[0] <= 2.0 + 1e-9)
        assert np.mean(values) > 0.8


REACHED: dict[str, Any] = {"baseline": [WAIT, WAIT], "baseline_values": [0.43]}


class TestOfALearnerThatStartsFromIt:
    """The learner has it, and the agent mixes nothing."""

    def test_it_is_told_the_policy_and_what_it_reaches(self, tmp_path: Path) -> None:
        agent = Tank().play(pump_agent(algorithm=CAUTIOUS, **REACHED, **NAMES), 3)
        np.testing.assert_allclose(agent.policy, mixture(WAITS), rtol=0, atol=1e-12)
        assert agent.mixture is None
        assert agent.account[0].optimistic == pytest.approx(0.43)
        agent.save(tmp_path / "agent")
        again = cmdpax.Agent.load(tmp_path / "agent", algorithm=CAUTIOUS)
        assert again.account == agent.account
        np.testing.assert_array_equal(again.policy, agent.policy)
        Tank().play(again, 2)

    @pytest.mark.parametrize(
        ("changes", "part"),
        [
            ({"baseline": None}, "that is known to be safe; give baseline=, that policy, and bas"),
            ({"baseline_values": None}, "in each constraint (baseline_values is missing)."),
            ({"confidence": 0.9}, "confidence is 0.9, but cautious decides by itself when the ba"),
            (
                {"baseline_values": [0.1, 0.2]},
                "baseline_values is [0.1, 0.2], it must be 1 numbers",
            ),
            ({"baseline_values": ["many"]}, "baseline_values is ['many'], it must be 1 numbers: "),
            ({"baseline_values": [2.5]}, "which must be at most 2 l: its slack is -0.5 l; give a"),
            ({"margin": 1.6}, "which must be at most 0.4 l: its slack is -0.03 l; give a baseline"),
            ({"algorithm": "replanning"}, "baseline_values was given, but replanning does not sta"),
        ],
    )
    def test_what_cannot_be_is_refused(self, changes: dict[str, Any], part: str) -> None:
        with pytest.raises(cmdpax.ParameterError) as caught:
            pump_agent(**({"algorithm": CAUTIOUS} | REACHED | NAMES | changes))
        assert_sentence(caught.value)
        assert part in str(caught.value)

    def test_more_constraints_than_it_handles(self) -> None:
        changes: dict[str, Any] = {"thresholds": [2.0] * 3, "baseline_values": [0.43] * 3}
        with pytest.raises(cmdpax.ParameterError, match="handles 2 constraints, the CMDP has 3"):
            pump_agent(algorithm=CAUTIOUS, **(REACHED | changes))


NO_RANGES: dict[str, Any] = {"reward_range": None, "constraint_ranges": None}


class TestSaved:
    @pytest.mark.parametrize("name", ["mixed", "no ranges"])
    def test_after_every_call(self, tmp_path: Path, name: str) -> None:
        chosen = NO_RANGES if name == "no ranges" else {}
        agents = [pump_agent(baseline=[WAIT, WAIT], **chosen) for _ in range(2)]
        saved, plain = agents
        tank = Tank()
        for one in agents:
            one.feed(tank.log(WAIT, 40))
        shares = set()
        while plain.num_episodes < 46:
            saved.save(tmp_path / "a.npz")
            saved = cmdpax.Agent.load(tmp_path / "a.npz")
            assert_same(saved, plain)
            assert saved.mixture == plain.mixture
            assert str(saved.account) == str(plain.account)
            shares.add(plain.mixture.share)
            assert tank.call_next(saved) == tank.call_next(plain)
        assert len(shares) > 1

    @pytest.mark.parametrize("place", ["playing.draw_values", "playing.mix", "course.decide"])
    def test_interrupted(self, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
        """An end can be repeated, and gives what it would have given."""

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        agents = [Tank().play(pump_agent(baseline=[WAIT, WAIT]), 3) for _ in range(2)]
        for one in agents:
            for _ in range(7):
                Tank().call_next(one)
        with monkeypatch.context() as patch:
            patch.setattr(f"cmdpax.live.{place}", interrupt)
            with pytest.raises(KeyboardInterrupt):
                agents[0].end()
        assert agents[0].expects == "end"
        for one in agents:
            one.end()
        assert_same(*agents)
        assert agents[0].mixture == agents[1].mixture

    def test_what_cannot_be_played_is_damage(self, tmp_path: Path) -> None:
        path, agent = tmp_path / "a.npz", pump_agent(baseline=[WAIT, WAIT])
        agent.freeze()
        agent.save(path)
        with np.load(path) as content:
            arrays: dict[str, Any] = dict(content)
        whole = json.loads(str(arrays["agent"]))
        plan = arrays["playing_plan"]

        def refused(playing: dict[str, Any], **others: Any) -> None:
            text = np.array(json.dumps(whole | {"playing": playing}))
            np.savez(path, **(arrays | {"agent": text} | others))
            with pytest.raises(cmdpax.FileError, match="is not a readable file of an agent"):
                cmdpax.Agent.load(path)

        for change in (
            {"share": 1.5},
            {"probability": None},
            {"slack": []},
            {"margins": [0.0, 0.0]},
            {"margins": ["NaN"]},
            {"slack": ["NaN"]},
            {"trusted": None, "share": "all"},
        ):
            mixture = whole["playing"]["mixture"] | change
            refused(whole["playing"] | {"mixture": mixture})
        for other in ({"plans": -1}, {"plans": 1.5}, {"declined": True}, {"made_with": [1.0, 2.0]}):
            refused(whole["playing"] | other)
        refused({})
        for wrong in (plan[:2], plan * 2, plan * np.nan, np.array("plan")):
            refused(whole["playing"], playing_plan=wrong)
