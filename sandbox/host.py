"""What the host looks like: the facts a plan needs, read once per launch and in a fraction of a millisecond.

Reads names and links only, never what is in the work tree's files (`worktree.look` does that, checked). Its time does not depend on the
size of the tree.
"""

import os
import stat

from amem.errors import SandboxError
from amem.sandbox import calls, privileges, stage
from amem.sandbox.ids import OUTSIDE_ID
from amem.sandbox.init import Context
from amem.sandbox.plan import DEVICES, MADE_ETC, READ_ONLY, HostFacts
from amem.sandbox.spec import SandboxSpec, is_below
from amem.sandbox.surroundings import check_umask, shell
from amem.sandbox.worktree import look

_ROOTS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_EXTRA_ROOTS = ("/nix/store", "/nix/var/nix/profiles", "/gnu/store", "/run/current-system")
_VAR = (
    "/var/cache/fontconfig",
    "/var/cache/man",
    "/var/lib/dpkg",
    "/var/lib/gems",
    "/var/lib/ghc",
    "/var/lib/ghostscript",
    "/var/lib/rpm",
    "/var/lib/texmf",
)
"""Where a distribution keeps what a program below /usr cannot do without: package databases, TeX's formats, GHC's libraries."""
_ETC = frozenset(
    {
        "ImageMagick-6",
        "ImageMagick-7",
        "OpenCL",
        "alternatives",
        "ant",
        "ca-certificates",
        "crypto-policies",
        "debian_version",
        "dotnet",
        "dpkg",
        "fonts",
        "ghostscript",
        "glvnd",
        "groff",
        "groovy",
        "inputrc",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "libreoffice",
        "locale.alias",
        "locale.conf",
        "localtime",
        "magic",
        "magic.mime",
        "manpath.config",
        "mime.types",
        "mono",
        "ocamlfind.conf",
        "os-release",
        "perl",
        "php.d",
        "php.ini",
        "protocols",
        "redhat-release",
        "services",
        "sgml",
        "static",
        "terminfo",
        "texmf",
        "timezone",
        "vim",
        "vulkan",
        "xml",
        "zoneinfo",
    }
)
"""Names of /etc that programs need and that hold no secret. What can hold a token (npmrc, wgetrc, gitconfig, environment) is not here."""
_ETC_STARTS = ("python3", "java-")
_ETC_BELOW = (
    "chromium.d/README",
    "chromium.d/default-flags",
    "emacs/site-start.d",
    "maven/logging",
    "maven/m2.conf",
    "php/conf.d",
    "php/php.ini",
    "R/Makeconf",
    "R/Renviron",
    "R/ldpaths",
    "R/repositories",
    "ssl/certs",
    "ssl/ca-bundle.pem",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
    "pki/ca-trust",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/java",
)
"""Parts of folders whose other parts hold keys."""


def facts(spec: SandboxSpec, machine: HostFacts | None = None, *, tried: bool = True) -> HostFacts:
    """Read the facts for this spec. Raises amem.errors.SandboxError when the work tree's `.git` is a link, a path is missing, or no file
    made here could be used by who made it.

    `machine`: what `of_machine` found just now. Unless `tried`, trees that root has to show under another id are said to be such as can be.
    """
    check_umask()
    tree = look(spec.workdir)
    if machine is None or machine.programs != (spec.image or ""):
        machine = of_machine(spec.image or "")
    owners = _owners(spec, tree.common) if machine.user == 0 else None
    return machine._replace(tree=tree, idmap_owners=owners if owners is None or not tried or can_idmap(owners) else None)


