"""An auto-graded course kit: stubs, suites, a sandbox, grades and feedback.

Importing the package is cheap; PyTorch is loaded only by the rooms that need it.
"""

__version__ = "0.1.0"
