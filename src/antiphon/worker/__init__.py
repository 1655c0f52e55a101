"""What runs in a worker process, and nowhere else. The server starts it by name and never imports it."""
