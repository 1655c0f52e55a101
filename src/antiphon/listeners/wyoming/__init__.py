"""The kind `wyoming`: speech for Home Assistant and other peers of the Wyoming protocol."""

from antiphon.listeners.wyoming.listener import WyomingListener as WyomingListener
