"""More ways in beside the default listener: how one is found by its kind, and those that come with the server."""
