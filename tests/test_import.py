"""What importing costs, and what it does not bring in."""

import subprocess
import sys

import pytest


def seconds(statement):
    program = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


@pytest.mark.slow
def test_importing_costs_at_most_half_again_as_much_as_scikit_learn():
    assert seconds("import partwise") <= 1.5 * seconds("import sklearn.decomposition")


def test_optional_and_compiled_modules_wait_until_they_are_needed():
    program = "import partwise, sys; print({'numba', 'matplotlib', 'jinja2'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
