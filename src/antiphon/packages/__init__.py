"""Model packages: a catalogue, and an installer that shows a package whole or not at all. It loads no model."""

from antiphon.packages.catalogue import Catalogue, Package, catalogue_of, shipped_catalogue
from antiphon.packages.installed import InstalledModel, installed_registrations
from antiphon.packages.installer import Installer, Phase, Progress
from antiphon.packages.manifest import Manifest
from antiphon.packages.root import default_models_root

__all__ = [
    "Catalogue",
    "InstalledModel",
    "Installer",
    "Manifest",
    "Package",
    "Phase",
    "Progress",
    "catalogue_of",
    "default_models_root",
    "installed_registrations",
    "shipped_catalogue",
]
