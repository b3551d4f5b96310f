"""Titles of the columns of Canvas's gradebook; of several, the first one that exists counts."""

# fmt: off
NUMBER = ("ID",)
ID = ("SIS Login ID", "SIS User ID", "Integration ID")
NAME = ("Student",)
FIRST = ("FirstName",)
LAST = ("LastName",)
# Canvas does not import a column whose title contains one of these.
NOT_IMPORTED = (
    "Current Score", "Current Points", "Current Grade", "Final Score", "Final Points",
    "Final Grade", "Override Score", "Override Grade", "Override Status",
)
