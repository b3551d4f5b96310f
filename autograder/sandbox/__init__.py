"""The isolated process in which a student's code runs."""
