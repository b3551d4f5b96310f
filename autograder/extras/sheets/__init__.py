"""Sheets for people: one page for teaching assistants, and questions about a student's own code."""
