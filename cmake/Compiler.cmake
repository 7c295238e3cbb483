# Warnings and sanitizers that every target of the project gets.
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -pthread)
add_compile_options(-fPIC)  # for programs too: they share precompiled headers with libraries
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU")
  add_compile_options(-fpch-preprocess)  # lets ccache keep units that use a precompiled header
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Werror=thread-safety)  # locks are common/sync/mutex.h
endif()
if(RINGMASTER_SANITIZE)
  add_compile_options(-fsanitize=${RINGMASTER_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${RINGMASTER_SANITIZE})
endif()
