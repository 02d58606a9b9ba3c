"""Every command: where it lives, what it is for, and under which heading `amem --help` lists it. Imports nothing."""


class Command:
    """A row of the table. `attribute` is a click command or group in `module`."""

    __slots__ = ("attribute", "group", "module", "summary")

    def __init__(self, module: str, attribute: str, summary: str, group: str) -> None:
        self.module = module
        self.attribute = attribute
        self.summary = summary
        self.group = group


COMMANDS = {
    "init": Command("amem.commands.init", "command", "make a root: record, grants, prices", "Set up"),
    "doctor": Command("amem.commands.doctor", "command", "check what a launch needs, and say what to do", "Set up"),
    "completion": Command("amem.commands.completion", "command", "print shell completion for bash, zsh or fish", "Set up"),
    "image": Command("amem.commands.image", "group", "harness images: list, unpack, remove", "Set up"),
    "launch": Command("amem.commands.launch_line", "command", "run a harness in the sandbox", "Sessions"),
    "serve": Command("amem.commands.serve", "command", "the memory server on stdio, for an unconfined harness", "Sessions"),
    "session": Command("amem.commands.session", "group", "list, show and stop sessions", "Sessions"),
    "instructions": Command("amem.commands.instructions", "group", "the files of a tree that a harness obeys: list, approve", "Sessions"),
    "usage": Command("amem.commands.usage", "command", "tokens by destination and model", "Sessions"),
    "context": Command("amem.commands.context", "group", "what model calls sent and got: list, show", "Sessions"),
    "transcript": Command("amem.commands.transcript", "group", "harnesses' own accounts: list, show, sweep, erase", "Sessions"),
    "savings": Command("amem.commands.savings", "command", "what the memory saves, measured on this root", "Sessions"),
    "models": Command("amem.commands.models", "command", "the models that a destination offers", "Sessions"),
    "cost": Command("amem.commands.cost", "command", "dollars by session, day and completed task", "Sessions"),
    "work": Command("amem.commands.work", "command", "run a harness on the next task of the board", "Work"),
    "task": Command("amem.commands.task", "group", "the ledger: create, admit, claim, complete, why, timeline …", "Work"),
    "notice": Command("amem.commands.notice", "group", "be told when a task needs a person", "Work"),
    "t0": Command("amem.commands.memory", "t0", "the opening page of a session", "Memory"),
    "search": Command("amem.commands.memory", "search", "search the record", "Memory"),
    "get": Command("amem.commands.memory", "get", "read an entry", "Memory"),
    "list": Command("amem.commands.memory", "list_", "list entries", "Memory"),
    "write": Command("amem.commands.memory", "write", "write an entry", "Memory"),
    "handoff": Command("amem.commands.handoff", "group", "what sessions left for the next one", "Memory"),
    "reindex": Command("amem.commands.reindex", "command", "rebuild the search index from the record", "Memory"),
    "policy": Command("amem.commands.policy", "group", "the rules in force: show them, ask them", "Perimeter"),
    "decisions": Command("amem.commands.decisions", "group", "what was decided, by which rule: list, show, stats", "Perimeter"),
    "promote": Command("amem.commands.promote", "promote", "mark an entry curated, or propose it as verified", "Perimeter"),
    "approve": Command("amem.commands.promote", "approve", "land a proposal of somebody else's", "Perimeter"),
    "decline": Command("amem.commands.promote", "decline", "say no to a proposal", "Perimeter"),
    "promotions": Command("amem.commands.promote", "promotions", "who promoted an entry, and why", "Perimeter"),
    "taint": Command("amem.commands.reach", "taint", "who read an entry, and what they wrote after", "Perimeter"),
    "why": Command("amem.commands.reach", "why", "why an entry is, or is not, served to somebody", "Perimeter"),
    "contain": Command("amem.commands.contain", "command", "take an entry and all it reached out of service; undo it", "Perimeter"),
    "demote": Command("amem.commands.reach", "demote", "take an entry out of service, with a tombstone", "Perimeter"),
    "declassify": Command("amem.commands.declassify", "group", "lower the label of an entry, a session or a work tree", "Perimeter"),
    "erase": Command("amem.commands.erase", "command", "erase an entry and every passage of it, with a receipt", "Perimeter"),
    "export": Command("amem.commands.bundle", "export", "write entries into a bundle, up to a label", "Perimeter"),
    "import": Command("amem.commands.bundle", "import_", "take a bundle in, through the gates", "Perimeter"),
    "verify": Command("amem.commands.verify", "command", "whether record and logs are as amem wrote them", "Perimeter"),
    "quarantine": Command("amem.commands.quarantine", "group", "what was held: list, show, release, drop", "Perimeter"),
}

EXAMPLES = """\
  amem init --owner human:asf:you
  amem launch --harness claude --auth key --prompt 'load T0 and summarise'
  amem search import retries --json
  amem usage"""


def overview(version: str) -> str:
    """The text of `amem --help`."""
    width = max(map(len, COMMANDS))
    lines = [
        f"amem {version}: AI coding harnesses in a sandbox, metered egress, one shared memory.",
        "",
        "Usage: amem [--root PATH] [--json] COMMAND [ARGUMENTS]",
    ]
    for group in dict.fromkeys(row.group for row in COMMANDS.values()):
        lines += ["", f"{group}:"]
        lines += [f"  {name:{width}}  {row.summary}" for name, row in COMMANDS.items() if row.group == group]
    lines += [
        "",
        "Everywhere: --root PATH (else AMEM_ROOT, else ~/.amem), --json, --no-color,",
        "--as PRINCIPAL, --version, --help. After a bare -- all belongs to the harness.",
        "`amem COMMAND --help` has more.",
        "",
        "Examples:",
        EXAMPLES,
    ]
    return "\n".join(lines)
