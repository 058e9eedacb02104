"""A policy file, read again: checked, and nothing in it is executed."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from poem.arrays import AnyArray
from poem.compute import Forest
from poem.data.features import Features
from poem.errors import InputError, MismatchError, PolicyFileError
from poem.policies import checksum
from poem.policies.floor import FlooredPolicy
from poem.policies.policy import FILE_VERSION, Policy
from poem.policies.record import Record
from poem.structures import structure_from_data

LENGTH = 8  # bytes that say how long the header is
LONGEST_HEADER = 100_000_000  # bytes that safetensors allows


def load_policy(path: str | os.PathLike[str]) -> Policy | FlooredPolicy:
    """Read a policy that :meth:`Policy.save` wrote, with its floor if it has one. Nothing in the file is executed."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if not Path(path).is_file():
        raise PolicyFileError(f"there is no policy file at {os.fspath(path)!r}. Check the path.")
    try:
        header, content = _content(Path(path))
        tensors = load(content)
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise PolicyFileError(
            f"{os.fspath(path)!r} is not a whole policy file: it is of another format, or cut off ({error}). Pass a "
            "file that was saved as a policy, or save it again."
        ) from error
    about, version = _about(os.fspath(path), header)
    checksum.check(os.fspath(path), content, about, version)
    return _rebuild(os.fspath(path), about, tensors)


def _content(path: Path) -> tuple[bytes, bytes]:
    """Return the header and the whole of a safetensors file; a large file of another kind is not read."""
    with path.open("rb") as file:
        size = file.read(LENGTH)
        length = int.from_bytes(size, "little")
        if len(size) < LENGTH or length > LONGEST_HEADER:
            raise ValueError("it does not begin like a safetensors file")
        file.seek(0)
        content = file.read()
    return content[LENGTH : LENGTH + length], content


def _about(path: str, header: bytes) -> tuple[dict[str, Any], int]:
    """Return what a policy file says of itself, and its version."""
    try:
        about = json.loads(json.loads(header)["__metadata__"]["poem"])
        if about["format"] != "poem.policy":
            raise KeyError("format")
        version = int(about["version"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PolicyFileError(
            f"{path!r} is a safetensors file, but not a policy: poem's metadata is missing or broken ({error})."
        ) from error
    if version > FILE_VERSION:
        raise PolicyFileError(
            f"{path!r} has format version {version}; this poem reads up to {FILE_VERSION}. Upgrade poem."
        )
    return about, version


def _rebuild(path: str, about: dict[str, Any], tensors: dict[str, AnyArray]) -> Policy | FlooredPolicy:
    try:
        weights, labels = tensors["weights"], tuple(about["labels"])
        if weights.dtype.kind != "f":
            raise ValueError(f"weights of {weights.dtype}")
        structure = structure_from_data(about["structure"], len(labels))
        if weights.ndim != 2:
            raise ValueError(f"{len(labels)} labels for weights of shape {weights.shape}")
        names = None if about["feature_names"] is None else tuple(about["feature_names"])
        features = None if about.get("features") is None else Features.from_data(about["features"])
        record = Record.from_data(about["training"])
        action_names = None if about.get("action_names") is None else tuple(about["action_names"])
        recipe = None if about.get("action_features") is None else Features.from_data(about["action_features"])
        known = (names, record, features, action_names, recipe)
        policy = Policy(structure, weights, about["intercept"], labels, *known, Forest.from_arrays(tensors, "forest"))
        _check_rebuilt(policy)
        return policy if about.get("floor") is None else _with_floor(policy, tensors, about["floor"])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, InputError, MismatchError) as error:
        raise PolicyFileError(f"{path!r} is a policy file with broken content: {error!r}. Save it again.") from error


def _with_floor(policy: Policy, tensors: dict[str, AnyArray], about: dict[str, Any]) -> FlooredPolicy:
    forest = Forest.from_arrays(tensors, "floor.forest")
    other = replace(policy, weights=tensors["floor"], intercept=about["intercept"], record=Record(), forest=forest)
    _check_rebuilt(other)
    return policy.with_floor(about["share"], other)


def _check_rebuilt(policy: Policy) -> None:
    """Raise ValueError or TypeError for content that save() never writes."""
    grown = int(policy.structure.described and policy.forest is not None)  # features that trees add to candidates
    if policy.weights.shape[1:] != (policy.structure.n_scores + grown,):
        raise ValueError(f"{len(policy.labels)} labels for weights of shape {policy.weights.shape}")
    if len(set(policy.labels)) != len(policy.labels):
        raise ValueError("labels that are not distinct")
    if not isinstance(policy.intercept, bool):
        raise ValueError("an intercept of a wrong type")
    if policy.n_features < 0 or (policy.feature_names is not None and len(policy.feature_names) != policy.n_features):
        raise ValueError(f"{policy.feature_names} for {policy.n_features} features")
    if policy.features is not None and policy.features.width != policy.n_features:
        raise ValueError(f"a recipe of {policy.features.width} features for {policy.n_features}")
    recipe = policy.action_features
    policy.structure.check_described(policy.labels, policy.action_names, None if recipe is None else recipe.width)
