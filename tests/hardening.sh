#!/usr/bin/env bash
# Fails where a program or library lacks what cmake/Compiler.cmake asks of compiler and linker against memory errors.
# usage: hardening.sh FILE...
set -euo pipefail
status=0
lacks() { # lacks FILE WHAT
  echo "$(basename "$1"): $2"
  status=1
}
for file in "$@"; do
  headers=$(readelf -hlW "$file") dynamic=$(readelf -dW "$file") symbols=$(readelf -sW "$file")
  grep -q 'Type: *DYN' <<<"$headers" || lacks "$file" 'not position-independent (-pie, -static-pie)'
  grep -q GNU_RELRO <<<"$headers" || lacks "$file" 'no read-only relocations (-z relro)'
  grep -Eq 'BIND_NOW|Flags:.* NOW' <<<"$dynamic" || lacks "$file" 'the table of relocations stays writable (-z now)'
  grep -Eq 'GNU_STACK.* RW ' <<<"$headers" || lacks "$file" 'the stack is executable (-z noexecstack)'
  grep -q __stack_chk_fail <<<"$symbols" || lacks "$file" 'no stack protector (-fstack-protector-strong)'
  grep -q __glibcxx_assert_fail <<<"$symbols" || lacks "$file" 'no checks in containers (_GLIBCXX_ASSERTIONS)'
  # A static program has the checked functions of the C library in any case, so they tell nothing there.
  if grep -q NEEDED <<<"$dynamic"; then
    grep -Eq 'UND __[a-z]+_chk@' <<<"$symbols" || lacks "$file" 'no checked string functions (-D_FORTIFY_SOURCE)'
  fi
done
exit $status
