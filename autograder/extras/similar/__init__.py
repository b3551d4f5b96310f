"""Submissions that resemble each other."""
