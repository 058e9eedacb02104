"""Everything poem raises or warns about on purpose.

::

    PoemError (Exception)
    ├── InputError (ValueError)          what was passed in cannot be used
    │   ├── LogError                     the log itself: NaN, propensities, lengths, labels
    │   │   └── ReadError                a file that cannot be read as a log
    │   │       ├── SizeError            a file that needs more memory than it may take
    │   │       └── PackedError          a packed log that is incomplete, changed or too new
    │   ├── WholeError                   a file that is read as a whole or not at all
    │   ├── LearningError                a valid log from which nothing can be learnt
    │   └── MismatchError                a policy and data that do not belong together
    ├── DatasetError                     a data set that is not known, not found or not what it should be
    ├── DownloadError                    a file that could not be fetched whole
    ├── WriteError (OSError)             a file that could not be written; nothing of it was left
    ├── PolicyFileError (ValueError)     a policy file that is truncated, foreign or too new
    ├── CheckpointError                  a checkpoint that belongs to another fit or is damaged
    ├── BusyError                        a checkpoint or results folder that another process is using
    ├── BackendError                     a cluster whose scheduler or workers were lost
    └── DegenerateError                  every candidate policy avoids the logged outputs

    PoemWarning (UserWarning)
    └── DegenerateWarning                the chosen policy should not be trusted as it is

Messages say what is wrong, what was found and what to do.
"""


class PoemError(Exception):
    """The root of all errors that poem raises on purpose."""


class InputError(PoemError, ValueError):
    """What was passed in cannot be used."""


class LogError(InputError):
    """The log is malformed: NaN, bad propensities, lengths that differ, unknown labels."""


class ReadError(LogError):
    """A file that cannot be read as a log: empty, cut off, of another format, columns that are not there."""


class SizeError(ReadError):
    """A file that needs more memory than it may take: it may be a decompression bomb."""


class PackedError(ReadError):
    """A packed log with a shard that is missing, cut off or changed, or of a newer version."""


class WholeError(InputError):
    """A file that cannot be read block by block, only as a whole."""


class LearningError(InputError):
    """The log is valid, but nothing can be learnt from it."""


class MismatchError(InputError):
    """A policy and data that do not belong together."""


class DatasetError(PoemError):
    """A data set that is not known, not found or not what it should be."""


class DownloadError(PoemError):
    """A file that could not be fetched whole."""


class WriteError(PoemError, OSError):
    """A file that could not be written: no space, no permission. Nothing of it was left."""


class PolicyFileError(PoemError, ValueError):
    """A policy file that is truncated, foreign or of a newer version."""


class CheckpointError(PoemError):
    """A checkpoint that belongs to another log or to other settings, or is damaged."""


class BusyError(PoemError):
    """A checkpoint or results folder that another process is using."""


class BackendError(PoemError):
    """A cluster whose scheduler or workers were lost while they worked."""


class DegenerateError(PoemError):
    """Every candidate policy avoids the logged outputs."""


class PoemWarning(UserWarning):
    """The root of poem's warnings."""


class DegenerateWarning(PoemWarning):
    """The chosen policy is degenerate: nothing better was found."""
