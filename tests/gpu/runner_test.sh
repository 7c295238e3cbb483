#!/usr/bin/env bash
# tests/gpu/run on this machine: builds by itself, passes on the fake, and then passes on a GPU or says that there is none.
# usage: runner_test.sh BUILD_FOLDER
set -uo pipefail
export RINGMASTER_GPU_BUILD=$1
here=$(dirname "${BASH_SOURCE[0]}")

"$here/run" 9 >/dev/null 2>&1
[ $? -eq 2 ] || { echo 'nine ranks were not refused' && exit 1; }
said=$("$here/run" 3 2>&1)
status=$?
echo "$said"
[ "$(grep -c 'killed.*had the others. result' <<<"$said")" -ge 6 ] || { echo 'not all deaths on the fake were survived' && exit 1; }
case $status in
  0) grep -q 'all is well' <<<"$said" ;;
  77) grep -q '^SKIPPED  no GPU to be used: ' <<<"$said" ;;
  *) false ;;
esac || { echo "the exit status $status is not what was said" && exit 1; }
