"""How much the proofs that are too large for every run prove in this one."""

import os


def full() -> bool:
    """Whether everything is to be proven, not a sample: NIGHTKEEP_PROOF=full. Ask at import; tests run without it."""
    return os.environ.get("NIGHTKEEP_PROOF") == "full"


def seed() -> int:
    """Return what the samples are drawn with: NIGHTKEEP_PROOF_SEED, or always the same. Ask at import, as above."""
    return int(os.environ.get("NIGHTKEEP_PROOF_SEED", "7"))
