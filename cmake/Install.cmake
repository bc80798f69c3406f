# What `cmake --install` puts in place: the command, the library, its headers, and what find_package(cermet) reads.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cermet)
install(TARGETS cermet RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_BINARY_DIR}/share/cermet.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_BINARY_DIR}/share/cermet.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME cermet)
install(FILES ${PROJECT_BINARY_DIR}/share/_cermet DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PROJECT_BINARY_DIR}/share/cermet.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(TARGETS cermet_shared EXPORT cermet_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET cermet_cuda)  # opened by name by the command and the library, which look here
  set_target_properties(cermet_cuda PROPERTIES INSTALL_RPATH "${CUDAToolkit_LIBRARY_DIR}")
  install(TARGETS cermet_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET cermet_mpi)  # the same
  install(TARGETS cermet_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cermet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/include/cermet/ops.hpp ${PROJECT_BINARY_DIR}/include/cermet/graph_ops.hpp
  ${PROJECT_BINARY_DIR}/include/cermet/ops.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cermet)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES DESTINATION ${CMAKE_INSTALL_DOCDIR})
# `pkg-config cermet`; paths are relative to the file, so that the prefix can be moved.
file(RELATIVE_PATH CERMET_PREFIX_FROM_PC "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/cermet.pc.in ${PROJECT_BINARY_DIR}/cermet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cermet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake)
install(EXPORT cermet_targets NAMESPACE cermet:: FILE cermet-targets.cmake DESTINATION ${package_folder})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/cermet-config.cmake.in ${PROJECT_BINARY_DIR}/cermet-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cermet-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cermet-config.cmake ${PROJECT_BINARY_DIR}/cermet-config-version.cmake DESTINATION ${package_folder})
