"""The errors of this package. Each message says what failed, why, and what to do."""


class MdsError(Exception):
    """Base class of all errors of this package."""


class OpenError(MdsError):
    """There is no warehouse there, or a module that reads it is missing."""


class UnknownSeries(MdsError, KeyError):
    """No series, or more than one, has the name."""

    def __str__(self):
        # KeyError would print the representation of the text.
        return self.args[0]


class Unknowable(MdsError):
    """The warehouse cannot tell exactly what was known then."""


class Incomplete(MdsError):
    """A part of the window is not proven. `missing` has the ranges."""

    def __init__(self, message, missing):
        super().__init__(message)
        self.missing = missing
