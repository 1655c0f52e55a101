"""antiphon: a self-hosted speech server. Start reading at `bootstrap.py`; the layers are in `docs/architecture.md`."""

__version__ = "0.1.0"
