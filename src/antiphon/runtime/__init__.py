"""The only threads and processes: it acts on what the pure core decides, and tells the service what came of it."""
