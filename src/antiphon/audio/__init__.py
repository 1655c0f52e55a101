"""Untrusted bytes into samples and samples into bytes: decoding, resampling, encoding; it knows no HTTP."""
