"""Graders on other machines."""
