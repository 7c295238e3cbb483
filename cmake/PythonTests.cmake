# Tests in Python need an interpreter that has torch, scikit-learn and pytest. On Debian that is /usr/bin/python3, which need
# not be the first on PATH. None found: the tests are there and fail, saying what is missing; they are never skipped.
set(RINGMASTER_PYTHON "" CACHE FILEPATH "python3 that can import torch, sklearn and pytest")

function(rm_find_python)
  if(RINGMASTER_PYTHON)
    return()
  endif()
  find_program(path_python3 python3 NO_CACHE)
  foreach(candidate /usr/bin/python3 ${path_python3})
    execute_process(COMMAND ${candidate} -c
      "import importlib.util as u, sys; sys.exit(not all(u.find_spec(m) for m in ('torch', 'sklearn', 'pytest')))"
      RESULT_VARIABLE lacks OUTPUT_QUIET ERROR_QUIET)
    if(lacks EQUAL 0)
      set(RINGMASTER_PYTHON ${candidate} CACHE FILEPATH "" FORCE)
      return()
    endif()
  endforeach()
endfunction()

# rm_python_test(NAME DIRECTORY tests TIMEOUT 300): all pytest files of a folder, or one file. IGNORE: files that have a test of their own.
function(rm_python_test name)
  if(NOT RINGMASTER_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "DIRECTORY;TIMEOUT" "IGNORE" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(ignore)
  foreach(file ${ARG_IGNORE})
    list(APPEND ignore --ignore=${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  rm_find_python()
  if(RINGMASTER_PYTHON)
    add_test(NAME ${name} COMMAND ${RINGMASTER_PYTHON} -m pytest -q -rfEs -p no:cacheprovider
             ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_DIRECTORY} ${ignore})
  else()
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E cat
             "no python3 that can import torch, sklearn and pytest: install python3-torch python3-sklearn python3-pytest")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS python ENVIRONMENT
    "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1;OMP_NUM_THREADS=1")
endfunction()
