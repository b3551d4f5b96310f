"""The version of this package, which grades, archives and the command line name."""

__version__ = "0.2.0"
