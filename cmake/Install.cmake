# `cmake --install`: component `collectives` is all that a C or C++ worker needs, `python` the Python package, `programs`
# the binaries. deploy/build-images makes the container images from all three.
include(CMakePackageConfigHelpers)

install(TARGETS ringmaster_collectives EXPORT ringmasterTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT collectives)
if(RINGMASTER_CLUSTER)
  install(TARGETS ringmaster ringmaster-operator ringmaster-sidecar ringmaster-launcher
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
endif()
install(DIRECTORY collectives/include/ringmaster DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT collectives)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ringmaster)
install(EXPORT ringmasterTargets NAMESPACE ringmaster:: DESTINATION ${config_dir} COMPONENT collectives)
configure_package_config_file(cmake/package/ringmasterConfig.cmake.in ${PROJECT_BINARY_DIR}/ringmasterConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ringmasterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ringmasterConfig.cmake ${PROJECT_BINARY_DIR}/ringmasterConfigVersion.cmake
        DESTINATION ${config_dir} COMPONENT collectives)
configure_file(cmake/package/ringmaster.pc.in ${PROJECT_BINARY_DIR}/ringmaster.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ringmaster.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT collectives)
