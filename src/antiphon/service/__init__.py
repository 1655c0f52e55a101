"""The use cases: from what a client wants to what a model is asked, and back; no HTTP words."""
