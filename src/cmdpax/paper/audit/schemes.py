"""How the schemes that have names are audited, and which statements are not about them.

The statements are about the regularized primal-dual scheme. What is about the model, or about any
policy and any multipliers in [0, λ_max]^I, applies to every scheme; what is about the steps of
Eqs. (6) and (7) applies to the schemes that take them. Where a scheme gives an action no
probability at all, -log π and Φ are infinite.
"""

from cmdpax.schemes.scheme import Scheme

CLOSED_FORM = "potential, closed form"
LAST_ITERATE = "last iterate"
_ASCENT = (
    "mirror descent with local norms",
    "three-point identity",
    "potential recursion",
    CLOSED_FORM,
)
_DESCENT = ("projected dual descent", "multiplier update")
_ENTROPY = (
    "values are not negative",
    "values are bounded",
    "local norms are bounded",
    "regularized saddle point, policies",
    "performance difference",
    "value difference",
    "objective error",
    "constraint error",
)
_BOUNDED = ("dual gradient is bounded", "regularized saddle point, multipliers")
_EQUATION_7 = ("dual", "rpg-pd")
_WITH_ZEROS = ("augmented-lagrangian", "opg-pd")
_UNBOUNDED = ("augmented-lagrangian",)
LIBRARY = "primal-dual"
"""The scheme that the statements are about."""


def reason_against_scheme(scheme: object, name: str) -> str:
    """Say why a statement does not apply to a scheme; an empty text where it does.

    A scheme without a name, which is a function, is audited as if it were the paper's.
    """
    if not isinstance(scheme, Scheme) or scheme.name == LIBRARY:
        return ""
    mine = scheme.name
    if name == LAST_ITERATE:
        return "the theorem is about the regularized primal-dual scheme"
    if name in _ASCENT:
        return f"{mine} does not take the step of Eq. (6)"
    if name in _DESCENT and mine not in _EQUATION_7:
        return f"{mine} does not take the step of Eq. (7)"
    if name in _ENTROPY and mine in _WITH_ZEROS:
        return f"-log π is infinite where {mine} gives an action no probability"
    if name in _BOUNDED and mine in _UNBOUNDED:
        return f"the multipliers of {mine} have no upper bound"
    return ""
