# One aliased target for each folder. The DEPS lists are the architecture: read them to see which folder may know which.
#
#   rm_library(ringmaster::planner SRCS planner.cc DEPS ringmaster::api)
#   rm_test(planner_test SRCS planner_test.cc DEPS ringmaster::planner)
#   rm_binary(ringmaster-sidecar SRCS main.cc DEPS ringmaster::sidecar_app)

# Most tests need no speed of their own, and compile in half the time without optimization (with sanitizers, which add code to what isn't
# optimized away, in less). What makes the C library check more (Compiler.cmake) needs optimization. A folder whose tests compute, element
# by element, what is to come out sets RM_TESTS_COMPUTE. The tests of simulators (LABELS sim) are optimized like the code that they run: where
# several units have an inline function out of line, the linker takes the first one, which is the test's, and all of them run it.
set(test_options -O0 "SHELL:-U_FORTIFY_SOURCE")
set(computing_test_options -O1)

# The headers that nearly every unit reads, parsed once: half of a build's time was theirs. Every file still includes what it
# uses; the sanitizer builds see to it, because they are made without (RINGMASTER_PCH=OFF).
option(RINGMASTER_PCH "Precompile the headers that most units share" ON)
if(RINGMASTER_PCH)
  set(shared_headers <algorithm> <atomic> <chrono> <condition_variable> <deque> <filesystem> <functional> <map> <memory> <mutex>
      <optional> <set> <sstream> <string> <string_view> <thread> <unordered_map> <variant> <vector>
      <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)
  add_compile_definitions(FMT_SHARED)  # as Debian's fmt asks: a precompiled header serves units with the same settings alone
  add_library(rm_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/empty.cc)
  target_precompile_headers(rm_headers PRIVATE ${shared_headers})
  if(RINGMASTER_TESTS)
    foreach(kind test computing_test)  # a precompiled header serves units with the same optimization alone
      add_library(rm_${kind}_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/empty.cc)
      target_compile_options(rm_${kind}_headers PRIVATE ${${kind}_options})
      target_precompile_headers(rm_${kind}_headers PRIVATE ${shared_headers} <gmock/gmock.h> <gtest/gtest.h>)
      target_link_libraries(rm_${kind}_headers PRIVATE GTest::gtest GTest::gmock)
    endforeach()
  endif()
endif()

function(rm_share_headers target from)
  if(RINGMASTER_PCH)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

function(rm_library alias)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  string(REPLACE "::" "_" target ${alias})
  if(ARG_SRCS)
    add_library(${target} STATIC ${ARG_SRCS})
    rm_share_headers(${target} rm_headers)
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
  endif()
  add_library(${alias} ALIAS ${target})
endfunction()

function(rm_binary name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  rm_share_headers(${name} rm_headers)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

add_custom_target(sanitized_tests)

function(rm_test_options name kind)
  target_compile_options(${name} PRIVATE ${${kind}_options})
  rm_share_headers(${name} rm_${kind}_headers)
endfunction()

# LABELS: unit (default) | sim | integration | e2e | python. TIMEOUT in seconds, for the whole file.
# ON_EVERY_SERVER: its tests (operator/local/testing/conformance.h) pass on a real API server too: tests/conformance sees to it.
# SANITIZED: it has threads (or parses what strangers send): hack/test runs it under asan and tsan too. ASAN: under asan only, because it has
# one thread, or its threads are gRPC's: Debian's gRPC is not instrumented, so tsan doesn't see how it hands memory from one to another.
function(rm_test name)
  if(NOT RINGMASTER_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SANITIZED;ASAN;ON_EVERY_SERVER" "TIMEOUT" "SRCS;DEPS;LABELS;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(RINGMASTER_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(ARG_SANITIZED OR (ARG_ASAN AND NOT RINGMASTER_SANITIZE STREQUAL "thread"))
    list(APPEND ARG_LABELS sanitized)
    add_dependencies(sanitized_tests ${name})
  endif()
  if(ARG_ON_EVERY_SERVER)
    set_property(GLOBAL APPEND PROPERTY RINGMASTER_ON_EVERY_SERVER ${name})
  endif()
  add_executable(${name} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)  # tests of one program may use the same names
  if("sim" IN_LIST ARG_LABELS)
    rm_share_headers(${name} rm_headers)
  elseif(RM_TESTS_COMPUTE)
    rm_test_options(${name} computing_test)
  else()
    rm_test_options(${name} test)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  set(behind)
  if("sim" IN_LIST ARG_LABELS)
    # It computes for minutes. The tests beside it hand a word from one process to another thousands of times, and at the same priority
    # each of them would wait for a turn: with all cores busy they took ten times as long.
    set(behind nice -n 19)
  endif()
  add_test(NAME ${name} COMMAND ${behind} $<TARGET_FILE:${name}> ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()

# A test file that no build file knows would never run: fail the configuration instead.
function(rm_check_test_files_have_targets)
  file(GLOB_RECURSE files RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/collectives/*_test.cc ${PROJECT_SOURCE_DIR}/sidecar/*_test.cc
       ${PROJECT_SOURCE_DIR}/common/*_test.cc ${PROJECT_SOURCE_DIR}/operator/*_test.cc
       ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
  foreach(file IN LISTS files)
    get_filename_component(dir ${file} DIRECTORY)
    get_filename_component(name ${file} NAME)
    set(known FALSE)
    while(NOT known AND NOT dir STREQUAL "")
      if(EXISTS ${PROJECT_SOURCE_DIR}/${dir}/CMakeLists.txt)
        file(READ ${PROJECT_SOURCE_DIR}/${dir}/CMakeLists.txt text)
        string(FIND "${text}" "${name}" at)
        if(NOT at EQUAL -1)
          set(known TRUE)
        endif()
      endif()
      get_filename_component(dir ${dir} DIRECTORY)
    endwhile()
    if(NOT known)
      message(FATAL_ERROR "${file} belongs to no test target: add it to a CMakeLists.txt with rm_test()")
    endif()
  endforeach()
endfunction()
