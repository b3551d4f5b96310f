"""Imported once by the process from which the graders of a run fork (see `pool`): what every grader imports."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before PyTorch is imported

from autograder.grading import grader as grader
from autograder.grading.prepared import import_for_gradients

import_for_gradients()
