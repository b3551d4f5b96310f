"""The pages of the site that are made from the course, the commands, the API and the tests."""
