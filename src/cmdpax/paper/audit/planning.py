"""Which statements on learning apply to a learner that plans, and why the others do not.

What is about counts applies to whoever counts: the success event, the optimism of r and u in the
optimistic model of the counts (Algorithm 2 evaluates the plan that is played, whatever model it was
made in), and the sums of estimation errors. The remark on ε-safety applies to any policies. What is
about the steps of Algorithm 1 does not apply, nor what needs a policy that tries every action.
"""

from cmdpax.learners.algorithm import Algorithm

_NO_Q = "a learner that plans has no Q̂_z to take a step with"
_NO_POTENTIAL = "Φ_k is infinite where a plan never takes an action that π*_τ takes"
_NO_ENTROPY = "a plan is not regularized: ψ is infinite where it never takes an action"
_NO_STEP = "a learner that plans takes no step in λ: it has the multipliers of its plan"
_NO_THEOREM = "the theorem is about Algorithm 1"
_REASONS = {
    "optimism of ψ": _NO_ENTROPY,
    "optimism of z": _NO_Q,
    "online potential recursion": _NO_POTENTIAL,
    "truncated values are not negative": _NO_Q,
    "truncated values are bounded": _NO_Q,
    "truncated local norms are bounded": _NO_Q,
    "truncated dual gradient is bounded": _NO_STEP,
    "online objective error": _NO_POTENTIAL,
    "online constraint error": _NO_POTENTIAL,
    "estimation error of ψ": _NO_ENTROPY,
    "regret exponent": _NO_THEOREM,
}


def reason_against(algorithm: Algorithm, name: str) -> str:
    """Say why a statement does not apply to an algorithm; an empty text where it does."""
    return _REASONS.get(name, "") if algorithm.replans else ""
