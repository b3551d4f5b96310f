"""The pytest side of grading: markers, fixtures, sessions, and the subjects of their tests."""
