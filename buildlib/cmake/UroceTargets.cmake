# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#
# The kinds of target that the tree is made of, so that folder files stay a few lines long.

# uroce_layer(NAME [CONVERSION] [LIBS lib...])
#
# The static library uroce_NAME of all *.c files in the current folder and those below, position
# independent and with hidden symbols.  CONVERSION adds -Wconversion.  LIBS are the layers below and
# what else the layer needs.  A folder without sources makes an empty library, so that others can
# link it.
function(uroce_layer name)
	cmake_parse_arguments(arg "CONVERSION" "" "LIBS" ${ARGN})
	file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.c")
	if(NOT sources)
		set(sources "${CMAKE_CURRENT_BINARY_DIR}/empty.c")
		file(CONFIGURE OUTPUT "${sources}"
		     CONTENT "typedef int uroce_${name}_has_no_sources_yet;\n")
	endif()
	add_library(uroce_${name} STATIC ${sources})
	if(arg_CONVERSION)
		target_compile_options(uroce_${name} PRIVATE -Wconversion)
	endif()
	target_compile_options(uroce_${name} PRIVATE ${UROCE_LTO_COMPILE})
	target_link_libraries(uroce_${name} PUBLIC ${arg_LIBS} Threads::Threads)
endfunction()

# uroce_test(NAME LABEL label [TIMEOUT seconds] [SERIAL]
#            SOURCES file... [LIBS lib...] [ARGS arg...])
#
# A test program in tests/ of the build directory, and the ctest test "label.NAME" that runs it.
function(uroce_test name)
	cmake_parse_arguments(arg "SERIAL" "LABEL;TIMEOUT" "SOURCES;LIBS;ARGS" ${ARGN})
	add_executable(${name} ${arg_SOURCES})
	set_target_properties(${name} PROPERTIES
			      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests/bin")
	target_link_libraries(${name} PRIVATE ${arg_LIBS})
	if(arg_SERIAL)
		set(serial SERIAL)
	endif()
	if(arg_TIMEOUT)
		set(timeout TIMEOUT ${arg_TIMEOUT})
	endif()
	uroce_test_command(${name} LABEL ${arg_LABEL} ${timeout} ${serial}
			   COMMAND $<TARGET_FILE:${name}> ${arg_ARGS})
endfunction()

# uroce_group(GROUP COMMAND)
#
# Building the target GROUP makes the programs that the command of a test names, and the drop-in
# folder if it loads that: buildlib/cmake/nested-build makes nothing else.
function(uroce_group group command)
	if(NOT TARGET ${group})
		add_custom_target(${group})
	endif()
	string(REGEX MATCHALL "TARGET_FILE:[A-Za-z0-9_-]+" targets "${command}")
	list(TRANSFORM targets REPLACE "TARGET_FILE:" "")
	if(group MATCHES "unit|verbs|integ|interop|net")
		list(APPEND targets uroce-broker)
	endif()
	if(command MATCHES "LD_LIBRARY_PATH=")
		list(APPEND targets uroce_dropin uroce_plugin)
	endif()
	if(targets)
		add_dependencies(${group} ${targets})
	endif()
endfunction()

# uroce_test_command(NAME LABEL label [TIMEOUT seconds] [COST seconds] [SERIAL] [BOTH_CORES]
#                    [OWN_PLACES] COMMAND word...)
#
# The ctest test "label.NAME" of any command, run in the source tree's root.  Labels: unit, golden,
# sim, conformance, fuzz, integ, verbs (what of integ runs with sanitizers), interop, net, style,
# sanitize, nightly.  Exit code 77 of an integ, interop, net or style test means skipped.  SERIAL is
# for a test that measures time, BOTH_CORES for one that computes on two processors.  Tests with a
# high COST begin first.  A test that opens addresses runs in
# a network namespace of its own, unless it makes namespaces itself (OWN_PLACES); where that is not
# permitted, such tests of all labels but unit run alone, since they share the host's UDP port.
execute_process(COMMAND unshare -n true RESULT_VARIABLE uroce_cannot_unshare OUTPUT_QUIET
		ERROR_QUIET)
execute_process(COMMAND sh -c "unshare -n true || unshare -rn true"
		RESULT_VARIABLE uroce_cannot_unshare_user OUTPUT_QUIET ERROR_QUIET)
function(uroce_test_command name)
	cmake_parse_arguments(arg "SERIAL;BOTH_CORES;OWN_PLACES" "LABEL;TIMEOUT;COST"
			      "COMMAND" ${ARGN})
	if(NOT arg_TIMEOUT)
		set(arg_TIMEOUT 60)
	endif()
	math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${UROCE_SLOWER}")
	# What opens addresses is skipped where the host cannot.
	set(opens_addresses "^(test_(link|progress|netdev|neighbour|demux|fork_locks|cq|brokerd_|"
			    "stats_|broker_(group|names|steer|return))|verbs_)|_pingpong$")
	string(JOIN "" opens_addresses ${opens_addresses})
	if(arg_LABEL MATCHES "^(integ|interop|net|bench)$" OR name MATCHES "${opens_addresses}")
		set(network "${CMAKE_SOURCE_DIR}/buildlib/with-network")
		set(cannot_unshare ${uroce_cannot_unshare})
		if(arg_OWN_PLACES)
			set(cannot_unshare ${uroce_cannot_unshare_user})
		else()
			list(APPEND network --own)
		endif()
		if(NOT cannot_unshare EQUAL 0 AND NOT arg_LABEL STREQUAL "unit")
			set(arg_SERIAL TRUE)
		endif()
	endif()
	# Programs that have the layers in themselves have no plug-in beside which the broker lies.
	if(arg_LABEL MATCHES "^(unit|golden|fuzz|interop)$")
		set(broker ";UROCE_TEST_BROKER=${UROCE_LIB_DIR}/uroce-broker")
	endif()
	uroce_group(tests-${arg_LABEL} "${arg_COMMAND}")
	set(test "${arg_LABEL}.${name}")
	add_test(NAME ${test} COMMAND ${network} ${arg_COMMAND}
		 WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
	set_tests_properties(${test} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT}
			     RUN_SERIAL ${arg_SERIAL}
			     ENVIRONMENT "UROCE_BUILD_DIR=${CMAKE_BINARY_DIR}${broker}")
	if(arg_COST)
		set_tests_properties(${test} PROPERTIES COST ${arg_COST})
	endif()
	if(arg_BOTH_CORES)
		set_tests_properties(${test} PROPERTIES PROCESSORS 2)
	endif()
	# Only what depends on the host may be skipped; libFuzzer, say, exits 77 with a finding.
	if(arg_LABEL MATCHES "^(integ|interop|net|style)$" OR network)
		set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
	endif()
endfunction()

# uroce_pytests(label TIMEOUT seconds [SERIAL name...] [LONG name...])
#
# Every test_NAME.py of the calling folder and of those in it is one test, "label.test_NAME".  Those
# named SERIAL measure time.  Those named LONG begin early, so that none is left alone at the end.
function(uroce_pytests label)
	cmake_parse_arguments(arg "" "TIMEOUT" "SERIAL;LONG" ${ARGN})
	file(GLOB scripts CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/test_*.py"
	     "${CMAKE_CURRENT_SOURCE_DIR}/*/test_*.py")
	foreach(script ${scripts})
		get_filename_component(name "${script}" NAME_WE)
		set(serial)
		if(name IN_LIST arg_SERIAL)
			set(serial SERIAL)
		endif()
		set(cost)
		if(name IN_LIST arg_LONG)
			set(cost COST 80)
		endif()
		uroce_test_command(${name} LABEL ${label} TIMEOUT ${arg_TIMEOUT} ${serial} ${cost}
				   OWN_PLACES COMMAND ${UROCE_PYTHON} -m pytest -q
						      -p no:cacheprovider "${script}")
	endforeach()
endfunction()
