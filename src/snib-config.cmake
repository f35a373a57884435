# SPDX-License-Identifier: Apache-2.0
#
# find_package(snib) for CMake: the target snib::snib. Works wherever the tree was installed to: the library is two folders up, the headers are
# in the first `include` above it.
get_filename_component(snib_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(snib_root "${snib_libdir}")
while(NOT EXISTS "${snib_root}/include/snib/snib.h" AND NOT snib_root STREQUAL "/")
  get_filename_component(snib_root "${snib_root}" DIRECTORY)
endwhile()
if(NOT EXISTS "${snib_libdir}/libsnib.so" OR snib_root STREQUAL "/")
  set(snib_FOUND FALSE)
  set(snib_NOT_FOUND_MESSAGE "libsnib.so or its headers are not beside ${CMAKE_CURRENT_LIST_FILE}")
  return()
endif()
if(NOT TARGET snib::snib)
  add_library(snib::snib SHARED IMPORTED)
  set_target_properties(snib::snib PROPERTIES IMPORTED_LOCATION "${snib_libdir}/libsnib.so"
                                              INTERFACE_INCLUDE_DIRECTORIES "${snib_root}/include")
endif()
