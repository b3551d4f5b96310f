"""Catch the mistake: inputs on which wrong programs differ from a student's own code."""
