"""The author's files: course.yml, solution documents, mistakes and notebooks, read and validated."""
