# `make demo` and `make test` do everything on a fresh machine with Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python -m

.PHONY: demo test test-all test-lowest bench lint docs site dist clean

demo: $(VENV)/demo
	$(RUN) partwise demo --out demo --force
	@echo "open demo/report.html"

# two to four workers, which compile for each other
WORKERS := -n auto --maxprocesses 4 --dist worksteal
# others, which come with packages that are read and written here, cost seconds at the start
export PYTEST_DISABLE_PLUGIN_AUTOLOAD := 1
PLUGINS := -p xdist.plugin -p _hypothesis_pytestplugin

test: $(VENV)/test
	$(RUN) ruff check .
	$(RUN) pytest $(PLUGINS) $(WORKERS)

test-all: $(VENV)/dev
	$(RUN) ruff check .
	$(RUN) pytest $(PLUGINS) $(WORKERS) -m "slow or not slow"

# every table and picture, in about an hour; goes on where it was stopped. nn-fac is a peer in the race; the rest
# runs without it. It asks for an old TensorLy, and runs with the one that tensors are compared with
bench: $(VENV)/dev
	-$(RUN) pip install --quiet --disable-pip-version-check --no-deps nn-fac
	$(RUN) benchmarks all --write

lint: $(VENV)/dev
	$(RUN) ruff format .
	$(RUN) ruff check --fix .
	$(RUN) mypy

# the parts of the documentation that are made from the code
docs: $(VENV)/dev
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/pictures.py

# the documentation as a site, examples run: open site/index.html
site: $(VENV)/test
	$(RUN) sphinx --builder html --jobs auto --fail-on-warning --keep-going docs site
	@echo "open site/index.html"

# what is released: built, checked, installed into an environment of its own and tried there
dist: $(VENV)/dev
	rm -rf dist
	$(RUN) build --outdir dist .
	$(RUN) twine check --strict dist/*
	$(BIN)/python tests/release.py dist

# the lowest versions of dependencies that pyproject.toml allows, in an environment of their own
test-lowest: $(VENV)/dev
	$(BIN)/python tests/lowest.py

$(VENV)/demo: pyproject.toml
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[report]"
	@touch $@

$(VENV)/test: pyproject.toml
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@ $(VENV)/demo

$(VENV)/dev: pyproject.toml
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(VENV)/test $(VENV)/demo

clean:
	rm -rf $(VENV) demo build dist site docs/api docs/gallery docs/_static/sounds
