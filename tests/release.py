"""Install what `make dist` built, wheel and sdist, into environments of their own, and try it there.

python tests/release.py dist
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SMOKE = """
import importlib.metadata, importlib.resources
import numpy as np, partwise as pw
assert pw.__version__ == importlib.metadata.version("partwise"), pw.__version__
assert importlib.resources.files("partwise").joinpath("py.typed").is_file()
planted = pw.datasets.make_parts(40, 30, 3, noise=0.05, random_state=0)
for words in ({}, {"loss": "kl"}, {"loss": "l1"}, {"structure_W": "simplex"}):
    result = pw.factorize(planted.X, 3, random_state=0, **words)
    assert result.certificate.feasible, words
assert pw.NMF(3, random_state=0).fit(planted.X).transform(planted.X[:2]).shape == (2, 3)
same = pw.load(result.save("result.partwise"))
assert np.array_equal(same.H, result.H)
np.savetxt("x.csv", planted.X, delimiter=",")
print("partwise", pw.__version__, "from", pw.__file__)
"""


def try_out(package: Path) -> None:
    """In a new environment, with no other files of the project in sight."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "env"], cwd=folder, check=True)
        python = next(Path(folder, "env").glob("[bS]*/python*"))
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"partwise[report] @ {package.resolve().as_uri()}"], cwd=folder, check=True)
        subprocess.run([python, "-c", SMOKE], cwd=folder, check=True)
        fit = [python, "-m", "partwise", "fit", "x.csv", "--rank", "3", "--out", "parts", "--quiet"]
        subprocess.run(fit, cwd=folder, check=True)
        assert Path(folder, "parts", "report.html").stat().st_size > 10_000
        print(f"{package.name}: installed and tried")


if __name__ == "__main__":
    packages = sorted(Path(sys.argv[1]).glob("partwise-*"))
    assert {package.suffix for package in packages} == {".whl", ".gz"}, packages
    for package in packages:
        try_out(package)
