#!/usr/bin/env bash
# Runs once, when Gradescope builds the image: a Python of our own with what the grader needs.
set -euo pipefail
cd "${AUTOGRADER_ROOT:-/autograder}/source"
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install python3 python3-venv bubblewrap
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "Python 3.10 or later is needed: choose Ubuntu 22.04 or later as the base image." >&2
    exit 1
}
python3 -m venv .venv
.venv/bin/python kit/autograder/installation/install.py --quiet --constraint constraints.txt --requirement requirements.txt
