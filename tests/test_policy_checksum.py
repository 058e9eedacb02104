"""The checksum of policy files: whatever bit is flipped, the file is refused; files from before it are still read."""

import numpy as np
import pytest
from earlier_policies import with_metadata, without_checksum

import poem
from poem.compute import Forest
from poem.errors import PolicyFileError
from poem.policies.loading import load_policy

FLIPS = 150


def plain():
    weights = np.random.default_rng(0).normal(size=(3, 2))
    names = ("=age", "ünï")
    record = poem.Record(made_by="a test", settings={"checksum": "0" * 64})
    return poem.Policy(poem.MultiClass(2), weights, True, ("no", "yes"), names, record)


def with_trees():
    forest = Forest([0, 0, 0], [0.5, np.inf, np.inf], [1, 1, 2], [0.0, -1.0, 1.0], [0], [0], 2, 2)
    return poem.Policy(poem.MultiClass(2), np.eye(5, 2), True, ("no", "yes"), forest=forest)


def for_candidates():
    return poem.Policy(poem.structures.Candidates(4, 2), np.eye(3, 2), True, (), action_names=("price", "size"))


def with_trees_named():
    made = with_trees()
    return poem.Policy(made.structure, made.weights, True, made.labels, ("=age", "ünï"), forest=made.forest)


POLICIES = {
    "plain": plain,
    "floored": lambda: plain().with_floor(0.05),
    "trees": with_trees,
    "trees below a floor": lambda: plain().with_floor(0.1, with_trees_named()),
    "candidates": for_candidates,
}


every_policy = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)


def flipped(content, bit):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def assert_refused(path, content, bits):
    for bit in bits:
        path.write_bytes(flipped(content, bit))
        with pytest.raises(PolicyFileError):
            load_policy(path)


@every_policy
def test_a_policy_comes_back_and_is_written_alike_again(make, tmp_path):
    path = make().save(tmp_path / "policy.poem")
    assert load_policy(path).save(tmp_path / "again.poem").read_bytes() == path.read_bytes()


def test_no_flipped_bit_turns_the_check_off(tmp_path):
    path = plain().save(tmp_path / "policy.poem")
    content = path.read_bytes()
    beginning = content.index(b"version") + len(b'version\\": 5')
    digits = content.index(b"checksum")
    kept = range(8 * (digits + 20), 8 * (digits + 70))  # of the checksum's own digits a few are enough
    assert_refused(path, content, [bit for bit in range(8 * beginning) if bit not in kept])


@every_policy
def test_random_flipped_bits_are_found(make, tmp_path):
    path = make().save(tmp_path / "policy.poem")
    content = path.read_bytes()
    assert_refused(path, content, np.random.default_rng(0).choice(8 * len(content), FLIPS, replace=False).tolist())


def test_a_damaged_file_is_refused_in_words(tmp_path):
    path = plain().save(tmp_path / "policy.poem")
    path.write_bytes(flipped(path.read_bytes(), -3))
    with pytest.raises(PolicyFileError, match=r"policy\.poem' is damaged: .*checksum.*Copy it again"):
        load_policy(path)


def test_blanks_and_another_order_in_the_header_are_found(tmp_path):
    path = plain().save(tmp_path / "policy.poem")
    content = path.read_bytes()
    assert b'"},"weights"' in content
    path.write_bytes(content.replace(b'"},"weights"', b'"}, "weight"'))
    with pytest.raises(PolicyFileError):
        load_policy(path)
    with pytest.raises(PolicyFileError, match="damaged"):
        load_policy(with_metadata(path := plain().save(path), lambda about: dict(reversed(about.items()))))


@pytest.mark.parametrize(
    "change",
    [
        lambda about: {key: value for key, value in about.items() if key != "checksum"},
        lambda about: about | {"checksum": None},
        lambda about: about | {"checksum": ""},
        lambda about: about | {"checksum": "0" * 64},
        lambda about: about | {"checksum": "\ud800" * 64},
        lambda about: about | {"checksum": about["checksum"].upper()},
        *(lambda about, version=version: about | {"version": version} for version in (0, 1, 2, 3, 4)),
        lambda about: about | {"version": 4, "checksum": None},
    ],
)
@every_policy
def test_a_checksum_cannot_be_dropped_by_accident(make, change, tmp_path):
    with pytest.raises(PolicyFileError, match="damaged"):
        load_policy(with_metadata(make().save(tmp_path / "policy.poem"), change))


@every_policy
def test_files_from_before_the_checksum_are_read(make, tmp_path):
    now = load_policy(make().save(tmp_path / "now.poem"))
    then = load_policy(without_checksum(make().save(tmp_path / "then.poem")))
    assert then.save(tmp_path / "then.poem").read_bytes() == now.save(tmp_path / "now.poem").read_bytes()


def test_a_large_file_of_another_kind_is_not_read(tmp_path):
    path = tmp_path / "log.csv"
    with path.open("wb") as file:
        file.write(b"x,y,loss,propensity\n")
        file.truncate(1 << 43)  # 8 TiB of nothing
    with pytest.raises(PolicyFileError, match="not a whole policy file"):
        load_policy(path)
