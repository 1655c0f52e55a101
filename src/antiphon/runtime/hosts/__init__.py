"""Where engines run, one module a kind of isolation."""
