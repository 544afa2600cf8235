"""The public names have types: a program that uses them passes mypy's strictest check."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "src" / "partwise" / "py.typed").is_file()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mypy") is None, reason="needs mypy")
def test_strict_use_of_public_names():
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "tests/typed_use.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
