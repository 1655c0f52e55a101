"""How the server talks to a process of its own: frames, messages, errors, and the process itself."""
