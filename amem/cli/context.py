"""What a command gets: the global flags, the environment, and the root's settings, each loaded when first asked for."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

from amem.cli.globals import Globals
from amem.errors import UsageError
from amem.settings import credentials, grants, root
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from amem.memory.session import Memory, Session
    from amem.sandbox.child import Stage


class Context:
    """The composition of one command line."""

    def __init__(self, flags: Globals, environment: Mapping[str, str], stage: "Stage | None" = None) -> None:
        self.flags = flags
        self.environment = environment
        self.stage = stage

    @cached_property
    def where(self) -> root.Root:
        """The root that the flags and the environment name; it need not exist."""
        return root.locate(self.flags.root, self.environment)

    @cached_property
    def root(self) -> root.Root:
        """The same root. Raises UnavailableError when `amem init` never made it."""
        return self.where.existing()

    @cached_property
    def grants(self) -> grants.Grants:
        """The root's grants."""
        return grants.load(self.root.grants)

    @cached_property
    def credentials(self) -> credentials.Credentials:
        """The keys that this command may use."""
        return credentials.load(self.root.credentials, self.environment)

    @cached_property
    def principal(self) -> str:
        """Who acts: the owner, or the person that `--as` names and the calling OS user may be."""
        wanted = self.flags.principal
        if wanted is None or wanted == self.grants.owner:
            return self.grants.owner
        if os_user() not in self.grants.people.get(wanted, ()):
            raise UsageError(
                f"--as {wanted}: {self.root.grants} does not let the user {os_user()!r} act as this person",
                hint=f'add os_users = ["{os_user()}"] under [people."{wanted}"]',
            )
        return wanted

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """The root's domains that the acting person has a grant in. Which others there are is not told."""
        return tuple(domain for domain in self.grants.domains if self.grants.grant(domain, self.principal) is not None)

    def domain(self, asked: str | None) -> str:
        """The domain asked for, or the only one, or the default one. Raises UsageError that names them."""
        known = self.domains
        if asked is None:
            asked = known[0] if len(known) == 1 else self.grants.default_domain
        if asked is None:
            raise UsageError(f"which domain? this root has {', '.join(known)}", hint="add --domain, or default_domain to grants.toml")
        if asked not in known:
            close = root.near(asked, known)
            raise UsageError(f"--domain {asked}: this root has {', '.join(known)}{close}", hint="amem doctor --config")
        return asked

    @cached_property
    def memory(self) -> "Memory":
        """The record with its index and policy, opened for this process."""
        import click

        from amem.memory.session import open_memory

        memory = open_memory(self.root, self.grants)
        click.get_current_context().call_on_close(memory.anchor)
        return memory

    def owner_session(self, domain: str | None) -> "Session":
        """A session of the acting person in a domain."""
        from amem.memory.session import owner_session

        return owner_session(self.memory, self.principal, self.domain(domain))


@contextmanager
def of_command(path: str) -> Iterator[None]:
    """Around a command that runs: what it finds wrong with its arguments is told with the command whose help says what is right."""
    try:
        yield
    except UsageError as error:
        if error.hint is None:  # an empty one: there is nothing to try
            error.hint = f"{path} --help"
        raise
    except UnicodeEncodeError as error:
        raise UsageError("a name or text holds bytes that are not UTF-8: amem keeps text alone", hint=f"{path} --help") from error


def os_user() -> str:
    """The name of the calling OS user."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
