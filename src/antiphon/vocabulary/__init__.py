"""The words that every layer shares: frozen values on the standard library alone."""
