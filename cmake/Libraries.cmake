# Third-party libraries. Only what an existing room links is looked for.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# Becomes PkgConfig::<name> for add_layer(LIBS ...); found when a room asks for it.
set(pkg_JANSSON jansson>=2.13)
set(pkg_NETTLE nettle)
set(pkg_UTF8PROC libutf8proc)
set(pkg_SQLITE sqlite3)
set(pkg_LIBZIP libzip)
set(pkg_MICROHTTPD libmicrohttpd>=0.9.71)
set(pkg_CMOCKA cmocka)

function(need_library target)
    if(TARGET ${target})
        return()
    elseif(target MATCHES "^PkgConfig::(.+)$")
        pkg_check_modules(${CMAKE_MATCH_1} REQUIRED IMPORTED_TARGET GLOBAL ${pkg_${CMAKE_MATCH_1}})
    elseif(target STREQUAL "ggml::ggml")
        find_ggml()
    else()
        message(FATAL_ERROR "need_library: nobody has said where ${target} comes from")
    endif()
endfunction()

macro(find_ggml)
    if(INKSTONE_SYSTEM_GGML)
        find_package(ggml CONFIG REQUIRED GLOBAL)
    elseif(EXISTS ${INKSTONE_GGML_DIR}/libggml)
        unset(ggml_DIR CACHE)   # another SANITIZE in the same build folder means another ggml
        find_package(ggml CONFIG REQUIRED GLOBAL PATHS ${INKSTONE_GGML_DIR}/libggml NO_DEFAULT_PATH)
    else()
        message(FATAL_ERROR "no ggml in ${INKSTONE_GGML_DIR}: run `make deps` "
            "(`make asan`, `make tsan` for the sanitizers' own), or configure with -DINKSTONE_SYSTEM_GGML=ON")
    endif()
endmacro()
