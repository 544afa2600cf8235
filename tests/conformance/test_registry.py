"""Every name in the registry stands in a table, so nothing goes untested."""

import pytest

from partwise import registry

from . import tables


@pytest.mark.parametrize(
    "names, table",
    [
        (registry.LOSSES, tables.LOSSES),
        (registry.STRUCTURES, tables.STRUCTURES | tables.TIED),
        (registry.SOLVERS, tables.SOLVERS),
        (registry.INITS, tables.INITS),
    ],
)
def test_every_registered_name_is_in_a_table(names, table):
    assert set(names) <= set(table)
