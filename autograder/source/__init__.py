"""Reading students' texts without running them: safe file access, names used, tokens, similarity."""
