"""The markers in a solution document: gaps, and the cells of parts.

Reads text only, without Jupyter's packages.
"""

import re

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
UNWRITTEN = " is not written yet."
PLACEHOLDER = (
    "*Write your answer here, in place of this line. A person reads it and gives the points.*"
)
ANSWER = re.compile(
    r'^# %% answer="(?P<name>[a-z][a-z0-9_]*)" points=(?P<points>[0-9]+(?:\.[0-9]+)?)(?: rubric="(?P<rubric>[^"\n]+)")?$',
    re.M,
)
QUESTION_LEADS = "To think about|Think about it|One last question|One question to take along"
_PART = re.compile(r'# %% part="(\w+)"')


def parts_of_lines(solution: str) -> list[str]:
    """Return the part to which each line belongs, that of the next cell of a part; "" after the last one."""
    parts = []
    part = ""
    for line in reversed(solution.split("\n")):
        match = _PART.match(line)
        part = match[1] if match else part
        parts.append(part)
    return parts[::-1]
