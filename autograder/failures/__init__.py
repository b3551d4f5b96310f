"""Why a test failed, in sentences."""
