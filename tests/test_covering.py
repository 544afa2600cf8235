"""What `make test` leaves to `make test-all` is shown by what it takes."""

from itertools import combinations, product

from .covering import covering, together


def test_every_pair_is_in_a_case_and_no_case_is_idle():
    lists = {"a": "uvwxy", "b": "123", "c": "pq"}
    cases = {"".join(values): dict(zip(lists, values, strict=True)) for values in product(*lists.values())}
    shown = {name: together(2)(name, **values) for name, values in cases.items()}
    taken = covering(shown)
    pairs = {pair for name in taken for pair in combinations(sorted(name), 2)}
    assert pairs == {pair for name in cases for pair in combinations(sorted(name), 2)}
    assert all(
        set().union(*(shown[other] for other in taken - {name})) < set().union(*shown.values()) for name in taken
    )
    assert len(taken) < len(cases) / 1.5


def test_what_was_seen_least_comes_first():
    cases = {f"{a}{b}": {a, b} for a, b in product("uvwx", "12")}
    assert sorted(name[1] for name in covering(cases)) == [*"1122"]
