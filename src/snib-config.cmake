# SPDX-License-Identifier: Apache-2.0
#
# find_package(snib 0.1) for CMake. Targets:
#   snib::snib    the shared library, or the static one where that alone was installed
#   snib::static  the static library, where it was installed, with what it needs
# Works wherever the tree was installed to: the libraries are two folders up, the headers are in the
# first `include` above them.
get_filename_component(snib_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(snib_root "${snib_libdir}")
while(NOT EXISTS "${snib_root}/include/snib/snib.h" AND NOT snib_root STREQUAL "/")
  get_filename_component(snib_root "${snib_root}" DIRECTORY)
endwhile()
if(snib_root STREQUAL "/" OR NOT (EXISTS "${snib_libdir}/libsnib.so" OR EXISTS "${snib_libdir}/libsnib.a"))
  set(snib_FOUND FALSE)
  set(snib_NOT_FOUND_MESSAGE "libsnib or its headers are not beside ${CMAKE_CURRENT_LIST_FILE}")
  return()
endif()
if(EXISTS "${snib_libdir}/libsnib.so" AND NOT TARGET snib::snib)
  add_library(snib::snib SHARED IMPORTED)
  set_target_properties(snib::snib PROPERTIES IMPORTED_LOCATION "${snib_libdir}/libsnib.so"
                                              INTERFACE_INCLUDE_DIRECTORIES "${snib_root}/include")
endif()
if(EXISTS "${snib_libdir}/libsnib.a" AND NOT TARGET snib::static)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads QUIET)
  find_library(snib_hiredis_library hiredis)
  find_library(snib_sqlite3_library sqlite3)
  mark_as_advanced(snib_hiredis_library snib_sqlite3_library)
  if(Threads_FOUND AND snib_hiredis_library AND snib_sqlite3_library)
    add_library(snib::static STATIC IMPORTED)
    set_target_properties(snib::static PROPERTIES IMPORTED_LOCATION "${snib_libdir}/libsnib.a"
      IMPORTED_LINK_INTERFACE_LANGUAGES C
      INTERFACE_INCLUDE_DIRECTORIES "${snib_root}/include"
      INTERFACE_LINK_LIBRARIES "${snib_hiredis_library};${snib_sqlite3_library};Threads::Threads")
    if(NOT TARGET snib::snib)
      add_library(snib::snib INTERFACE IMPORTED)
      set_target_properties(snib::snib PROPERTIES INTERFACE_LINK_LIBRARIES snib::static)
    endif()
  elseif(NOT TARGET snib::snib)
    set(snib_FOUND FALSE)
    set(snib_NOT_FOUND_MESSAGE "the static libsnib needs hiredis, SQLite and threads, and one of them was not found")
  endif()
endif()
