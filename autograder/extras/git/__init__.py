"""Git in, git out: a repository of each student becomes submissions, and feedback returns to a branch in it."""
