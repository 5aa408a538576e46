"""What `print` shows of a history: a few lines, in the words and units of the model."""

from typing import TYPE_CHECKING

import numpy as np

from cmdpax.intervals import interval
from cmdpax.model.words import Words

if TYPE_CHECKING:
    from cmdpax.learning.history import Account

_MOST_CONSTRAINTS = 8  # with a line of their own
_WORTH_TELLING = 0.01  # the level of violations that is told, or the nearest to it


def summarise(account: "Account") -> str:
    """Algorithm, episodes and runs; then objective and constraints, a line each.

    Every line has the value of the last episode's policy against the optimum or the bound, and the
    strong regret; the last line the share of unsafe episodes. Of more than eight constraints, those
    with the largest strong regrets are told.
    """
    count = account.constraint_values.shape[-1]
    lines = [_head(account), _objective(account)]
    regrets = _last(account.strong_regret.constraints, 3).mean(axis=0)
    worst = sorted(np.argsort(-regrets, kind="stable")[:_MOST_CONSTRAINTS].tolist())
    lines += [_constraint(account, index) for index in worst]
    if count > len(worst):
        lines.append(f"{count - len(worst)} constraints with less regret are left out")
    if count and account.unsafe_at:
        levels = np.abs(np.array(account.unsafe_at) - _WORTH_TELLING)
        place = int(levels.argmin())
        share = interval(100 * np.atleast_2d(account.unsafe)[:, place])
        level = f"{100 * account.unsafe_at[place]:g} % of a signal's range"
        lines.append(f"episodes unsafe by {level} or more: {share} %")
    return "\n".join(lines)


def _head(account: "Account") -> str:
    """Such as "replanning: 3 runs of 1,000 episodes"."""
    manifest = getattr(account, "manifest", {})
    name = f"{manifest['algorithm']}: " if "algorithm" in manifest else ""
    runs, episodes = len(np.atleast_2d(account.value)), int(account.episodes[-1])
    head = f"{name}{_counted(runs, 'run')} of {_counted(episodes, 'episode')}"
    if runs == 1:
        return head
    return f"{head}; means ± 95 % half width over the runs"


def _last(values: np.ndarray, axes: int) -> np.ndarray:
    """What the last episode has, `[R, …]`; accounts of a single run may have no axis for it."""
    return (values if values.ndim == axes else values[None])[:, -1]


def _objective(account: "Account") -> str:
    words, last = account.words, interval(_last(account.value, 2))
    best = words.amount(float(np.mean(account.optimum)), digits=4)
    regret = _amount(_last(account.strong_regret.objective, 2), words, 0)
    return f"{words.label()}: last {last}, optimum {best}; strong regret {regret}"


def _constraint(account: "Account", index: int) -> str:
    words, last = account.words, interval(_last(account.constraint_values, 3)[:, index])
    signs = np.broadcast_to(account.signs, account.thresholds.shape)[..., index]
    sense = "at most" if np.all(signs < 0) else "at least"
    bound = words.amount(float(np.mean(account.thresholds[..., index])), 1 + index, digits=4)
    regret = _amount(_last(account.strong_regret.constraints, 3)[:, index], words, 1 + index)
    return f"{words.label(1 + index)}: last {last}, {sense} {bound}; strong regret {regret}"


def _amount(values: np.ndarray, words: Words, signal: int) -> str:
    """A mean with its unit, such as "12.3 ± 0.4 kWh"."""
    return f"{interval(values)} {words.unit(signal)}".rstrip()


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"
