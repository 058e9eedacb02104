"""The commands, one per file: its name, its arguments, and what it does.

Nothing heavy is imported before a command runs, so that ``poem --help`` is there at once.
"""

from poem.commands import (
    convert_log,
    evaluate_policy,
    inspect_log,
    make_report,
    pack_shards,
    predict_outputs,
    reproduce_paper,
    run_demo,
    simulate_log,
    train_policy,
    watch_log,
)

COMMANDS = (
    inspect_log,
    train_policy,
    evaluate_policy,
    watch_log,
    predict_outputs,
    make_report,
    convert_log,
    pack_shards,
    simulate_log,
    run_demo,
    reproduce_paper,
)
