"""Grades for other people's tools: each exporter turns the grades of a class into what one tool reads."""
