"""What `cmdpax watch` shows of an agent's plan, its policy, and what is unexplored."""

from typing import Any

from rich.table import Table
from rich.text import Text

from cmdpax.cli.output import table

ROWS = 8
"""The states that are shown, where there is room."""


def plan_lines(declared: Any, glimpse: Any) -> list[Text]:
    """A line on the plan, and one or two on what is unexplored."""
    from cmdpax.live.wording import plan_line, unexplored_lines

    plan, unexplored = plan_line(glimpse), unexplored_lines(declared, glimpse)
    lines = [] if plan is None else [Text(plan.text, style="" if plan.feasible else "yellow")]
    if unexplored:
        unexplored[0] = f"unexplored: {unexplored[0]}"
    return [*lines, *map(Text, unexplored)]


def policy_table(declared: Any, glimpse: Any, rows: int = ROWS) -> Table | None:
    """What is done in the states that were visited most; None where there is no room."""
    from cmdpax.live.wording import policy_rows

    found = policy_rows(declared, glimpse, rows)
    if found is None:
        return None
    result = table("", found.heads, found.rows)
    result.title = None
    result.columns[2].justify = "left"
    return result
