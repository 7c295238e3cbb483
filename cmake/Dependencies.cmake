# Everything comes from Debian 12 packages; hack/lib/packages lists them with the reason for each.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
find_package(CLI11 REQUIRED)

find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
add_library(asio INTERFACE)
target_include_directories(asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
target_compile_definitions(asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(asio INTERFACE Threads::Threads)
add_library(asio::asio ALIAS asio)

# The archive: libringmaster.so needs nothing that a worker's image might not have.
find_path(SODIUM_INCLUDE_DIR sodium.h REQUIRED)
find_library(SODIUM_LIBRARY libsodium.a REQUIRED)
add_library(ringmaster_sodium INTERFACE)
target_include_directories(ringmaster_sodium SYSTEM INTERFACE ${SODIUM_INCLUDE_DIR})
target_link_libraries(ringmaster_sodium INTERFACE ${SODIUM_LIBRARY} Threads::Threads)
add_library(sodium::sodium ALIAS ringmaster_sodium)

# The archive again, for what encrypts the ring: five times as fast as libsodium's (docs/performance.md). Programs use the shared one.
find_path(CRYPTO_INCLUDE_DIR openssl/evp.h REQUIRED)
find_library(CRYPTO_ARCHIVE libcrypto.a REQUIRED)
add_library(ringmaster_crypto_archive INTERFACE)
target_include_directories(ringmaster_crypto_archive SYSTEM INTERFACE ${CRYPTO_INCLUDE_DIR})
target_link_libraries(ringmaster_crypto_archive INTERFACE ${CRYPTO_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS})

if(RINGMASTER_CLUSTER)
  find_package(Protobuf REQUIRED)  # module mode, before gRPC asks for its config
  find_package(gRPC CONFIG REQUIRED)
  find_package(OpenSSL REQUIRED)
  find_package(ZLIB REQUIRED)
  find_package(yaml-cpp REQUIRED)
  find_package(spdlog REQUIRED)
  find_package(prometheus-cpp CONFIG REQUIRED)
  pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
endif()
if(RINGMASTER_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(RINGMASTER_BENCH)
  find_package(benchmark REQUIRED)
  find_package(MPI COMPONENTS CXX)  # optional: comparison only
endif()
