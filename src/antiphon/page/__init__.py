"""The web page: plain files that a browser runs as they are (ADR 12), and how they are found."""
