"""The version of this package, which grades, archives and the command line name."""

__version__ = "0.1.0"
