"""Model packages: a catalogue, and an installer that shows a package whole or not at all. It loads no model."""

from antiphon.packages.catalogue import Catalogue, Package, catalogue_of, shipped_catalogue
from antiphon.packages.installed import InstalledModel, damaged_packages, installed_registrations
from antiphon.packages.installer import Installer, PackageState, Phase, Progress
from antiphon.packages.installs import Installs, InstallView
from antiphon.packages.manifest import Manifest
from antiphon.packages.process import PackageProcess, Verb
from antiphon.packages.root import default_models_root

__all__ = [
    "Catalogue",
    "InstallView",
    "InstalledModel",
    "Installer",
    "Installs",
    "Manifest",
    "Package",
    "PackageProcess",
    "PackageState",
    "Phase",
    "Progress",
    "Verb",
    "catalogue_of",
    "damaged_packages",
    "default_models_root",
    "installed_registrations",
    "shipped_catalogue",
]
