"""How a log is read so that it is like an earlier one, such as the log that a policy was trained on."""

from dataclasses import dataclass, replace

from poem.data import BanditLog
from poem.data.features import Features
from poem.readers.columns import Columns, Roles
from poem.readers.raw import RawLog
from poem.structures import Labels, Structure


@dataclass(frozen=True)
class Likeness:
    """What is known of a log before it is read.

    Attributes
    ----------
    labels, structure
        All possible outputs, and what an output is.
    features, action_features : Features, optional
        How columns become features of contexts and of actions.
    roles : Roles, optional
        Which column was what; applies to columns that the new log has as well.
    action_id : str, optional
        The field that holds the ids of actions.
    """

    labels: Labels | None = None
    structure: Structure | None = None
    features: Features | None = None
    action_features: Features | None = None
    roles: Roles | None = None
    action_id: str | None = None

    @property
    def described(self) -> bool:
        """Whether actions are known by their features."""
        return self.structure is not None and self.structure.described

    def named(self, columns: Columns) -> Columns:
        """Return columns with the field of ids, if none is named."""
        return replace(columns, action_id=self.action_id) if columns.action_id is None else columns

    def of_actions(self, raw: RawLog) -> RawLog:
        """Return a log that knows how columns of actions become features; encoded ones have become so already."""
        if self.action_features is None or raw.about.encoded:
            return raw
        return replace(raw, actions=replace(raw.actions, features=self.action_features))

    def check(self, raw: RawLog, log: BanditLog) -> None:
        """Raise MismatchError if a log was not read so, because its file says otherwise."""

    def check_known(self, raw: RawLog, log: BanditLog) -> None:
        """Raise MismatchError if none of the known features occurs in a log."""


NOTHING_KNOWN = Likeness()
