"""`antiphon bench`: what the server costs, as ratios to what it could cost at best. docs/bench.md explains them."""
