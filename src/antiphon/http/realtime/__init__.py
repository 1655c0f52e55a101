"""OpenAI's Realtime protocol, as far as its transcription sessions go."""
