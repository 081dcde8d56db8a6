# Everything runs inside .venv, which the first command that needs it makes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.penstock-ready
# Most of a test with Spark is waiting for it, so more files run at a time than there are cores; in
# the order of tests/support/run_order.py, in which the long ones come first.
WORKERS ?= 3
NO_SPARK := not spark and not cluster and not faults and not packaging

.DEFAULT_GOAL := help
.PHONY: help env java redis nats s3 archive jar demo test quick fast lint types audit fmt clean

help: ## what there is to make
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 14

env: $(READY) jar ## a virtual environment with everything, and the jar

demo: env ## the whole system on this machine, in under a minute
	$(BIN)/penstock demo

test: env redis nats s3 ## the whole suite, as CI runs it
	@$(MAKE) --no-print-directory -j2 --output-sync lint types audit archive
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=15

quick: jar lint ## lint, types and the tests that need no Spark
	@$(MAKE) --no-print-directory -j2 --output-sync types fast

# Most of these wait for servers they have started, so the type checker runs beside them.
fast: $(READY)
	$(BIN)/pytest -q -n 4 --dist loadfile -m '$(NO_SPARK)'

# Every test that kills a driver starts several: with their classes laid out they take half as long.
archive: env
	$(BIN)/penstock archive --folder build/classes

jar: $(READY) ## the Spark plug-in; does nothing when its sources are unchanged
	$(BIN)/python jvm/build.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

audit: $(READY) ## known vulnerabilities of the packages that tests run with
	@PYTHONPATH=tests $(BIN)/python tests/support/audit.py

fmt: $(READY) ## formats and sorts what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

java:
	@$(BIN)/python jvm/build.py --java || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update && { \
	    apt-get install -y --no-install-recommends openjdk-17-jdk-headless || \
	    apt-get install -y --no-install-recommends openjdk-21-jdk-headless; } && \
	  $(BIN)/python jvm/build.py --java; }

# One workload looks its campaigns up in Redis; without a server its tests say that they are skipped.
redis:
	@command -v redis-server >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update && apt-get install -y --no-install-recommends redis-server; } || \
	  echo "no redis-server here: install Debian's redis-server to run the tests that need it"

# The log in JetStream is tested on real servers; without the program its tests say that they are
# skipped.
nats:
	@command -v nats-server >/dev/null || test -x /usr/sbin/nats-server || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update && apt-get install -y --no-install-recommends nats-server; } || \
	  echo "no nats-server here: install Debian's nats-server to run the tests that need it"

# An S3 server for the tests, in an environment of its own: nothing else needs its many packages.
s3: $(READY)
	@command -v moto_server >/dev/null || test -x build/s3/bin/moto_server || { \
	  $(BIN)/python -m venv build/s3 && build/s3/bin/pip install -q 'moto[s3,server]>=5,<6'; } || \
	  echo "no moto_server here: pip install 'moto[s3,server]' to run the test that needs it"

# PySpark is a large source package: it is installed once, before this project, and this project is
# then built against it without an environment of its own.
$(READY): pyproject.toml constraints.txt lab/pyproject.toml lab/hatch_build.py
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "penstock needs Python 3.11 or newer; try: make env PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt 'hatchling>=1.27' 'pyspark==4.3.*'
	$(BIN)/pip install -q -c constraints.txt --no-build-isolation -e '.[dev]' -e lab
	@$(BIN)/pip install -q 'pip-audit>=2.7' || echo "no pip-audit here: make audit says so"
	@$(MAKE) --no-print-directory java
	@touch $@

clean: ## removes what was built, and leaves .venv
	rm -rf dist build artifacts src/penstock/spark/jars .pytest_cache .mypy_cache .ruff_cache
	find src lab tests jvm -name __pycache__ -type d -prune -exec rm -rf {} +
