"""`antiphon validate`: are a model's answers the same when several slots run at once? docs/validation.md explains."""
