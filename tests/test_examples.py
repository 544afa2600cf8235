"""Every example runs and leaves its picture."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    subprocess.run([sys.executable, str(example)], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / f"{example.stem}.png").stat().st_size > 5000
