"""After the attacks, print for each tier how many of them failed."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

ATTACK = re.compile(r"test_attacks\.py::test_attack\[(namespaces|landlock)-")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    held, tried = (Counter[str](), Counter[str]())
    ended = {
        outcome: _attacks(terminalreporter.stats.get(outcome, ()))
        for outcome in ("passed", "failed", "error")
    }
    for test, tier in {**ended["passed"], **ended["failed"], **ended["error"]}.items():
        tried[tier] += 1
        held[tier] += test not in ended["failed"] and test not in ended["error"]
    for tier in sorted(tried):
        terminalreporter.write_line(
            f"{tier}, as user {os.getuid()}: held against {held[tier]} of {tried[tier]} attacks"
        )


def _attacks(reports: Any) -> dict[str, str]:
    """Return the tests of attacks among the reports, each with its tier."""
    found = {report.nodeid: ATTACK.search(report.nodeid) for report in reports}
    return {test: match[1] for test, match in found.items() if match}
