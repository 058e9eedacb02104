"""Why a policy cannot be asked about a packed log: features and outputs are settled when a log is packed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from poem.errors import MismatchError
from poem.packed import PackedLog
from poem.policies.floor import FlooredPolicy
from poem.policies.policy import Policy
from poem.text import counted

SHOWN = 3  # names that are said of each side
ADVICE = "Pack it again with pack_log(policy=…)."
NOT_BOTH = "A packed log has the features of one policy; compare policies of different features on the original files."


def check_packed(policy: Any, log: PackedLog, name: str = "the policy", advice: str = ADVICE) -> None:
    """Refuse a packed log whose features or outputs are not those of a policy, and say what differs.

    ``name`` is what the policy is called: the file that a command was given, or what a function calls it. Only poem's
    own policies know what they need.
    """
    if not isinstance(policy, Policy | FlooredPolicy):
        return
    found = next(_differences(policy, log), None)
    if found is not None:
        raise MismatchError(f"{log.folder.name} was packed in another way than {name} reads logs: {found}. {advice}")


def check_packed_for(path: Path, policy: Any, log: PackedLog) -> None:
    """Refuse the same for the policy of a file, and name the file."""
    check_packed(policy, log, str(path), f"Pack it again with poem pack --policy {path}.")


def check_all_packed(policies: Sequence[tuple[str, Any]], log: PackedLog) -> None:
    """Refuse the same for several policies; the features of a packed log are those of the first."""
    for number, (name, policy) in enumerate(policies):
        same = number == 0 or not isinstance(policies[0][1], Policy | FlooredPolicy)
        check_packed(policy, log, name if len(policies) > 1 else "the policy", ADVICE if same else NOT_BOTH)


def _differences(policy: Policy | FlooredPolicy, log: PackedLog) -> Iterator[str]:
    kind, mine, theirs = log.kind, policy.structure, log.structure
    described = f"its outputs are {theirs.describe()}, those of the policy are {mine.describe()}"
    labels = theirs.known_labels(log.labels)
    if type(mine) is not type(theirs):
        yield described
    yield from _names("outputs", labels, policy.labels)
    yield from _names("features", log.feature_names, policy.feature_names)
    if log.n_features != policy.n_features:
        yield f"it has {counted(log.n_features, 'feature')}, and the policy has {policy.n_features:,}"
    yield from _recipes("features", log.features, policy.features)
    if mine.described:
        yield from _names("features of actions", kind.action_names, policy.action_names)
        yield from _recipes("features of actions", kind.action_features, policy.action_features)
    if mine != theirs:
        yield described


def _names(what: str, log: Sequence[Any] | None, policy: Sequence[Any] | None) -> Iterator[str]:
    """Say which names one has and the other lacks, or that their order differs."""
    if log is None or policy is None or log == policy:
        return
    here, there = set(log), set(policy)
    fewer, more = [one for one in policy if one not in here], [one for one in log if one not in there]
    said = [f"it lacks the {what} {_few(fewer)}"] if fewer else []
    said += [f"it has the {what} {_few(more)}, which the policy lacks"] if more else []
    yield " and ".join(said) if said else f"its {what} are in another order"


def _recipes(what: str, log: Any, policy: Any) -> Iterator[str]:
    if log is not None and policy is not None and log != policy:
        yield f"its {what} have the same names, but other scales, categories or hashes"


def _few(names: Sequence[Any]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
