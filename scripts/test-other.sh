#!/bin/sh
# Run tests on another Debian than this machine's: its Python, C library and programs, on this kernel.
#
#   scripts/test-other.sh [SUITE [pytest's arguments]]     # default: trixie tests/attacks/sandbox tests/sandbox
#
# Needs root, for the mounts, and mmdebstrap. The system stays in build/other-SUITE and is made on first use, which takes minutes.
# A suite without releases (sid) is taken though its index has expired.
set -eu
cd "$(dirname "$0")/.."
suite=${1:-trixie}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- tests/attacks/sandbox tests/sandbox
there=build/other-$suite
packages=python3,python3-venv,python3-dev,git,make,gcc,libc6-dev,libcap-dev,tmux,zsh,dash,passwd,ca-certificates,procps,apparmor,bubblewrap

if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap >/dev/null; then
  echo "needs root and mmdebstrap (apt-get install mmdebstrap)" >&2
  exit 1
fi
if [ ! -d "$there" ]; then
  echo "making Debian $suite in $there (once) …" >&2
  mkdir -p build
  rm -rf "$there.part"
  mmdebstrap --variant=minbase --include=$packages --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    "$suite" "$there.part" ${MIRROR:-}
  mkdir "$there.part/src" "$there.part/shared" "$there.part/outer"
  mv "$there.part" "$there"
fi
# What this machine needs to reach the registry of Python packages.
for name in resolv.conf hosts pip.conf ssl/certs/ca-certificates.crt; do
  [ ! -e "/etc/$name" ] || cp -L "/etc/$name" "$there/etc/$name"
done

# pivot_root and no chroot: in a chroot the kernel makes no user namespace.
exec env HERE="$(pwd)" ROOT="$(pwd)/$there" unshare --mount --propagation private sh -euc '
  mount --bind "$ROOT" "$ROOT"
  mount --bind "$HERE" "$ROOT/src"
  [ ! -d "$HERE/../shared" ] || mount --bind "$HERE/../shared" "$ROOT/shared"
  for path in /proc /dev /sys; do mount --rbind $path "$ROOT$path"; done
  cd "$ROOT"
  pivot_root . outer
  umount -l /outer
  cd /src
  home=~root
  exec env -i HOME="$home" PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin LANG=C.UTF-8 TERM=dumb PYTHONDONTWRITEBYTECODE=1 sh -euc '\''
    if ! cmp -s requirements/dev.txt /venv/ready; then
      echo "installing pinned packages for $(python3 -V) (once) …" >&2
      python3 -m venv /venv
      /venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
      cp requirements/dev.txt /venv/ready
    fi
    exec /venv/bin/python -m pytest -q -p no:cacheprovider -m "not real_harness and not real" "$@"
  '\'' sh "$@"
' sh "$@"
