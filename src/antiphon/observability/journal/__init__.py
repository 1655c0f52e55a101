"""The journal of transitions: what the core was asked and decided, what became of each model, and who caused it."""
