"""The routes, one module a kind of work: each turns a request into an order and an answer into a response."""
