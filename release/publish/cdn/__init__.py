"""A release for browsers: a folder of static files that any host can serve, and the loader in it."""
