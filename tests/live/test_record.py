"""The record of all episodes: exact, bounded in size, and the same whether an agent was saved."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.intervals import half_width
from cmdpax.live import record as recording
from cmdpax.live.record import MOST, Blocks, moving_means, record_of
from cmdpax.model.words import Words
from live_cases import assert_same, draw_episodes, log_of, make, play

COSTS = {
    "senses": ["at most", "at least"],
    "constraint_ranges": [(0, 10), (-1, 1)],
    "thresholds": [15.0, -0.25],
    "names": ["hours", "comfort"],
    "units": {"hours": "h"},
}


def draw(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns, what missed, and what was cut short: every seventh, and many in a row."""
    generator = np.random.default_rng(0)
    returns = generator.normal([5.0, -1e6, 1e-3], [1.0, 30.0, 1e-4], size=(count, 3))
    cut = (np.arange(count) % 7 == 6) | (np.arange(count) // 300 % 5 == 2)
    return returns, generator.random((count, 2)) < 0.3, cut


def block(returns: Any, missed: Any, cut: Any) -> Blocks:
    """All of them, one after the other."""
    blocks = Blocks.empty(returns.shape[1] - 1)
    for one in zip(returns, missed, cut, strict=True):
        blocks = blocks.after(*one)
    return blocks


@pytest.mark.parametrize("count", [0, 1, 7, MOST, MOST + 1, 3 * MOST, 5000])
def test_every_block_is_what_its_episodes_say(count: int) -> None:
    returns, missed, cut = drawn = draw(count)
    found = record_of(block(*drawn), count, Words(units=("", "h", "")))
    assert len(found.episodes) <= MOST
    assert found.episodes.sum() == count
    assert found.units == ("", "h", "")
    ends = np.cumsum(found.episodes)
    for row, (begin, end) in enumerate(zip(ends - found.episodes, ends, strict=True)):
        assert (found.first[row], found.last[row]) == (begin + 1, end)
        assert found.cut_short[row] == cut[begin:end].sum()
        np.testing.assert_array_equal(found.missed[row], missed[begin:end].sum(axis=0))
        whole = returns[begin:end][~cut[begin:end]]
        assert found.whole[row] == len(whole)
        if len(whole):
            np.testing.assert_array_equal(found.low[row], whole.min(axis=0))
            np.testing.assert_array_equal(found.high[row], whole.max(axis=0))
            np.testing.assert_allclose(found.mean[row], whole.mean(axis=0), rtol=1e-12)
            squares = ((whole - whole.mean(axis=0)) ** 2).sum(axis=0)
            np.testing.assert_allclose(found.squares[row], squares, rtol=1e-6, atol=1e-15)
        else:
            for numbers in (found.mean, found.low, found.high):
                assert np.isnan(numbers[row]).all()


@pytest.mark.parametrize(("count", "length"), [(1, 1), (512, 1), (513, 2), (1024, 2), (1025, 4)])
def test_blocks_double_when_all_are_full(count: int, length: int) -> None:
    found = block(*draw(count)).episodes
    assert set(found[:-1]) <= {length}
    assert 1 <= found[-1] <= length
    assert len(found) == -(-count // length)


def test_a_record_is_small_however_many_episodes_there_are(tmp_path: Path) -> None:
    """20,000 episodes through the record's own functions, and into a file."""
    blocks = block(*draw(20_000))
    assert len(blocks.episodes) == 20_000 // 64 + 1
    size = sum(one.nbytes for one in blocks)
    assert size <= MOST * (2 * 8 + 2 * 8 + 4 * 3 * 8)
    np.savez(tmp_path / "blocks.npz", **blocks._asdict())
    assert (tmp_path / "blocks.npz").stat().st_size < size + 3000


@pytest.mark.parametrize(("count", "window"), [(5, 1), (40, 10), (40, 99), (3000, 100), (3000, 1)])
def test_moving_means_are_those_of_all_episodes(count: int, window: int) -> None:
    returns, _, cut = drawn = draw(count)
    record = record_of(block(*drawn), count, Words())
    found, length = moving_means(record, window), int(record.episodes[0])
    assert found.window == min(count, -(-window // length) * length)
    for end, mean, half in zip(found.episodes, found.mean, found.half, strict=True):
        blocks = -(-found.window // length)
        begin = (-(-end // length) - blocks) * length
        whole = returns[begin:end][~cut[begin:end]]
        if not len(whole):
            assert np.isnan(mean).all()
            continue
        np.testing.assert_allclose(mean, whole.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(half, half_width(whole), rtol=1e-6, atol=1e-12)
    assert found.episodes[-1] == count


# ----------------------------------------------------------------------------------------- an agent


def test_it_is_the_agents_record() -> None:
    agent = play(make(**COSTS), 30)
    found, recent = agent.record, agent.recent
    assert found.names == ("reward", "hours", "comfort")
    assert found.units == ("", "h", "")
    np.testing.assert_array_equal(found.first, np.arange(1, 31))
    short = np.arange(1, 31) % 3 == 0
    np.testing.assert_array_equal(found.cut_short, short)
    returns = np.column_stack([recent["rewards"], recent["constraint_returns"]])
    for numbers in (found.mean, found.low, found.high):
        np.testing.assert_array_equal(numbers[~short], returns[~short])
        assert np.isnan(numbers[short]).all()
    assert found.missed.sum(axis=0).tolist() == [one.missed for one in agent.account]
    assert found.cut_short.sum() == agent.account.cut_short == 10


def test_what_others_played_is_not_in_it() -> None:
    agent = make()
    log = log_of(agent, draw_episodes(agent, 6))
    agent.feed(log)
    assert len(agent.record.episodes) == 0
    agent.feed(log, own=True)
    assert agent.record.episodes.sum() == 6
    assert agent.num_episodes == 12
    np.testing.assert_array_equal(agent.record.first, np.arange(1, 7))


def test_nobody_can_change_it_from_outside() -> None:
    agent = play(make(), 2)
    agent.record.mean[:] = 0
    assert agent.record.mean.all()


def test_a_frame_has_a_row_for_every_block_and_signal() -> None:
    agent = play(make(**COSTS), 4)
    frame, record = agent.record.frame(), agent.record
    assert frame.shape == (12, 9)
    for row in frame.iter_rows(named=True):
        block, signal = row["first"] - 1, record.names.index(row["signal"])
        np.testing.assert_equal(row["mean"], record.mean[block, signal])
        np.testing.assert_equal(row["high"], record.high[block, signal])
        assert row["unit"] == record.units[signal]
        missed = record.missed[block, signal - 1] if signal else None
        assert row["missed"] == missed


def test_saved_in_between_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, over two doublings."""
    monkeypatch.setattr(recording, "MOST", 4)
    path, saved, plain = tmp_path / "a.npz", make(), make()
    for count in range(1, 12):
        play(saved, count).save(path)
        saved = cmdpax.Agent.load(path)
        assert_same(saved, play(plain, count))
    assert plain.record.episodes.tolist() == [4, 4, 3]


@pytest.fixture(scope="module")
def agent() -> cmdpax.Agent:
    agent = make(**COSTS)
    agent.feed(log_of(agent, draw_episodes(agent, 230)), own=True)
    return agent


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_interrupted_episode_is_in_it_once_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    interrupted, plain = play(make(), 4), play(make(), 5)
    after = Blocks.after

    def interrupt(blocks: Blocks, *given: Any) -> Blocks:
        if place == "after":
            after(blocks, *given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Blocks, "after", interrupt)
        with pytest.raises(KeyboardInterrupt):
            play(interrupted, 5)
    assert interrupted.record.episodes.tolist() == [1] * 4
    assert interrupted.expects == "end"
    interrupted.end()
    assert_same(interrupted, plain)


class TestFiles:
    @pytest.fixture
    def path(self, agent: cmdpax.Agent, tmp_path: Path) -> Path:
        agent.save(tmp_path / "a.npz")
        return tmp_path / "a.npz"

    def change(self, path: Path, **changes: Any) -> None:
        with np.load(path) as archive:
            entries = dict(archive)
        for name, change in changes.items():
            entries[name] = change(entries[name])
        np.savez(path, **entries)

    def test_an_earlier_one_begins_with_the_recent_episodes(
        self, agent: cmdpax.Agent, path: Path
    ) -> None:
        with np.load(path) as archive:
            entries = {name: one for name, one in archive.items() if "blocks_" not in name}
        np.savez(path, **entries)
        found = cmdpax.Agent.load(path)
        assert found.record.first.tolist() == list(range(31, 231))
        for one, whole in zip(found.record[1:8], agent.record[1:8], strict=True):
            np.testing.assert_array_equal(one, whole[30:])
        play(found, 233).save(path)
        assert_same(cmdpax.Agent.load(path), found)
        assert found.record.first[-1] == 233

    def test_unchanged_it_is_read(self, agent: cmdpax.Agent, path: Path) -> None:
        self.change(path, blocks_mean=np.copy)
        assert_same(cmdpax.Agent.load(path), agent)

    @pytest.mark.parametrize(
        "changes",
        [
            {"blocks_episodes": lambda one: one + 1},
            {"blocks_episodes": lambda one: one[1:]},
            {"blocks_episodes": lambda one: one.astype(float)},
            {"blocks_episodes": lambda one: np.full_like(one, 2**62)},
            {"blocks_cut_short": lambda one: 1 - one},
            {"blocks_cut_short": lambda one: -one},
            {"blocks_missed": lambda one: one * 0},
            {"blocks_missed": lambda one: one[:, :1]},
            {"blocks_missed": lambda one: 1 + one},
            {"blocks_mean": lambda one: one + 1e-9},
            {"blocks_mean": lambda one: one * np.nan},
            {"blocks_mean": lambda one: np.nan_to_num(one)},
            {"blocks_low": lambda one: one * np.inf},
            {"blocks_low": lambda one: one + 1},
            {"blocks_high": lambda one: one - 1},
            {"blocks_squares": lambda one: one - 1},
            {"blocks_squares": lambda one: one[None]},
        ],
    )
    def test_what_cannot_be_is_refused(self, path: Path, changes: Any) -> None:
        self.change(path, **changes)
        with pytest.raises(cmdpax.FileError, match="not a readable file of an agent"):
            cmdpax.Agent.load(path)

    @pytest.mark.parametrize("name", Blocks._fields)
    def test_half_of_it_is_refused(self, path: Path, name: str) -> None:
        with np.load(path) as archive:
            entries = {other: one for other, one in archive.items() if other != f"blocks_{name}"}
        np.savez(path, **entries)
        with pytest.raises(cmdpax.FileError, match="not a readable file of an agent"):
            cmdpax.Agent.load(path)

    def test_blocks_that_were_joined_too_early_are_refused(
        self, agent: cmdpax.Agent, path: Path
    ) -> None:
        blocks = agent._now.tally.blocks
        pairs = (Blocks(*(one[start::2] for one in blocks)) for start in (0, 1))
        joined = recording._joined(*pairs)
        assert joined.num_episodes == 230
        with np.load(path) as archive:
            entries = dict(archive)
        entries |= {f"blocks_{name}": one for name, one in joined._asdict().items()}
        np.savez(path, **entries)
        with pytest.raises(cmdpax.FileError, match="not a readable file of an agent"):
            cmdpax.Agent.load(path)

    def test_a_part_of_it_is_refused(self, path: Path) -> None:
        """All arrays shortened alike: fewer than the recent episodes."""
        names = [f"blocks_{name}" for name in Blocks._fields]
        self.change(path, **dict.fromkeys(names, lambda one: one[-100:]))
        with pytest.raises(cmdpax.FileError, match="not a readable file of an agent"):
            cmdpax.Agent.load(path)
