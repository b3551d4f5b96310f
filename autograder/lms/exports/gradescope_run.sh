#!/usr/bin/env bash
# Runs for each submission. The root is a variable, so that it can be tried anywhere.
root="${AUTOGRADER_ROOT:-/autograder}"
python="${AUTOGRADER_PYTHON:-$root/source/.venv/bin/python}"
export PYTHONPATH="$root/source/kit" OMP_NUM_THREADS=1
cd "$root/source/kit"
exec "$python" -m autograder.lms.exports.gradescope_run "$root"
