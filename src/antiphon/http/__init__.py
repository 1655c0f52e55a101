"""The HTTP API: it translates requests and domain results, and decides nothing about models."""
