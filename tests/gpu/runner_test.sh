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

# Where there is a GPU, a part that goes wrong keeps none of the others from running: here the comparison of one rank, and a fake.
stand_ins=$(mktemp -d)
trap 'rm -rf "$stand_ins"' EXIT
cat >"$stand_ins/program" <<'END'
#!/bin/sh
case "$RINGMASTER_FAKE_NCCL $*" in
  22005*) exit 1 ;;
  ' --ranks 1') echo 'one rank: too slow' && exit 1 ;;
esac
echo "NCCL $RINGMASTER_FAKE_NCCL, $*: a rank of 3 killed"
END
printf '#!/bin/sh\nshift 3\necho "sanitized: $*"\n' >"$stand_ins/compute-sanitizer"
chmod +x "$stand_ins"/*
said=$(PATH=$stand_ins:$PATH RINGMASTER_GPU_PROGRAM=$stand_ins/program RINGMASTER_GPU_BUILD=$stand_ins/build "$here/run" 3 2>&1)
status=$?
for part in 'one rank: too slow' 'NCCL 22703, .*killed' 'NCCL 23203, .*killed' 'NCCL , --ranks 3: a rank of 3 killed' 'sanitized: '; do
  grep -q "$part" <<<"$said" || { echo "$said" && echo "after a bad verdict '$part' did not come" && exit 1; }
done
[ $status -eq 1 ] || { echo "two bad verdicts made the exit status $status" && exit 1; }
