"""Stands in for the package pycosat where no C compiler can build it.

Offers the one function that reasoning-gym calls. Its puzzles only ask whether a solution exists
and whether there is a second one, so the order of solutions does not matter: the puzzles come out
equal, some milliseconds later. Depth-first search with unit propagation (DPLL).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Clause = tuple[int, ...]
Assignment = dict[int, bool]


def itersolve(clauses: Iterable[Iterable[int]]) -> Iterator[list[int]]:
    """Yield every satisfying assignment as a list of signed variable numbers."""
    formula = [tuple(dict.fromkeys(clause)) for clause in clauses]
    variables = sorted({abs(literal) for clause in formula for literal in clause})
    for truth in _search(formula, {}):
        free = [variable for variable in variables if variable not in truth]
        yield from _expand(truth, free, variables)


def _search(formula: list[Clause], truth: Assignment) -> Iterator[Assignment]:
    """Extend a partial assignment to those that satisfy every clause."""
    reduced = _propagate(formula, truth)
    if reduced is None:
        return
    if not reduced:
        yield truth
        return
    literal = min(reduced, key=len)[0]
    for choice in (literal, -literal):
        yield from _search([*reduced, (choice,)], dict(truth))


def _propagate(formula: list[Clause], truth: Assignment) -> list[Clause] | None:
    """Assign forced literals into `truth`; the clauses left, or None on a contradiction."""
    while True:
        units = {clause[0] for clause in formula if len(clause) == 1}
        if not units:
            return formula
        if any(-literal in units for literal in units):
            return None
        for literal in units:
            truth[abs(literal)] = literal > 0
        negated = {-literal for literal in units}
        reduced = []
        for clause in formula:
            if not units.isdisjoint(clause):
                continue
            shorter = (
                clause
                if negated.isdisjoint(clause)
                else tuple(literal for literal in clause if literal not in negated)
            )
            if not shorter:
                return None
            reduced.append(shorter)
        formula = reduced


def _expand(truth: Assignment, free: list[int], variables: list[int]) -> Iterator[list[int]]:
    """Both values of each variable that no clause needs."""
    if free:
        for value in (True, False):
            yield from _expand({**truth, free[0]: value}, free[1:], variables)
        return
    yield [variable if truth[variable] else -variable for variable in variables]
