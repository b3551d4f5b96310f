"""Commands for authors: build the students' files from the solutions, and verify that the course is correct."""
