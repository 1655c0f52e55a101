"""Written text as it is cut for speech: pure, and for engines and listeners alike."""
