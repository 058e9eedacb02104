"""What the objects and arrays in a line of DSJSON are there for, and what is known of a line."""

from poem.arrays import AnyArray, IntArray
from poem.readers.byte_kernels import byte_kernel
from poem.readers.json_words import QUOTE, UNDERSCORE, begins_with, equals, letters

# What the kernel found wrong; the texts are the reader's.
FINE = 0
NOT_JSON = 1
TOO_DEEP = 2
NOT_OBJECTS = 3
BAD_ITEM = 4
BAD_TEXT = 5
BAD_NUMBER = 6
INNER_LABEL = 7
SLATE = 8
REPEATED = 9
IS_PLAIN = 10  # not wrong: the actions stand beside the label

# Whose a feature is.
SHARED, ACTION, SLOT = 0, 1, 2

# The columns of what is known of a line.
START, STOP, CUT, CUT_STOP, PROBLEM, WRONG, WRONG_STOP, PLAIN, ACTIONS, SLOTS, SLOTS_AT, SLOTS_STOP, LATER = range(13)

# What an object or array is there for. In the last three, members are features.
SKIPPED, TOP, LIST, CONTEXT, UNIT, FEATURES = range(6)
_C, MULTI, _SLOT_LIST, _LABEL = letters("c"), letters("_multi"), letters("_slots"), letters("_label")
TEXT, _SLOT_ID, BLANK = letters("_text"), letters("_slot_id"), letters(" ")


@byte_kernel
def fail(line: IntArray, problem: int, start: int, stop: int) -> None:
    """Note what is wrong with a line, and where."""
    line[PROBLEM], line[WRONG], line[WRONG_STOP] = problem, start, stop


@byte_kernel
def enter(data: AnyArray, line: IntArray, role: int, owner: int, key: int, key_stop: int, at: int) -> int:
    """Note where something begins, and return whose the features in it are."""
    if role == CONTEXT:
        line[CUT] = at
    elif role == LIST:
        if not equals(data, key, key_stop, MULTI):
            line[SLOTS_AT] = at
            return SLOT
        line[ACTIONS] = 0
        if line[PLAIN]:
            line[CUT] = at
        return ACTION
    return owner


@byte_kernel
def close(line: IntArray, role: int, owner: int, at: int) -> int:
    """Note where something ends, and return whose the features after it are."""
    if role == CONTEXT and not line[PLAIN]:
        line[CUT_STOP] = at
    elif role == LIST:
        if owner == SLOT:
            line[SLOTS_STOP] = at
        elif line[PLAIN]:
            line[CUT_STOP] = at
        return SHARED
    return owner


@byte_kernel
def inner_role(
    data: AnyArray, line: IntArray, role: int, in_object: bool, space: int, key: int, key_stop: int, is_object: bool
) -> int:
    """Return what an object or array is there for, by where it stands and by its key."""
    if role == SKIPPED:
        return SKIPPED
    if role == LIST:
        if not is_object:
            fail(line, NOT_OBJECTS, key, key)
        return UNIT
    if role == TOP:
        if equals(data, key, key_stop, MULTI):
            fail(line, IS_PLAIN, key, key_stop)
        if not is_object or not equals(data, key, key_stop, _C):
            return SKIPPED
        if line[CUT] >= 0:
            fail(line, REPEATED, key, key_stop)
        return CONTEXT
    if not in_object:
        if not is_object:
            fail(line, BAD_ITEM, space if space >= 0 else key, key + 1)
        return FEATURES
    if key == key_stop or data[key] != UNDERSCORE:
        return FEATURES
    if role == CONTEXT:
        is_multi = equals(data, key, key_stop, MULTI)
        if is_multi or equals(data, key, key_stop, _SLOT_LIST):
            if is_object:
                fail(line, NOT_OBJECTS, key, key_stop)
            elif (line[ACTIONS] if is_multi else line[SLOTS_AT]) >= 0:
                fail(line, REPEATED, key, key_stop)
            return LIST
    check_special(data, line, role, key, key_stop, key - 1, key - 1)
    return SKIPPED


@byte_kernel
def check_special(data: AnyArray, line: IntArray, role: int, key: int, key_stop: int, begin: int, stop: int) -> None:
    """Find what is wrong with a key that starts with an underscore, in a context or among features."""
    if equals(data, key, key_stop, TEXT):
        if data[begin] != QUOTE or begin < key:
            fail(line, BAD_TEXT, begin, stop)
    elif role == CONTEXT and (equals(data, key, key_stop, MULTI) or equals(data, key, key_stop, _SLOT_LIST)):
        fail(line, NOT_OBJECTS, key, key_stop)
    elif role == UNIT and equals(data, key, key_stop, _SLOT_ID):
        fail(line, SLATE, key, key_stop)
    elif role != FEATURES and not (line[PLAIN] and role == CONTEXT) and begins_with(data, key, key_stop, _LABEL):
        fail(line, INNER_LABEL, key, key_stop)
