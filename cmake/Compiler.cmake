# Warnings and sanitizers that every target of the project gets.
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -pthread)
add_compile_options(-fPIC)  # for programs too: they share precompiled headers with libraries
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU")
  add_compile_options(-fpch-preprocess)  # lets ccache keep units that use a precompiled header
  # The compiler frees memory of its own only from 1 GiB (KiB are given) on: a tenth less time, up to a third more memory.
  add_compile_options("SHELL:--param ggc-min-heapsize=1048576")
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Werror=thread-safety)  # locks are common/sync/mutex.h
  # With sanitizers a program has a hundred megabytes, and there are a hundred and fifty programs.
  find_program(RINGMASTER_LLD ld.lld-14)
  if(RINGMASTER_LLD)
    add_link_options(-fuse-ld=lld-14)
  endif()
endif()
if(NOT RINGMASTER_SANITIZE)
  # Against memory errors; tests/hardening.sh looks for them in what people run. Sanitizers bring stronger checks of their own.
  include(CheckPIESupported)
  check_pie_supported()
  add_compile_options(-fstack-protector-strong -fstack-clash-protection)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)  # needs optimization
  endif()
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
endif()
if(RINGMASTER_SANITIZE)
  add_compile_options(-fsanitize=${RINGMASTER_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${RINGMASTER_SANITIZE})
endif()
if(RINGMASTER_FUZZ AND RINGMASTER_SANITIZE)  # not in the preset fuzz-coverage, which only runs what is in the corpora
  add_compile_options(-fsanitize=fuzzer-no-link)  # what is fuzzed tells which branches it takes
endif()

# The optimization of what a folder and those below it build for release, where it differs from the preset's -O2. Compiling is mostly
# optimizing: what people wait for once per command takes -O1, which compiles a third faster; what moves tensors takes -O3.
macro(rm_optimize level)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    add_compile_options(${level})
  endif()
endmacro()
