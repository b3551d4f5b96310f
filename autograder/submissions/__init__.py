"""Find and read submissions as text; an unusable submission carries a message instead of raising an exception."""
