"""From what a course site lets an instructor download to `submitted/`, the folder that `autograder grade` reads."""
