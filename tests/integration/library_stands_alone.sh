#!/usr/bin/env bash
# The collectives library is loaded into processes that bring their own gRPC, protobuf and abseil: what it needs and what it
# exports is compared with allow-lists. usage: library_stands_alone.sh libringmaster.so
set -euo pipefail
library=$1
status=0

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for name in $needed; do
  case $name in
    libstdc++.so.6 | libm.so.6 | libgcc_s.so.1 | libc.so.6 | ld-linux-x86-64.so.2) ;;
    *) echo "needs $name, which is not on the list of what it may need" && status=1 ;;
  esac
done

# The plug-ins for collectives by MPI, which need their MPI besides, but no C++ library.
for plugin in "$(dirname "$library")"/libringmaster_{openmpi,mpich}.so; do
  [ -f "$plugin" ] || continue
  for name in $(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $name in
      libmpi.so.* | libmpich.so.* | libc.so.6) ;;
      *) echo "$plugin needs $name, which is not on the list of what it may need" && status=1 ;;
    esac
  done
  names=$(nm -D --defined-only "$plugin" | awk '{print $3}' | tr '\n' ' ')
  [ "$names" = 'rm_mpi_plugin_get ' ] || { echo "$plugin exports $names, allowed is rm_mpi_plugin_get"; status=1; }
done

exported=$(nm -D --defined-only "$library" | awk '{print $3}' | c++filt)
strangers=$(grep -vE '^(rm_|RINGMASTER|(vtable for |typeinfo for |typeinfo name for )?ringmaster::(Communicator|Endpoint)(::|$))' <<<"$exported" || true)
if [ -n "$strangers" ]; then
  echo "exports names that are not its own:" && head -n 20 <<<"$strangers" && status=1
fi

header=$(dirname "$0")/../../collectives/include/ringmaster/ringmaster.h
declared=$(sed -n 's/^RM_API .*[ *]\(rm_[a-z_0-9]*\)(.*/\1/p' "$header")
[ "$(wc -w <<<"$declared")" -gt 20 ] || { echo "found too few functions in $header"; status=1; }
for name in $declared; do
  grep -qx "$name" <<<"$exported" || { echo "declared in ringmaster.h and not exported: $name"; status=1; }
done
exit $status
