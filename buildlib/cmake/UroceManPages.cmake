# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#
# Documentation/man/NAME.SECTION.rst becomes share/man/manSECTION/NAME.SECTION in the build folder
# and is installed, by rst2man, as rdma-core makes many of its own.  Without rst2man there are none.
include(GNUInstallDirs)
find_program(UROCE_RST2MAN NAMES rst2man rst2man.py
	     DOC "Makes manual pages (Debian: python3-docutils)")

function(uroce_man_pages)
	file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/Documentation/man/*.rst")
	if(NOT UROCE_RST2MAN)
		message(STATUS "Without rst2man (Debian: python3-docutils) there are no man pages")
		return()
	endif()
	foreach(source ${sources})
		get_filename_component(page "${source}" NAME_WLE)
		string(REGEX REPLACE "^.*\\." "" section "${page}")
		set(folder "${CMAKE_BINARY_DIR}/share/man/man${section}")
		file(MAKE_DIRECTORY "${folder}")
		add_custom_command(OUTPUT "${folder}/${page}" DEPENDS "${source}"
				   COMMAND "${UROCE_RST2MAN}" --strict --no-datestamp
					   --no-generator "${source}" "${folder}/${page}"
				   VERBATIM)
		list(APPEND pages "${folder}/${page}")
		install(FILES "${folder}/${page}"
			DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
	endforeach()
	add_custom_target(uroce_man ALL DEPENDS ${pages})
endfunction()

uroce_man_pages()
