"""Export of fitted calibrators: JSON files, SQL and ONNX."""

import calibrant.calibrators  # noqa: F401  (raises an error that names a missing extra)
