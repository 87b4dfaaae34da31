# What can be chosen at configure time, and the compiler flags of our own code.

option(DEVELOPER "Treat warnings as errors" OFF)
option(INKSTONE_SYSTEM_GGML "Use an installed ggml (CMAKE_PREFIX_PATH says where) instead of the one in .deps" OFF)
option(INKSTONE_WEB "Build the page from web/ and embed it; OFF embeds nothing" ON)
option(INKSTONE_FUZZ "Build the fuzz entries with clang's fuzzer instead of the tests" OFF)
set(SANITIZE "" CACHE STRING "Sanitizers for our code: address,undefined or thread")
set_property(CACHE SANITIZE PROPERTY STRINGS "" address,undefined thread)

set(INKSTONE_GGML_DIR "" CACHE PATH "Where ggml was installed by `make deps`; empty: the one that fits SANITIZE")
if(NOT INKSTONE_GGML_DIR)
    set(INKSTONE_GGML_DIR ${PROJECT_SOURCE_DIR}/.deps/ggml)
    if(INKSTONE_FUZZ)
        # gcc's and clang's address sanitizers do not mix, so the entries use the plain ggml.
    elseif(SANITIZE MATCHES "thread")
        string(APPEND INKSTONE_GGML_DIR -tsan)
    elseif(SANITIZE MATCHES "address")
        string(APPEND INKSTONE_GGML_DIR -asan)
    endif()
endif()

# As CMake's own RelWithDebInfo, but asserts stay: they guard invariants that bytes from outside must never break.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# `options` is linked PRIVATE by everything we compile, and by nothing else.
add_library(options INTERFACE)
target_compile_definitions(options INTERFACE
    _POSIX_C_SOURCE=200809L
    INKSTONE_VERSION="${PROJECT_VERSION}")
target_compile_options(options INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wformat=2
    $<$<BOOL:${DEVELOPER}>:-Werror>)
target_link_libraries(options INTERFACE m)

if(SANITIZE)
    set(sanitize_flags -fsanitize=${SANITIZE} -fno-omit-frame-pointer)
    if(SANITIZE MATCHES "undefined")
        list(APPEND sanitize_flags -fno-sanitize-recover=undefined)
    endif()
    target_compile_options(options INTERFACE ${sanitize_flags})
    target_link_options(options INTERFACE ${sanitize_flags})
endif()

if(INKSTONE_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "INKSTONE_FUZZ needs clang: configure with CC=clang CXX=clang++, or run `make fuzz`")
    endif()
    target_compile_options(options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer)
    target_link_options(options INTERFACE -fsanitize=address,undefined)
endif()
