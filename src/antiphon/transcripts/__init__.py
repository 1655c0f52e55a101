"""Transcripts in the formats that people ask for: pure functions from results to text and JSON values."""
