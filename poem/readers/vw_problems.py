"""What can be wrong with Vowpal Wabbit's text: numbers for the kernels, and what to say about it."""

from poem.errors import ReadError

MOST_CANDIDATES = 10_000

FINE = 0

# Labels.
NO_LABEL = 1
NO_COST = 2
SEVERAL_COSTS = 3
BAD_ACTION = 4
NO_PROBABILITY = 5
TOO_MANY_PARTS = 6
BAD_COST = 7
BAD_PROBABILITY = 8

# Features.
BAD_VALUE = 9
NO_VALUE = 10
BAD_WEIGHT = 11
NO_NAMESPACE = 12

# Lines and blocks.
SHARED_AMONG_LINES = 13
LINE_AMONG_BLOCKS = 14
TWO_FORMS = 15
ONLY_BLANKS = 16
NO_BAR = 17
LABEL_TOUCHES_BAR = 18
SHARED_HAS_LABEL = 19
SHARED_NOT_FIRST = 20
NO_ACTIONS = 21
TOO_MANY_ACTIONS = 22
SEVERAL_LABELS = 23
SECOND_COST = 24

# Slots.
SLATES = 25
BAD_KEYWORD = 26
HAS_LABEL = 27
NO_SHARED = 28
ACTION_AFTER_SLOT = 29
NO_SLOTS = 30
TOO_MANY_WORDS = 31
BAD_INDEX = 32
NOT_AVAILABLE = 33
NONE_LEFT = 34
BAD_PAIR = 35
TWICE = 36

_TEXTS = {
    NO_LABEL: "there is no label in {token}. Write 'action:cost:probability | features' with a space before the bar (a "
    "word that touches the bar or the end of the line is a tag, and what stands before a tab is not read). If these "
    "are blocks with one line per action, start the file with a block that has a 'shared |' line.",
    NO_COST: "none of the actions in {token} has a cost. Write the chosen one as action:cost:probability.",
    SEVERAL_COSTS: "{token} is a second action with a cost. A logged decision has one: write the other actions without "
    "cost.",
    BAD_ACTION: "{token} is not an action. Actions are whole numbers up to 2147483647, from 1 where each line is a "
    "decision: number them, leave out comments, and start a tag with a quote (').",
    NO_PROBABILITY: "{token} has no probability. Write action:cost:probability, with the probability that the action "
    "had when it was chosen.",
    TOO_MANY_PARTS: "{token} has more than three parts. Write action:cost:probability.",
    BAD_COST: "the cost {token} is not a finite number. Write it like 1, -0.5 or 1e-3.",
    BAD_PROBABILITY: "the probability {token} is not a number above 0 and at most 1. Write the probability with which "
    "the action was chosen.",
    BAD_VALUE: "the value {token} of a feature starts like a number but is none that is finite. Write it like 1, -0.5 "
    "or 1e-3; a category must not start with a digit, 'inf' or 'nan', nor be a lone 'e', '-' or '.'.",
    NO_VALUE: "the feature {token} ends in a colon without a value. Write feature:value, or the feature alone for 1.",
    BAD_WEIGHT: "the weight of the namespace {token} is not a finite number. Write |namespace:weight, like |user:0.5.",
    NO_NAMESPACE: "{token} has a weight but no name. Write |namespace:weight, or '| ' for the default namespace.",
    SHARED_AMONG_LINES: "this is the multi-line form ({token}), but the file starts with decisions of one line each. "
    "Write the two forms to files of their own.",
    LINE_AMONG_BLOCKS: "{token} stands alone, like a decision in one line, but the file starts with blocks of one line "
    "per action. Write the two forms to files of their own; if this is a block with one action, give it the number 0.",
    TWO_FORMS: "{token} is of another form than the lines before. Write blocks with slots (ccb shared, ccb action, "
    "ccb slot) and blocks without (shared, actions) to files of their own.",
    ONLY_BLANKS: "the line holds only blanks, which Vowpal Wabbit takes for an action without features. Remove the "
    "blanks to end the block, or write '|' for such an action.",
    NO_BAR: "there is no bar in {token}. Write '| features' for each action, '|' if it has none, and an empty line "
    "between two decisions.",
    LABEL_TOUCHES_BAR: "{token} touches the bar, so Vowpal Wabbit takes it for a tag. Write a space before the bar, or "
    "start a tag with a quote (').",
    SHARED_HAS_LABEL: "{token} has more words before the bar than 'shared'. Leave them out, and write the cost on the "
    "line of the chosen action.",
    SHARED_NOT_FIRST: "{token} is not the first line of its block. Write an empty line before each decision, and one "
    "shared line at most.",
    NO_ACTIONS: "{token} has no actions: the file or the block breaks off after it. Write one line per action below "
    "it, or leave it out.",
    TOO_MANY_ACTIONS: f"the decision that starts with {{token}} has more than {MOST_CANDIDATES:,} actions. Write an "
    "empty line after each decision, or log fewer actions.",
    SEVERAL_LABELS: "{token} has several labels. In a block each line is one action: write cost:probability after a "
    "single number on the line of the chosen one, and nothing on the others.",
    SECOND_COST: "{token} is a second cost in one block. A logged decision has one: write nothing before the bar on "
    "the lines of other actions, and an empty line between two decisions.",
    SLATES: "{token} is a slate, which has one cost for all its slots together. poem needs a cost for each decision: "
    "log a cost per slot (ccb shared, ccb action, ccb slot).",
    BAD_KEYWORD: "{token} is no line of a block with slots. Write 'ccb shared', 'ccb action' or 'ccb slot' first.",
    HAS_LABEL: "{token} has more words before the bar than 'ccb shared' or 'ccb action'. Write costs on the slots.",
    NO_SHARED: "{token} is not preceded by 'ccb shared' in its block. Write that line first, 'ccb shared |' if there "
    "are no shared features.",
    ACTION_AFTER_SLOT: "{token} stands below a slot of its block. Write all actions before the first slot, and an "
    "empty line between two requests.",
    NO_SLOTS: "the block that starts with {token} has no slots: the file or the block breaks off. Write one line "
    "'ccb slot action:cost:probability | features' per slot.",
    TOO_MANY_WORDS: "{token} has too many words. Write 'ccb slot action:cost:probability', and after a space the list "
    "of actions that the slot may take, if not all (0,2,3).",
    BAD_INDEX: "{token} is not the index of an action of this block. Actions of slots are counted from 0.",
    NOT_AVAILABLE: "{token} is about an action that is not available here: an earlier slot has taken it, or the slot's "
    "list of actions leaves it out. Fix the logging, or leave the request out.",
    NONE_LEFT: "no action is left for {token}: earlier slots have taken them. Write fewer slots or more actions.",
    BAD_PAIR: "{token} is not action:probability, with a probability from 0 to 1. After the chosen action, list the "
    "others like 1:0.25,2:0.5.",
    TWICE: "{token} lists an action twice. List each once.",
}


def failed(problem: int, start: int, stop: int, content: bytes, name: str) -> ReadError:
    """Return the error about a span of the file."""
    token = content[start : min(stop, start + 60)].decode("utf-8", "ignore") + ("…" if stop - start > 60 else "")
    return ReadError(f"{name}, line {line_number(content, start)}: {_TEXTS[problem].format(token=repr(token))}")


def line_number(content: bytes, position: int) -> int:
    """Return the number of the line at a position, counted from 1."""
    return content.count(b"\n", 0, position) + 1
