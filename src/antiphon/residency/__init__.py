"""What is in memory and what may be: pure rules over the registered models."""
