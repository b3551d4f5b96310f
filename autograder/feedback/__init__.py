"""HTML pages and pictures made from grades."""
