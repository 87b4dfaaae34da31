# One static library per room, linked only to the rooms it may know.
#
#   add_layer(<room> [CHECKED] [DEPS <rooms>] [LIBS <third-party targets>])
#
# A room is src/<room>/*.c. Third-party libraries are private to it, so another room does not even see their headers.
# CHECKED adds -Wconversion. A room without sources is skipped; INKSTONE_ROOMS lists those that exist.

set_property(GLOBAL PROPERTY INKSTONE_ROOMS "")

function(add_layer name)
    cmake_parse_arguments(L "CHECKED" "" "DEPS;LIBS" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c)
    if(NOT sources)
        message(STATUS "room ${name}: no sources yet")
        return()
    endif()

    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src PRIVATE ${PROJECT_SOURCE_DIR}/include)
    if(L_CHECKED)
        target_compile_options(${name} PRIVATE -Wconversion)
    endif()
    foreach(dep ${L_DEPS})
        if(TARGET ${dep})
            target_link_libraries(${name} PUBLIC ${dep})
        endif()
    endforeach()
    foreach(lib ${L_LIBS})
        need_library(${lib})
    endforeach()
    target_link_libraries(${name} PRIVATE ${L_LIBS} options)
    set_property(GLOBAL APPEND PROPERTY INKSTONE_ROOMS ${name})
endfunction()

# build/inkstone: main.c is a table of sub-commands over the highest rooms there are.
function(add_program)
    file(GLOB main CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/main.c)
    if(NOT main)
        message(STATUS "src/main.c: not there yet; only the rooms are built")
        return()
    endif()
    add_executable(inkstone ${main})
    foreach(room cli server task convert base)
        if(TARGET ${room})
            target_link_libraries(inkstone PRIVATE ${room})
        endif()
    endforeach()
    target_include_directories(inkstone PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(inkstone PRIVATE options)
    set_target_properties(inkstone PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()
