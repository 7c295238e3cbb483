#!/usr/bin/env bash
# find_package(ringmaster) and pkg-config work for somebody who has only what `cmake --install` put somewhere.
# usage: installed_package.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" --component collectives >/dev/null
cp -r "$source/examples/cpp_worker" "$work/worker"
cmake -S "$work/worker" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
output=$("$work/build/cpp_worker")
echo "$output"
grep -q '^y = 3.0. x + 1.0. after 400 steps$' <<<"$output" || { echo 'the worker did not fit the line'; exit 1; }

pc=$(dirname "$(find "$work/prefix" -name ringmaster.pc)")
# The .pc file names the prefix it was configured with; a packager's prefix is the real one.
flags=$(PKG_CONFIG_PATH=$pc pkg-config --define-variable=prefix="$work/prefix" --cflags --libs ringmaster)
# shellcheck disable=SC2086
g++ -std=c++17 "$source/examples/cpp_worker/main.cc" -o "$work/by_pkg_config" $flags
LD_LIBRARY_PATH=$(dirname "$pc") "$work/by_pkg_config" | grep -q 'after 400 steps'
