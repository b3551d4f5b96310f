## make grade [SUBMISSIONS=folder]  installs what is needed and grades a class; without a folder, one that is made up
## make test                        installs what is needed and passes the tests, but for those of
## make jupyter                     nbgrader, JupyterLab, PostgreSQL and a browser, which it installs, too
## make build                       makes assignments/ from solutions/
## make audit                       proves that the course is fair: every known mistake is caught and named
## make bench                       compares what grading costs with other graders, which it installs, too
## make clean                       takes away what was made here, but never grades/
##
## Variables: ASSIGNMENT=03_masked_heads, OUTPUT=grades, JOBS=2, PYTHON=python3

PYTHON ?= python3
OUTPUT ?= grades

AUTOGRADER := .venv/bin/autograder
EXAMPLE := examples/class
FLAGS = $(if $(ASSIGNMENT),--assignment "$(ASSIGNMENT)") $(if $(JOBS),--jobs $(JOBS))

# What needs more than the tests themselves; each is skipped with a sentence where it cannot be had.
APART := tests/autograder/nbgrader tests/autograder/browser

.PHONY: help grade test jupyter audit bench build clean

help:
	@sed -n 's/^## \{0,1\}//p' Makefile

grade: .venv/.ready-grade $(if $(SUBMISSIONS),,$(EXAMPLE))
	$(AUTOGRADER) grade "$(or $(SUBMISSIONS),$(EXAMPLE))" --output "$(OUTPUT)" $(FLAGS)

$(EXAMPLE): | .venv/.ready-grade
	$(AUTOGRADER) demo --students 30 --output $@ --seed 1 || { rm -rf $@; exit 1; }

test: .venv/.ready-test
	$(AUTOGRADER) build --check
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python -m pytest -n $(or $(JOBS),auto) --dist loadfile $(APART:%=--ignore=%)

jupyter: .venv/.ready-nbgrader
	.venv/bin/python -m pytest -rs $(wildcard $(APART))

audit: .venv/.ready-test
	$(AUTOGRADER) audit --output audit.json $(if $(JOBS),--jobs $(JOBS)) $(ASSIGNMENT)

bench: .venv/.ready-bench
	.venv/bin/python -m benchmarks.compare $(if $(STUDENTS),--students $(STUDENTS))

build: .venv/.ready-grade
	$(AUTOGRADER) build $(ASSIGNMENT)

.venv/.ready-grade: EXTRAS = report,ready-made,similar
.venv/.ready-test: EXTRAS = report,dev
.venv/.ready-nbgrader: EXTRAS = report,dev,nbgrader,browser
.venv/.ready-bench: EXTRAS = report,dev,nbgrader,bench
.venv/.ready-%: pyproject.toml constraints.txt scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup "$(EXTRAS)"
	@touch $@

clean:
	rm -rf .venv $(EXAMPLE) audit.json build dist .pytest_cache .hypothesis .ruff_cache .mypy_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -r {} +
