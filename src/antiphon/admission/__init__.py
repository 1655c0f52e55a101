"""Who may use a model and when: pure decisions, without a clock, a thread or a coroutine."""
