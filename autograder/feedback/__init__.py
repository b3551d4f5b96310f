"""Grades turned into pages for people."""
