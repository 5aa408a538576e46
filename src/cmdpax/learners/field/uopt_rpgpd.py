"""UOpt-RPGPD: a regularized primal-dual learner whose steps and bonuses need no K.

    π_1 uniform, λ_1 = 0
    for k = 1, 2, …:
        r̂, û: the means of episodes 1, …, k - 1, plus the bonus b
        Q̂_r of π_k under p̄, with the entropy of the later steps, and Q̂_u, V̂_u without it:
            Q̂_{r,h} = min(r̂_h + p̄_h V̂_{r,h+1}, (1 + τ_k log A)(H - h + 1))
            V̂_{r,h}(s) = Σ_a π_{k,h}(a | s) (Q̂_{r,h}(s, a) - τ_k log π_{k,h}(a | s))
        π_{k+1} ∝ π_k^{1 - η_k τ_k} exp(η_k (Q̂_r + λ_kᵀ Q̂_u))
        λ_{k+1} = [λ_k - η_k (V̂_u - c + τ_k λ_k)]_+
        play π_k, count

    η_k = (k + 2)^-0.53,    τ_k = (k + 2)^-0.4
    b = Σ_t √p̄(t) φ + 5 φ²,    φ = √((2 log log(2n ∨ e) + 2L)/n),    L = log(48 S² A H/δ),    n ≥ 1

Kitamura, Kozuno, Kato, Ichihara, Nishimori, Sannai, Sonoda, Kumagai and Matsuo (2024), "A Policy
Gradient Primal-Dual Algorithm for Constrained MDPs with Uniform PAC Guarantees", arXiv 2401.17780.
Schedules, bonus and caps are those of their public code, in which rewards are known; where they are
estimated, another φ is added to the bonus (ours). The bonus has a law of the iterated logarithm
instead of K, and λ has no upper bound.

We differ from the code where it differs from what is printed. It adds τ times the terms of the
entropy before it averages over π, which weighs them with π twice; it counts episode k before it
evaluates π_k; and it computes the dual step from π_{k+1} and the Q of π_k.
`benchmarks/uopt_notebook.py` compares the two. The default of `bonus_scale` is that of the code.
"""

from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.field.confidence import BonusScale, FailureProbability
from cmdpax.learners.field.models import optimistic_signals
from cmdpax.learners.field.stepping import (
    Decision,
    PolicyAndMultipliers,
    descend_freely,
    step_by_step,
    uniform_start,
)
from cmdpax.learners.statistics import (
    Knowledge,
    OptimisticModel,
    Statistics,
    is_short,
    means_of_rows,
)
from cmdpax.model.availability import surprisal_of
from cmdpax.model.evaluation import backward_scan
from cmdpax.schemes.hyperparameters import require_damped
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.schedules import Schedule, Scheduled, value_at
from cmdpax.schemes.updates import mirror_ascent


class Parameters(NamedTuple):
    """What the user of UOpt-RPGPD chooses."""

    step_size: Annotated[Scheduled, Parameter("step size", "η", above=0)] = Schedule(1, 0.53, 2)
    regularization: Annotated[
        Scheduled, Parameter("weight of the regularization", "τ", at_least=0)
    ] = Schedule(1, 0.4, 2)
    bonus_scale: BonusScale = 0.001
    failure_probability: FailureProbability = 0.1


def anytime_model(
    knowledge: Knowledge, statistics: Statistics, parameters: Parameters
) -> OptimisticModel:
    """r̂, û and p̄, with a bonus that holds for all episodes."""
    _, horizon, num_states, num_actions = knowledge.sizes
    visits = jnp.maximum(statistics.visits, 1).astype(knowledge.initial.dtype)
    constant = 48.0 * num_states**2 * num_actions * horizon
    log_term = jnp.log(constant / parameters.failure_probability)
    iterated = jnp.log(jnp.log(jnp.maximum(2 * visits, jnp.e)))
    width = jnp.sqrt((2 * iterated + 2 * log_term) / visits)  # φ
    spread = jnp.sum(jnp.sqrt(means_of_rows(knowledge, statistics)), axis=-1)
    bonus = spread * width + 5 * width**2
    if knowledge.signals is None:
        bonus = bonus + width
    return optimistic_signals(knowledge, statistics, parameters.bonus_scale * bonus)


def evaluate_softly(
    model: OptimisticModel,
    log_policy: Float[Array, "H S A"],
    regularization: Float[Array, ""],
    initial: Float[Array, " S"],
) -> tuple[Float[Array, "H J S A"], Float[Array, " I"]]:
    """Q̂_r, with the entropy of the later steps, and Q̂_u without it; and V̂_u."""
    horizon, num_states, num_actions = log_policy.shape
    num_signals, dtype = model.signals.shape[1], log_policy.dtype
    weights = jnp.zeros(num_signals, dtype).at[0].set(regularization)  # τ for r, 0 for u
    caps = 1 + weights * jnp.log(num_actions).astype(dtype)  # 1 + τ log A

    def step(values: Float[Array, "J S"] | None, at: tuple[Any, ...]) -> tuple[Array, Array]:
        index, signals, log_decision, surprisal, steps_left = at  # H - h + 1
        every_q = signals if values is None else signals + model.expected_next(index, values)
        every_q = jnp.minimum(every_q, (caps * steps_left)[:, None, None])
        softened = every_q + weights[:, None, None] * surprisal[None]
        return jnp.sum(jnp.exp(log_decision)[None] * softened, axis=-1), every_q

    surprisal = surprisal_of(log_policy, model.available)
    steps_left = jnp.arange(horizon, 0, -1, dtype=dtype)
    stages = (jnp.arange(horizon), model.signals, log_policy, surprisal, steps_left)
    nothing = jnp.zeros((num_signals, num_states), dtype)
    values, every_q = backward_scan(step, nothing, stages, is_short(horizon))
    return every_q, (values @ initial)[1:]


def uopt_rpgpd(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """UOpt-RPGPD."""

    def decide(
        episode: Integer[Array, ""], carried: PolicyAndMultipliers, statistics: Statistics
    ) -> Decision:
        log_policy, multipliers = carried
        step_size = value_at(parameters.step_size, episode)
        regularization = value_at(parameters.regularization, episode)
        model = anytime_model(knowledge, statistics, parameters)
        every_q, constraint_values = evaluate_softly(
            model, log_policy, regularization, knowledge.initial
        )
        surprisal = surprisal_of(log_policy, knowledge.available)  # of the step itself
        constraints = jnp.einsum("i,hisa->hsa", multipliers, every_q[:, 1:])
        q_values = every_q[:, 0] + constraints + regularization * surprisal
        slacks = constraint_values - knowledge.thresholds
        following = PolicyAndMultipliers(
            mirror_ascent(log_policy, q_values, step_size),
            descend_freely(multipliers, slacks, step_size, regularization),
        )
        return Decision(log_policy, multipliers, constraint_values, following, q_values)

    return step_by_step(knowledge, uniform_start(knowledge), decide)


ALGORITHM = Algorithm(
    "uopt-rpgpd",
    uopt_rpgpd,
    summary="UOpt-RPGPD: regularized primal-dual steps that decay, with anytime bonuses.",
    max_constraints=1,
    check=require_damped,
)
