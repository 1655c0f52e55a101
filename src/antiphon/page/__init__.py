"""The web page: plain files that a browser runs as they are (ADR 13), and how they are found."""
