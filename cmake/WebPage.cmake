# The page: web/ (TypeScript, Vite) -> <build>/web -> <build>/web_assets.c -> the server's library.
#
# src/server/web_assets.h declares the table; the generated file defines it. Without web/, or with
# -DINKSTONE_WEB=OFF, the table is empty.

function(add_web_page room)
    file(GLOB header CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/server/web_assets.h)
    file(GLOB package CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/package-lock.json)
    if(NOT TARGET ${room} OR NOT header)
        return()
    endif()
    find_program(INKSTONE_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
    if(NOT INKSTONE_PYTHON)
        find_program(INKSTONE_PYTHON NAMES python3 REQUIRED)
    endif()

    set(page ${PROJECT_BINARY_DIR}/web)
    set(generated ${PROJECT_BINARY_DIR}/web_assets.c)
    set(embed ${PROJECT_SOURCE_DIR}/scripts/embed_web.py)

    if(INKSTONE_WEB AND package)
        # Not web/* all the way down: web/node_modules has thousands of files and appears during the build.
        set(web ${PROJECT_SOURCE_DIR}/web)
        file(GLOB page_sources CONFIGURE_DEPENDS LIST_DIRECTORIES false ${web}/*)
        file(GLOB_RECURSE page_parts CONFIGURE_DEPENDS LIST_DIRECTORIES false ${web}/src/* ${web}/public/*)
        add_custom_command(OUTPUT ${page}/index.html
            COMMAND ${PROJECT_SOURCE_DIR}/scripts/build_web.sh ${page}
            DEPENDS ${page_sources} ${page_parts} ${PROJECT_SOURCE_DIR}/scripts/build_web.sh
            COMMENT "Building the page"
            VERBATIM)
        add_custom_command(OUTPUT ${generated}
            COMMAND ${INKSTONE_PYTHON} ${embed} ${page} ${generated}
            DEPENDS ${page}/index.html ${embed}
            COMMENT "Embedding the page"
            VERBATIM)
    else()
        message(STATUS "page: none to embed")
        add_custom_command(OUTPUT ${generated}
            COMMAND ${INKSTONE_PYTHON} ${embed} --empty ${generated}
            DEPENDS ${embed}
            VERBATIM)
    endif()
    target_sources(${room} PRIVATE ${generated})
endfunction()
