"""One guided setup: actions in, immutable state out, tasks run as jobs, saved after each of them."""
