"""What sets single reasoning-gym generators apart, found by running all of them (version 0.1.25).

Read by `domains.reasoning_gym`. `tests/training_core/domains/test_all_generators.py` runs every
generator that is not refused here, so a new version of the package shows itself.
"""

from __future__ import annotations

_OWN_SCORER = "its questions have many right answers, which only its own scorer can tell apart"

REFUSED: dict[str, str] = {
    "composite": "it only mixes other generators; list those as domains of their own",
    "codeio": "it runs program snippets written by a language model, outside any sandbox",
    "boxnet": _OWN_SCORER,
    "graph_color": _OWN_SCORER,
    "propositional_logic": _OWN_SCORER,
    "rubiks_cube": _OWN_SCORER,
    "rush_hour": _OWN_SCORER,
}
"""Generators that cannot be domains, each with the reason."""

HASH_ORDERED = frozenset(
    {
        "intermediate_integration",
        "isomorphic_strings",
        "knight_swap",
        "polynomial_multiplication",
        "ransom_note",
        "word_ladder",
    }
)
"""Generators that walk over sets of strings, or have sympy do it: their questions repeat
in another process only when PYTHONHASHSEED is the same number there."""

GLOBAL_RANDOM = frozenset({"list_functions", "pool_matrix"})
"""Generators that draw from, or seed, the process-wide random generators."""

NOISY = frozenset({"bf", "rectangle_count"})
"""Generators that print."""
