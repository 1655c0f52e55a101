"""The engines that ship with antiphon, one module each; the core finds them by entry point and never imports them."""

import os

# onnxruntime reports its use to its maker from the moment of its import, unless this is set before. Whoever runs a
# speech server of their own did not ask for that; a value that they set stays as it is.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
