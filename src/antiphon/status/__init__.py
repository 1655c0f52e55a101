"""A running server as those who run it see it. It knows its HTTP answers alone, and nothing of the server's inside."""
