# `cmake --install`: component `collectives` is all that a C or C++ worker needs, `python` the Python package, `programs`
# what runs on a cluster; deploy/build-images makes the container images from these three. `cli` is the command for people.
include(CMakePackageConfigHelpers)

install(TARGETS ringmaster_collectives EXPORT ringmasterTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT collectives)
if(RINGMASTER_CLUSTER)
  install(TARGETS ringmaster-operator ringmaster-sidecar ringmaster-launcher ringmaster-bench
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
  install(TARGETS ringmaster RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cli)
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
