"""Isolated processes for students' code."""
