# Shared by hack/quickstart and hack/test: messages, packages, builds. Source it; it runs nothing by itself.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

export LC_ALL=C.UTF-8
CACHE=${RINGMASTER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/ringmaster}
# In a fresh checkout every file is younger than a second: ccache would take it for one that changes while it is compiled. A precompiled header
# that is compiled anew for that reason has other bytes, and then nothing that uses it is found in the cache.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
export CCACHE_DIR=$CACHE/ccache CCACHE_MAXSIZE=5G CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
started=$SECONDS

say() { printf '\n\033[1m[%3ds] %s\033[0m\n' $((SECONDS - started)) "$*"; }
lacks() { # the machine lacks something: say what to type, exit 3
  printf '\n%s\n' "$*" >&2
  exit 3
}

mkdir -p "$CACHE" 2>/dev/null || lacks "The folder $CACHE can't be made. Name another one:  export RINGMASTER_CACHE=DIR"

# A path that somebody has typed means the folder that they are in.
of_caller() { case $1 in /*) echo "$1" ;; *) echo "$called_from/$1" ;; esac; }

packages() { # names of the packages in the given sets
  local set
  for set in "$@"; do awk -v s="$set" '$1 == s {print $2}' hack/lib/packages; done
}

install_packages() {
  local missing
  missing=$(packages "$@" | while read -r p; do
    # A line for each architecture.
    dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || echo "$p"
  done | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  local command="apt-get install -y --no-install-recommends $missing"
  command -v apt-get >/dev/null || lacks "This is not Debian. Install what these Debian packages hold: $missing"
  [ "$(id -u)" = 0 ] || lacks "Some packages are missing and only root may install them. Type:

  sudo apt-get update && sudo $command

and start again."
  say "Installing packages: $missing"
  apt-get update -qq || lacks "apt-get update failed: is the network there?"
  DEBIAN_FRONTEND=noninteractive $command >"$CACHE/apt.log" 2>&1 || {
    tail -n 20 "$CACHE/apt.log" >&2
    lacks "Installing failed (the end of $CACHE/apt.log stands above). Type:  $command"
  }
}

build() { # build PRESET [cmake options ...] [-- targets ...]
  local preset=$1 options=() targets=() log
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  [ $# -eq 0 ] || { shift; targets=(--target "$@"); }
  log=build/$preset.log
  mkdir -p build "$CCACHE_DIR"
  cmake --preset "$preset" "${options[@]}" >"$log" 2>&1 || { tail -n 30 "$log" >&2; lacks "cmake failed: $log"; }
  if [ -t 1 ]; then
    # pipefail: it fails if the build does.
    if ! NINJA_STATUS='  [%f/%t] ' cmake --build "build/$preset" -j "$(nproc)" "${targets[@]}" | tee -a "$log" |
      while IFS= read -r line; do
        case $line in '  ['*) printf '\r\033[K%.100s' "$line" ;; *) printf '\n%s' "$line" ;; esac
      done; then
      printf '\nbuild failed: %s\n' "$log" >&2
      exit 1
    fi
    echo
  elif ! cmake --build "build/$preset" -j "$(nproc)" "${targets[@]}" >>"$log" 2>&1; then
    say_errors "$log"
    echo "build failed: $log" >&2
    exit 1
  fi
}

# What a build's log says of errors; its end, if that is nothing.
say_errors() { # say_errors LOG
  local found
  found=$(grep -E -A 12 'error|FAILED' "$1" | sed -n 1,60p || true)
  if [ -n "$found" ]; then printf '%s\n' "$found" >&2; else tail -n 20 "$1" >&2 || true; fi
}

# A python3 that can import what the examples need: Debian's packages belong to /usr/bin/python3.
use_python_with_torch() {
  local p
  for p in "$(command -v python3 || true)" /usr/bin/python3; do
    [ -n "$p" ] && "$p" -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("torch") and u.find_spec("sklearn")))' 2>/dev/null || continue
    # Whoever goes on by hand needs it as well, if another python3 comes first for them.
    [ "$p" = "$(command -v python3)" ] || python_first=$(dirname "$p")
    PATH=$(dirname "$p"):$PATH
    export PATH
    return 0
  done
  lacks "No python3 that can import torch and sklearn was found. Type:  apt-get install -y $(packages run | tr '\n' ' ')"
}
