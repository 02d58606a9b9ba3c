"""The command lines for WSL containers, as whole values: nobody has run them where WSL has containers."""

from amem.sandbox import wslc
from amem.sandbox.spec import Bind, SandboxSpec

SPEC = SandboxSpec(
    argv=("/opt/memory/memory", "relay", "7431", "/run/amem/egress.sock", "claude", "-p", "hi"),
    env=(("AMEM_TOKEN", "tok"), ("TERM", "dumb")),
    workdir="/work", cwd="/work/sub", home="/state/home", port=7431, binds=(Bind("/ro", "/ro"), Bind("/rw", "/rw", True)),
)  # fmt: skip


def test_the_harness_has_no_network_and_no_value_of_its_environment_in_an_argument() -> None:
    assert wslc.harness("ses-1", "amem-harness", SPEC) == (
        "wslc", "run", "--rm", "--name", "amem-ses-1", "--network", "none", "--user", "1000", "--workdir", "/work/sub",
        "--volume", "amem-ses-1:/run/amem:ro", "--volume", "/state/home:/home/agent", "--volume", "/work:/work",
        "--volume", "/ro:/ro:ro", "--volume", "/rw:/rw", "--env", "AMEM_TOKEN", "--env", "TERM", "amem-harness",
        "/opt/memory/memory", "relay", "7431", "/run/amem/egress.sock", "claude", "-p", "hi",
    )  # fmt: skip
    assert wslc.harness("ses-1", "i", SPEC._replace(interactive=True))[:5] == ("wslc", "run", "--rm", "--interactive", "--tty")


def test_the_egress_has_record_logins_and_keys_by_name() -> None:
    assert wslc.egress("ses-1", "amem-harness", "/root-of-mine", "/home/me", ("OPENAI_API_KEY",), ("amem", "version")) == (
        "wslc", "run", "--rm", "--detach", "--name", "amem-ses-1-egress", "--volume", "amem-ses-1:/run/amem",
        "--volume", "/root-of-mine:/amem", "--volume", "/home/me/.claude:/root/.claude:ro", "--volume", "/home/me/.codex:/root/.codex:ro",
        "--volume", "/home/me/.gemini:/root/.gemini:ro", "--env", "OPENAI_API_KEY", "amem-harness", "amem", "version",
    )  # fmt: skip


def test_what_is_made_is_removed() -> None:
    assert wslc.before("ses-1") == (("wslc", "volume", "create", "amem-ses-1"),)
    assert wslc.after("ses-1") == (("wslc", "remove", "-f", "amem-ses-1", "amem-ses-1-egress"), ("wslc", "volume", "remove", "amem-ses-1"))
