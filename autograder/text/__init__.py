"""Shared functions for files, names and wording of messages."""