def of_machine(programs: str = "") -> HostFacts:
    """What is the same for every spec that shows these programs: the machine's own, or those of an unpacked image."""
    return HostFacts(
        user=os.geteuid(),
        group=os.getegid(),
        machine=os.uname().machine,
        root_links=tuple((path, _link(programs + path)) for path in _ROOTS if os.path.lexists(programs + path)),
        etc=_etc_of_image(programs) if programs else _etc(),
        devices=tuple(name for name in DEVICES if os.path.exists(f"/dev/{name}")),
        extra_roots=tuple(path for path in (*(() if programs else _EXTRA_ROOTS), *_VAR) if os.path.isdir(programs + path)),
        programs=programs,
        shell=shell(programs),
        landlock_abi=privileges.landlock_abi(),
        scratch=next(path for path in ("/tmp", "/run", "/mnt", "/var") if os.path.isdir(path)),
    )


def _link(path: str) -> str | None:
    return os.readlink(path) if os.path.islink(path) else None


def _below(etc: str) -> list[str]:
    """The parts of folders that this /etc may have; Debian has a folder for each version of PHP."""
    versions = os.listdir(f"{etc}/php") if os.path.isdir(f"{etc}/php") else []
    return [*_ETC_BELOW, *(f"php/{version}/{part}" for version in versions for part in ("cli", "mods-available"))]


def _etc() -> tuple[tuple[str, str | None], ...]:
    names = [name for name in os.listdir("/etc") if (name in _ETC or name.startswith(_ETC_STARTS)) and name not in MADE_ETC]
    names += [name for name in _below("/etc") if os.path.exists(f"/etc/{name}")]
    return tuple((name, _link_inside(f"/etc/{name}")) for name in sorted(names) if os.path.exists(f"/etc/{name}"))


def _etc_of_image(image: str) -> tuple[tuple[str, str | None], ...]:
    """The same of an unpacked image. Its links are followed within it; one that leads to what is not shown whole is left out."""
    names = [name for name in os.listdir(f"{image}/etc") if (name in _ETC or name.startswith(_ETC_STARTS)) and name not in MADE_ETC]
    found: list[tuple[str, str | None]] = []
    for name in sorted((*names, *_below(f"{image}/etc"))):
        end = resolved(image, f"/etc/{name}")
        if end is not None and is_below(end, "/usr"):
            found.append((name, end))
        elif end == f"/etc/{name}":
            found.append((name, None))
    return tuple(found)


def resolved(image: str, path: str) -> str | None:
    """What a path of an unpacked image leads to, as it would inside; None where there is nothing."""
    try:
        found = calls.real_beneath(image, path, calls.RESOLVE_IN_ROOT)
    except OSError:
        return None
    return found.removeprefix(image) if found.startswith(f"{image}/") else None


def _link_inside(path: str) -> str | None:
    """The link to repeat inside, or None to bind what it leads to: only a link into what is shown whole can be repeated."""
    if not os.path.islink(path):
        return None
    end = os.path.realpath(path)
    return end if any(is_below(end, root) for root in ("/usr", "/nix/store", "/gnu/store")) else None


def _owners(spec: SandboxSpec, common: str | None) -> tuple[tuple[str, int, int], ...]:
    """Whom root's private trees belong to, so that each is shown as the inside user's.

    Programs stay as they are: everybody may read them.
    """
    own = [path for path in (spec.workdir, spec.home, spec.memory_dir, common) if path is not None]
    own += [bind.source for bind in spec.binds if bind.writable]
    found = []
    for source in dict.fromkeys((*own, *(bind.source for bind in spec.binds))):
        try:
            about = os.stat(source)
        except OSError as error:
            raise SandboxError("take", f"{source}: {error.strerror}", hint=None) from error
        if source in own or not about.st_mode & stat.S_IROTH:
            found.append((source, about.st_uid, about.st_gid))
    return tuple(found)


def can_idmap(owners: tuple[tuple[str, int, int], ...]) -> bool:
    """Try it, in a child: whether a mount can be idmapped depends on the file system of everything mounted below it as well."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            context = Context()
            for source, owner, group in owners:
                stage.idmap(context, source, source, READ_ONLY, False, owner, group, OUTSIDE_ID)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0
