"""The engines that ship with antiphon, one module each; the core finds them by entry point and never imports them."""
