"""Many submissions: a run, its graders, and what they may cost."""
