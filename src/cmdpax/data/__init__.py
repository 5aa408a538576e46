"""From logged episodes to a policy: what a log leaves open, and plans that allow for it."""
