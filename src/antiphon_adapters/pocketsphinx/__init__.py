"""Forced alignment with PocketSphinx as an alignment family."""

from antiphon_adapters.pocketsphinx.adapter import PocketsphinxAdapter

__all__ = ["PocketsphinxAdapter"]
