"""The borders that are fuzzed, by name."""

from fuzzing.targets.base import Target
from fuzzing.targets.models import MODELS

TARGETS: dict[str, Target] = {target.name: target for target in (MODELS,)}
