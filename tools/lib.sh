# SPDX-License-Identifier: Apache-2.0
# What tools/demo and tools/test share; sourced with the repository root as the working directory.
# shellcheck shell=bash

say() { printf '\n==> %s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# install_packages LIST...: makes sure that every package of the lists is there, asking apt only for missing ones.
install_packages() {
  local missing=() package
  while read -r package; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done < <(cat "$@" | grep -v "^#" | sort -u)
  if [ ${#missing[@]} -eq 0 ]; then
    say "all needed packages are installed"
    return
  fi
  [ "$(id -u)" -eq 0 ] || die "run as root: ${#missing[@]} packages must be installed (${missing[*]})"
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"; } \
      </dev/null >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "apt-get failed; the whole log is $log"
  fi
  rm -f "$log"
}

# lack_of_native [CGROUP_ROOT [RUN]]: what this host lacks for a demonstration on it; nothing where it has all.
lack_of_native() {
  local root=${1:-/sys/fs/cgroup} run=${2:-/run}
  [ -d "$run/systemd/system" ] || { echo "systemd does not run here" && return; }
  grep -qw cpuset "$root/cgroup.controllers" 2>/dev/null || { echo "cgroup v2 has no cpuset controller here" && return; }
  [ "$(nproc)" -ge 4 ] || echo "it has fewer than four vCPUs"
}

# risk_of_native [CGROUP_ROOT]: why a demonstration on this host would change what others use; nothing where it would not.
risk_of_native() {
  local root=${1:-/sys/fs/cgroup} pods
  if command -v berthd >/dev/null; then
    echo "berth is installed here: its files would be replaced, and its package would not know"
    return
  fi
  for pods in "$root"/kubepods "$root"/kubepods.slice "$root"/kubelet.slice; do
    [ -d "$pods" ] || continue
    echo "pods of Kubernetes run here: berth would confine them, and may end some of them"
    return
  done
}

# build DIR [MESON OPTION...] [-- TARGET...]: configures once, compiles what changed. The default is -O1 without debug
# information, which compiles in three quarters of the time of -O3. With CI=true warnings are errors.
build() {
  local dir=$1 options=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
  [ $# -eq 0 ] || shift
  use_compiler_cache
  if [ ! -f "$dir/build.ninja" ]; then
    [ "${CI:-}" != true ] || options+=(-Dwerror=true)
    meson setup "$dir" --buildtype=release -Doptimization=1 "${options[@]}" >"$dir.log" 2>&1 || {
      tail -n 20 "$dir.log" >&2
      die "meson setup failed; the whole log is $dir.log"
    }
  fi
  ninja -C "$dir" --quiet "$@"
}

# clang writes the header's path into a precompiled header, and so fails where another checkout made it. Each
# checkout that compiles with clang therefore has a part of the cache for itself.
use_own_cache() { export CCACHE_NAMESPACE=$PWD; }

# cached COMPILER: the compiler, behind ccache where that is installed: meson puts it before the default compiler alone.
cached() { if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi; }

# Where ccache is installed, meson uses it. Its files lie beside all else that is slow to make, and fit another checkout.
use_compiler_cache() {
  [ -n "${CCACHE_DIR:-}" ] || [ "$(id -u)" -ne 0 ] || export CCACHE_DIR=${BERTH_CACHE:-/var/cache/berth}/ccache
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}
  # Without these ccache takes no object that is compiled with a precompiled header.
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
  # Debug information names the build directory, by which ccache would tell checkouts apart.
  export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
}

# build_sanitized [TARGET...]: compiles with clang for AddressSanitizer, UBSan and libFuzzer in build-asan, which unit tests and fuzz targets
# share. Without optimisation and with the lines of functions alone, it compiles in half the time.
build_sanitized() {
  use_own_cache
  CXX=$(cached clang++) build build-asan -Db_sanitize=address,undefined -Doptimization=0 -Db_lundef=false \
    -Dcpp_args='-gline-tables-only -fsanitize=fuzzer-no-link -fno-sanitize-recover=all' -- "$@"
}

# export_sources DIR: copies the tree's files into DIR, without what a build left among them, and prints a hash of them.
export_sources() {
  rm -rf "$1"
  mkdir -p "$1"
  git ls-files -z --cached --others --exclude-standard | xargs -0 tar -c --ignore-failed-read | tar -x -C "$1"
  # Neither times nor owners change a package.
  tar -c -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX . | sha256sum | cut -d ' ' -f 1
}

# build_packages DIR COMMAND...: copies the sources to DIR/berth, where COMMAND makes Debian packages of them in DIR. Packages of
# exactly these sources stay as they are. Prints the packages' names, or the end of the log.
build_packages() {
  local dir=$1 hash
  shift
  mkdir -p "$dir"
  hash=$(export_sources "$dir/sources")
  if [ "$(cat "$dir/sources.sha256" 2>/dev/null)" = "$hash" ]; then
    rm -rf "$dir/sources"
  else
    rm -rf "$dir/berth" "$dir/sources.sha256" "$dir"/*.deb "$dir"/*.buildinfo "$dir"/*.changes
    mv "$dir/sources" "$dir/berth"
    "$@" >"$dir/build.log" 2>&1 || {
      tail -n 40 "$dir/build.log"
      echo "the build failed; the whole log is $dir/build.log"
      return 1
    }
    printf '%s\n' "$hash" >"$dir/sources.sha256"
  fi
  printf '%s\n' "$dir"/*.deb
}

# install_staging DIR STAGING: installs what was built in DIR below the directory STAGING, as a package would.
install_staging() {
  rm -rf "$2"
  DESTDIR=$(realpath -m "$2") meson install -C "$1" --no-rebuild --quiet --strip
}
