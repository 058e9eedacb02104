"""What poem notes in a table's metadata: which column is what, all outputs, and how features were made."""

import json
from base64 import b64decode, b64encode
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from poem.data import BanditLog
from poem.data.features import Features
from poem.errors import InputError, ReadError
from poem.files import Table, room
from poem.readers.columns import UNITS, Roles
from poem.readers.raw import About, RawActions, RawLog
from poem.structures import Labels, structure_from_data

KEY = b"poem"
ACTIONS_KEY = b"poem.actions"
# A structure that came later, and candidates, must not be overlooked by a poem that does not know of them.
PLAIN_VERSION, STRUCTURE_VERSION, VERSION = 1, 2, 3
COMPRESSED_BUFFER = (0xFD2FB528, 0x184D2204)  # what buffers begin with that Arrow compressed: Zstandard, LZ4
MOST_BYTES = 1 << 26  # of a catalogue inside a file: others read metadata of up to 100 MB


def with_notes(raw: RawLog) -> RawLog:
    """Return a raw log with what poem wrote into its table's metadata, if it did."""
    metadata = raw.table.schema.metadata or {}
    if KEY not in metadata:
        return raw
    try:
        content = json.loads(metadata[KEY])
        if content["format"] != "poem.log":
            raise ValueError(f"format {content['format']!r}")
        if int(content["version"]) > VERSION:
            raise ReadError(f"{raw.origin.name} has log format {content['version']}; this poem reads up to {VERSION}.")
        features, about = _features(content["features"]), _about(content["about"])
        if about.encoded and (features is None or (about.recipe is not None and about.recipe.width != features.width)):
            raise ValueError("the recipe does not fit the features")
        return replace(
            raw,
            roles=roles_from(content["roles"]),
            labels=_labels(content["labels"]),
            features=features,
            about=about,
            structure=_structure(content),
            actions=_actions(content.get("actions"), metadata.get(ACTIONS_KEY), raw.origin.name),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, OSError) as error:
        if isinstance(error, ReadError):
            raise
        raise ReadError(f"{raw.origin.name} has broken metadata of poem ({error!r}). Write it again.") from error


def roles_from(content: dict[str, Any]) -> Roles:
    """Make roles again from data; raise TypeError for what was never written."""
    fields: dict[str, Any] = {
        role: tuple(value) if isinstance(value, list) else value for role, value in content.items()
    }
    for role, value in fields.items():
        if role in ("context", "output"):
            sound = isinstance(value, tuple) and all(isinstance(name, str) for name in value)
        else:
            sound = value in UNITS if role == "unit" else isinstance(value, str | None)
        if not sound:
            raise TypeError(f"the role {role!r} is {value!r:.80}")
    return Roles(**fields)


def _labels(content: Any) -> Labels | None:
    if content is None:
        return None
    if not isinstance(content, list) or not all(isinstance(label, str | int | float) for label in content):
        raise TypeError(f"the labels {content!r:.80}")
    return tuple(content)


def _structure(content: dict[str, Any]) -> Any:
    data = content.get("structure")
    if data is not None and content["labels"] is not None:
        structure_from_data(data, len(content["labels"]))  # says what is wrong with it
    return data


def _features(content: Any) -> Features | None:
    return None if content is None else Features.from_data(content)


def _actions(content: Any, table: bytes | None, name: str) -> RawActions:
    if content is None:
        return RawActions()
    if not isinstance(content["id"], str):
        raise TypeError(f"the id of actions {content['id']!r:.80}")
    found = RawActions(
        id=content["id"],
        identity=bool(content["identity"]),
        features=_features(content["features"]),
        recipe=_features(content["recipe"]),
    )
    if table is None:
        return found
    return replace(found, **{"rows" if content["encoded"] else "catalogue": _unpacked(table, name)})


def _packed(table: Table) -> bytes:
    """Return a table of actions as text for metadata."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    content = b64encode(sink.getvalue())
    if len(content) > MOST_BYTES:
        raise InputError(
            f"the catalogue takes {len(content):,} bytes, too many to be kept inside the log's file. Keep it in a file "
            "of its own (--actions, actions=), with the ids of candidates in the log."
        )
    return content


def _unpacked(content: bytes, name: str) -> Table:
    import pyarrow as pa

    packed = b64decode(content, validate=True)
    room().check(f"the catalogue in {name}", sum(map(_expanded, pa.ipc.MessageReader.open_stream(packed))))
    return pa.ipc.open_stream(packed).read_all()


def _expanded(message: Any) -> int:
    """Return how many bytes the buffers of a message take decompressed; before each of them stands its length."""
    words = np.frombuffer(message.body, dtype="<i8", count=message.body.size // 8)
    starts = np.isin(words[1:] & 0xFFFFFFFF, COMPRESSED_BUFFER)
    return int(np.maximum(words[:-1][starts], 0).sum(dtype=np.float64))


def _about(content: dict[str, Any]) -> About:
    names = content["feature_names"]
    return About(
        encoded=bool(content["encoded"]),
        estimated=bool(content["estimated"]),
        missing=bool(content.get("missing", False)),
        feature_names=None if names is None else tuple(map(str, names)),
        recipe=_features(content["recipe"]),
    )


def noted_structure(log: BanditLog) -> Any:
    """Return what a file says of a log's structure: nothing, if it would be taken for it anyway."""
    return None if log.structure.inferred else log.structure.to_data()


def _version(raw: RawLog) -> int:
    if raw.has_candidates:
        return VERSION
    return PLAIN_VERSION if raw.structure is None else STRUCTURE_VERSION


def notes_of(raw: RawLog) -> dict[bytes, bytes]:
    """Return the notes on a log, for its table's metadata."""
    about = raw.about
    content = {
        "format": "poem.log",
        "version": _version(raw),
        "roles": asdict(raw.roles),
        "labels": None if raw.labels is None else list(raw.labels),
        **({} if raw.structure is None else {"structure": raw.structure}),
        **({"actions": _actions_data(raw)} if raw.has_candidates else {}),
        "features": None if raw.features is None else raw.features.to_data(),
        "about": {
            "encoded": about.encoded,
            "estimated": about.estimated,
            "missing": about.missing,
            "feature_names": None if about.feature_names is None else list(about.feature_names),
            "recipe": None if about.recipe is None else about.recipe.to_data(),
        },
    }
    table = raw.actions.catalogue if raw.actions.rows is None else raw.actions.rows
    packed = {} if table is None else {ACTIONS_KEY: _packed(table)}
    return {KEY: json.dumps(content, ensure_ascii=False).encode(), **packed}


def _actions_data(raw: RawLog) -> dict[str, Any]:
    actions = raw.actions
    return {
        "id": actions.id,
        "identity": actions.identity,
        "encoded": actions.rows is not None,
        "features": None if actions.features is None else actions.features.to_data(),
        "recipe": None if actions.recipe is None else actions.recipe.to_data(),
    }
