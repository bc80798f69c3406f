"""Exceptions: one class for each status of the library, with its one-line message: what it is about, what was expected, what was found."""

from __future__ import annotations


class Error(Exception):
    """What every call of the library raises. `status` is its name: "invalid_argument"."""

    status = "internal"


class InvalidArgument(Error, ValueError):
    """Something was passed that is not accepted."""

    status = "invalid_argument"


class InvalidFile(Error, ValueError):
    """A file's content breaks its format."""

    status = "invalid_file"


class Unsupported(Error, NotImplementedError):
    """Well-formed, but nothing implements it."""

    status = "unsupported"


class IoError(Error, OSError):
    """The operating system refused: a missing file, no permission, a full disk."""

    status = "io"


class OutOfMemory(Error, MemoryError):
    """Memory of the host or of the device is out."""

    status = "out_of_memory"


class Cancelled(Error):
    """The caller ended it."""

    status = "cancelled"


class InternalError(Error, RuntimeError):
    """A bug in Cermet."""


#: By cermet_status; 0 is success.
BY_STATUS = (None, InvalidArgument, InvalidFile, Unsupported, IoError, OutOfMemory, Cancelled, InternalError)
