"""From logged episodes to a policy: tables in, estimates, and what they leave unknown."""
