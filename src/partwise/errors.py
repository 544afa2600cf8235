"""The errors partwise raises on purpose. Each is also the built-in error a caller would expect."""


class IncompatibleError(ValueError):
    """A loss, a structure and a solver that do not go together."""


class UnknownNameError(ValueError):
    """A name that is not in the registry."""


class ArchiveError(ValueError):
    """A file that is not what it should be, or a checkpoint of something else."""
