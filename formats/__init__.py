"""What the bytes of an Apache RocketMQ store mean.

Every on-disk format is declared once here, as a construct schema that parses and builds. NumPy dtypes and
the field offsets that fast kernels use are derived from these schemas (`formats.primitives.dtype_of`,
`offset_of`). Nothing in this package opens a file: it maps bytes to values and back. The notes in
`docs/format/` describe the same layouts.

Bytes that do not fit a format raise `formats.errors.FormatError`, and nothing else.
"""
