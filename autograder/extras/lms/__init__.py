"""Interfaces to course sites: roster, spreadsheets, collecting submissions, and exporting grades."""
