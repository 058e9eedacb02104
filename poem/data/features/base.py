"""What all kinds of features have in common."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from poem.data.features.blocks import Block
from poem.files import Place, Table


@dataclass(frozen=True)
class Kind:
    """One raw column, or a pair of them, and the features that it becomes."""

    kind: ClassVar[str]
    _least: ClassVar[int] = 0  # features
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The raw columns that are needed."""
        return (self.column,)

    @property
    def width(self) -> int:
        """The number of features."""
        raise NotImplementedError

    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        raise NotImplementedError

    def encode(self, table: Table, place: Place) -> Block:
        """Return the features of each row, (n, width)."""
        raise NotImplementedError

    def is_text(self) -> bool:
        """Tell whether the column certainly held text, not numbers."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Make it again from data; raise TypeError or ValueError for data that to_dict() never gives."""
        values: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
        made = cls(**{name: value for name, value in values.items() if name != "kind"})
        made._check()
        return made

    def _check(self) -> None:
        for name, kind in self._types().items():
            value = getattr(self, name)
            several = isinstance(getattr(type(self), name, None), tuple)  # so is the default
            parts = value if isinstance(value, tuple) else (value,)
            if several != isinstance(value, tuple) or not all(_is_plain(part, kind) for part in parts):
                raise ValueError(f"{self.kind} of column {self.column!r} has {name}={value!r:.80}")
            if len(set(parts)) < len(parts):
                raise ValueError(f"{self.kind} of column {self.column!r} names one of its {name} twice")
        if not self._least <= self.width < 2**31:
            raise ValueError(f"{self.kind} of column {self.column!r} has {self.width} features")

    @classmethod
    def _types(cls) -> dict[str, Any]:
        return {"column": str}

    def __str__(self) -> str:
        return f"{self.column}: {self.kind} ({self.width:,})"


def _is_plain(value: Any, kind: type) -> bool:
    if isinstance(value, str):
        value.encode()  # raises for half of a surrogate pair, which no Arrow string can hold
    return isinstance(value, kind) and not isinstance(value, bool)


@dataclass(frozen=True)
class Sized(Kind):
    """A column that becomes a fixed number of features."""

    size: int = 0

    @classmethod
    def _types(cls) -> dict[str, Any]:
        return {"column": str, "size": int}

    @property
    def width(self) -> int:
        return self.size
