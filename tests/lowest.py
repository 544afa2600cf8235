"""Install the lowest versions that pyproject.toml allows of what partwise needs, and run some of the tests with them.

python tests/lowest.py [only versions]
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXTRAS = ("report",)
TESTS = ["tests/test_factorize.py", "tests/test_estimators.py", "tests/test_losses.py", "tests/test_result.py"]


def lowest(requirement: str) -> str:
    """`numpy>=2.0` as `numpy==2.0.*`."""
    name, version = re.match(r"([\w.-]+(?:\[\w+\])?)>=([\d.]+)", requirement).groups()
    return f"{name}=={version}.*" if version.count(".") < 2 else f"{name}=={version}"


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = project["dependencies"] + [r for extra in EXTRAS for r in extras[extra]]
    frames = [r for r in extras["test"] if re.match("pandas|polars", r)]  # which are taken without being needed
    return [lowest(requirement) for requirement in stated + frames]


if __name__ == "__main__":
    print(*requirements(), sep="\n")
    if sys.argv[1:] != ["only versions"]:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", "env"], cwd=folder, check=True)
            python = next(Path(folder, "env").glob("[bS]*/python*"))
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--prefer-binary"]
            subprocess.run([*install, *requirements(), "pytest", "hypothesis"], check=True)
            subprocess.run([*install, "--no-deps", str(ROOT)], check=True)
            test = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, "-x"]
            subprocess.run(test, cwd=ROOT, check=True)
