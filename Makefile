## make grade [SUBMISSIONS=folder]  installs what is needed and grades a class; without a folder, a small made-up one
## make lint                        only the checks: files up to date, ruff, mypy, directions of imports
## make test                        make lint, and the tests that take a few minutes
## make test-all                    the same with every test: each attack, the fuzzing, what is slow from end to end
## make jupyter                     the tests with nbgrader, JupyterLab, PostgreSQL and a browser; installs those, too
## make cluster                     the long tests of --cluster, with random kills (KILLS=20); then how many grades a second
##                                  a coordinator takes, and what the records of 100,000 grades cost
## make oldest                      tests with the lowest versions that pyproject.toml allows; PYTHON=python3.10 is best
## make audit                       proves that the course is fair: every known mistake is caught and named
## make coverage                    measures how much of the engine the tests run
## make build                       makes assignments/ from solutions/
## make bench                       measures what grading costs in each assignment, beside other graders,
##                                  which it installs, too; figures and a picture in build/;
##                                  the ratios that .ci/run compares with in benchmarks/ratios.json
## make site                        builds the site, build/site/index.html, which needs no server
## make clean                       removes what was made here, but never grades/
##
## Variables: ASSIGNMENT=03_masked_heads, STUDENTS=30 (a larger made-up class, in every assignment), OUTPUT=grades,
##            JOBS=2, PYTHON=python3, MUTANTS=no (an audit without mutants), SLOW=no (make jupyter without slow tests),
##            PYTORCH=cpu, cuda or skip (which build of PyTorch is installed)

PYTHON ?= python3
OUTPUT ?= grades$(if $(SUBMISSIONS),,$(STUDENTS:%=-of-%))

AUTOGRADER := .venv/bin/autograder
PYTEST := .venv/bin/python -m pytest
FLAGS = $(if $(ASSIGNMENT),--assignment "$(ASSIGNMENT)") $(if $(JOBS),--jobs $(JOBS))

# The made-up class: small, so that its table is there within a minute; thirty students are in every assignment.
EXAMPLE_ASSIGNMENTS := 02_positional_encoding 03_masked_heads 05_encoder_block
EXAMPLE := examples/class$(if $(STUDENTS),-of-$(STUDENTS))
EXAMPLE_SIZE = $(if $(STUDENTS),--students $(STUDENTS),--students 12 $(EXAMPLE_ASSIGNMENTS:%=--assignment %))

# What needs more than the tests themselves; each is skipped with a sentence where it cannot be had.
APART := tests/autograder/nbgrader tests/autograder/browser
SLOWEST := --durations=20 --durations-min=10
PROCESSES = $(or $(JOBS),auto)
WORKERS = -n $(PROCESSES) $(SLOWEST) --autograder-seed 1 $(APART:%=--ignore=%)

BY_FILE := --dist loadfile --no-loadscope-reorder

step = @echo "== $@: $(1)"

unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes, each of which would compile the same files

.PHONY: help grade lint test test-all cluster oldest jupyter audit coverage bench build site clean

help:
	@sed -n 's/^## \{0,1\}//p' Makefile

grade: .venv/.ready-grade $(if $(SUBMISSIONS),,$(EXAMPLE))
	$(AUTOGRADER) grade "$(or $(SUBMISSIONS),$(EXAMPLE))" --output "$(OUTPUT)" $(FLAGS)

$(EXAMPLE): | .venv/.ready-grade
	.venv/bin/python scripts/made_up_class.py $(EXAMPLE_SIZE) --output $@ --seed 1 || { rm -rf $@; exit 1; }

lint: .venv/.ready-test
	$(call step,are the files for students up to date?)
	$(AUTOGRADER) build --check
	$(call step,ruff and mypy)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(call step,do the links of the guides lead somewhere, and are their commands there?)
	.venv/bin/python scripts/check_docs.py

test: lint
	$(call step,pytest without the slow tests; make test-all runs those as well)
	$(PYTEST) $(WORKERS) $(BY_FILE) -m "not slow"

test-all: PROCESSES = $(or $(JOBS),$(shell expr 2 '*' $$(nproc) + 1))  # most attacks only wait for a deadline
test-all: lint
	$(call step,pytest with all tests but those of make jupyter)
	$(PYTEST) $(WORKERS) --dist worksteal  # the attacks are one file
	$(call step,the first command on many kinds of machines)
	scripts/everywhere

cluster: .venv/.ready-test
	$(call step,whole clusters on this machine and random kills)
	CLUSTER_KILLS=$(or $(KILLS),20) $(PYTEST) -rs tests/autograder/extras/cluster/test_cluster.py
	$(call step,simulated graders and the records of a large class)
	.venv/bin/python -m benchmarks.cluster_load
	.venv/bin/python -m benchmarks.large_class

oldest:
	$(call step,the lowest versions of all packages)
	PYTHON="$(PYTHON)" scripts/oldest

jupyter: .venv/.ready-nbgrader
	$(call step,nbgrader and JupyterLab and PostgreSQL and a browser)
	$(PYTEST) -rs -n $(PROCESSES) $(SLOWEST) $(BY_FILE) $(if $(filter no,$(SLOW)),-m "not slow") $(wildcard $(APART))

audit: .venv/.ready-test
	$(call step,every mistake and every other answer and every mutant of every assignment)
	$(AUTOGRADER) audit --output audit.json $(if $(filter no,$(MUTANTS)),--no-mutants) $(if $(JOBS),--jobs $(JOBS)) $(ASSIGNMENT)

coverage: .venv/.ready-test
	$(PYTEST) $(WORKERS) $(BY_FILE) -m "not slow" --cov --cov-report=term:skip-covered --cov-report=html:build/coverage

bench: .venv/.ready-bench
	.venv/bin/python -m benchmarks.course $(ASSIGNMENT) --json build/bench.json --picture build/bench.png
	.venv/bin/python -m benchmarks.compare $(if $(STUDENTS),--students $(STUDENTS))
	.venv/bin/python -m benchmarks.ratios --record

build: .venv/.ready-grade
	$(AUTOGRADER) build $(ASSIGNMENT)

site: .venv/.ready-site
	.venv/bin/python scripts/make_site.py

.venv/.ready-grade: EXTRAS = report,ready-made,similar,watch
.venv/.ready-test: EXTRAS = report,dev,cluster,notebook,watch
.venv/.ready-nbgrader: EXTRAS = report,dev,nbgrader,notebook,browser,watch,site
.venv/.ready-site: EXTRAS = report,ready-made,site
.venv/.ready-bench: EXTRAS = report,dev,nbgrader,bench,watch
.venv/.ready-%: pyproject.toml constraints.txt scripts/setup
	@PYTHON="$(PYTHON)" PYTORCH="$(PYTORCH)" scripts/setup "$(EXTRAS)"
	@touch $@

clean:
	rm -rf .venv examples/class examples/class-of-* audit.json .coverage build dist .pytest_cache .hypothesis .ruff_cache .mypy_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -r {} +
