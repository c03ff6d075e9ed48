#!/usr/bin/env bash
# Runs `make demo && make test` in a bare Debian, on a copy of the last commit. debootstrap makes the root file system,
# with only the packages that README names. Needs root and debootstrap.
#   SUITE=trixie    the Debian release (default: stable)
#   MIRROR=URL      the server of its packages
#   BARE=DIR        the folder that keeps the base system for the next run (default: /var/tmp/relaylang-bare)
#   RUN='make x'    a command instead of the two
#   PACKAGES='...'  the packages (default: README's list)
# The system also gets the test data (RELAY_SHARED), and the certificates and name servers of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${SUITE:-stable}
mirror=${MIRROR:-http://deb.debian.org/debian}
keep=${BARE:-/var/tmp/relaylang-bare}
run=${RUN:-make demo && make test}
packages=${PACKAGES:-python3 python3-venv make gcc libc6-dev}
shared=${RELAY_SHARED:-$(cd .. && pwd)/shared}

say() { printf 'bare: %s\n' "$*" >&2; }
[ "$(id -u)" = 0 ] || { say "this needs root (chroot, mount)"; exit 1; }
command -v debootstrap >/dev/null || { say "this needs debootstrap: apt-get install debootstrap"; exit 1; }
git diff --quiet HEAD || say "the copy omits uncommitted changes: it is that of $(git rev-parse --short HEAD)"

if [ -z "${RELAYLANG_BARE_INSIDE:-}" ]; then
  # a separate mount namespace: the mounts below go when this script ends, even by an error
  export RELAYLANG_BARE_INSIDE=1
  exec unshare --mount "$BASH" "$0" "$@"
fi

base=$keep/$suite
if [ ! -e "$base/.complete" ]; then
  say "making the base system of Debian $suite in $base"
  rm -rf "$base"
  mkdir -p "$base"
  debootstrap --variant=minbase "$suite" "$base" "$mirror" >"$keep/$suite.log" 2>&1 ||
    { tail -20 "$keep/$suite.log" >&2; exit 1; }
  touch "$base/.complete"
fi

root=$(mktemp -d "$keep/run.XXXXXX")
trap 'umount --recursive --lazy "$root/proc" "$root/dev" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
cp -a "$base/." "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"

inside=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
if [ -e "${PIP_CERT:-}" ]; then
  install -D -m 644 "$PIP_CERT" "$root/etc/pip-certificates.crt"
  inside+=(PIP_CERT=/etc/pip-certificates.crt)
fi
say "installing $packages"
chroot "$root" "${inside[@]}" sh -c "apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages" \
  >"$keep/$suite.log" 2>&1 || { tail -20 "$keep/$suite.log" >&2; exit 1; }

mkdir -p "$root/root/work"
git clone --quiet --no-hardlinks . "$root/root/work/relaylang" 2>/dev/null ||
  git clone --quiet --no-hardlinks "file://$(pwd)" "$root/root/work/relaylang"
[ ! -d "$shared" ] || cp -a "$shared/." "$root/root/work/shared"
say "in Debian $(cat "$root/etc/debian_version"), $(chroot "$root" python3 --version), $(chroot "$root" gcc -dumpversion) as gcc: $run"
log=$keep/run.log
status=0
start=$(date +%s)
chroot "$root" "${inside[@]}" sh -c "cd /root/work/relaylang && $run" >"$log" 2>&1 </dev/null || status=$?
tail -n "${LINES_SHOWN:-25}" "$log"
say "exit status $status after $(($(date +%s) - start)) s; everything printed is in $log"
exit $status
