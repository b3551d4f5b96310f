#!/usr/bin/env bash
# Runs for each submission. The folders are variables, so that it can be tried anywhere.
root="${AUTOGRADER_ROOT:-/autograder}"
python="${AUTOGRADER_PYTHON:-$root/source/.venv/bin/python}"
export PYTHONPATH="$root/source/kit" OMP_NUM_THREADS=1
cd "$root/source/kit"
"$python" -m autograder.extras.lms.exports.gradescope_run "$root" "${AUTOGRADER_CONTROL_GROUP:-/sys/fs/cgroup}"
code=$?
if [ "$code" = 137 ]; then  # killed with SIGKILL, as the system does when memory runs out
    echo "Nothing was graded: the grader was killed, most likely because the container ran out of memory." \
        "On Gradescope, choose at least 1.5 GB of RAM: Settings, Container Specifications."
fi
exit "$code"
