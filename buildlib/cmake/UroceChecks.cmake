# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#
# The checks of the sources, and the builds with sanitizers and fuzzers, as ctest tests.
set(buildlib "${CMAKE_SOURCE_DIR}/buildlib")

foreach(check check-style check-format check-prose check-documents check-corpora check-commits
	spec-report)
	uroce_test_command(${check} LABEL style TIMEOUT 240
			   COMMAND ${UROCE_PYTHON} -B "${buildlib}/${check}")
endforeach()
set(archives)
foreach(layer util wire broker engine cm link capture progress verbs ucm trace)
	list(APPEND archives "${layer}=$<TARGET_FILE:uroce_${layer}>")
endforeach()
uroce_test_command(check-layers LABEL style TIMEOUT 240
		   COMMAND ${UROCE_PYTHON} -B "${buildlib}/check-layers"
		   ${archives})
uroce_test_command(check-man LABEL style COMMAND ${UROCE_PYTHON} -B "${buildlib}/check-man"
		   "${UROCE_BIN_DIR}")
uroce_test_command(check-version LABEL style
		   COMMAND ${UROCE_PYTHON} -B "${buildlib}/check-version"
		   $<TARGET_FILE:uroce-stat> $<TARGET_FILE:uroce-trace> $<TARGET_FILE:uroce-flow>
		   $<TARGET_FILE:uroce-broker> "${UROCE_BIN_DIR}/uroce-run")
# Sanitizers export symbols of their own.
if(NOT UROCE_SANITIZE AND NOT UROCE_FUZZ)
	uroce_test_command(check-symbols LABEL style
			   COMMAND ${UROCE_PYTHON} -B "${buildlib}/check-symbols"
				   "${UROCE_LIB_DIR}")
endif()
uroce_test_command(test_checks LABEL style TIMEOUT 240 COST 50
		   COMMAND ${UROCE_PYTHON} -B -m pytest -q -p no:cacheprovider
			   "${buildlib}/test_checks.py")
uroce_test_command(test_dist LABEL style
		   COMMAND ${UROCE_PYTHON} -B -m pytest -q -p no:cacheprovider
			   "${buildlib}/test_dist.py")
uroce_test_command(test_ci_files LABEL style
		   COMMAND ${UROCE_PYTHON} -B -m pytest -q -p no:cacheprovider
			   "${buildlib}/test_ci_files.py")

# What the README promises a newcomer.
uroce_test_command(demo LABEL integ TIMEOUT 300 COMMAND bash "${buildlib}/demo")

# Sanitizers take a multiple of the time.
set(slower -DUROCE_SLOWER=4)

# Folders beside this one: build-asan, build-tsan and build-fuzz for build.
set(nested "${CMAKE_BINARY_DIR}")
uroce_test_command(asan LABEL sanitize TIMEOUT 1200 SERIAL
		   COMMAND bash "${buildlib}/cmake/nested-build" "${nested}-asan"
		   unit,golden,sim,conformance,verbs -DUROCE_SANITIZE=address,undefined
		   ${slower} -DUROCE_WERROR=${UROCE_WERROR})
uroce_test_command(tsan LABEL sanitize TIMEOUT 1200 SERIAL
		   COMMAND bash "${buildlib}/cmake/nested-build" "${nested}-tsan"
		   unit,verbs -DUROCE_SANITIZE=thread ${slower}
		   -DUROCE_WERROR=${UROCE_WERROR})
# Uses the build of asan, hence DEPENDS.
uroce_test_command(asan_pingpong LABEL sanitize TIMEOUT 120
		   COMMAND bash "${buildlib}/sanitized-pingpong" "${nested}-asan" libasan.so)
set_tests_properties(sanitize.asan_pingpong PROPERTIES DEPENDS sanitize.asan)
uroce_test_command(fuzz LABEL fuzz TIMEOUT 1200 SERIAL
		   COMMAND bash "${buildlib}/cmake/nested-build" "${nested}-fuzz"
		   fuzz -DUROCE_FUZZ=ON -DCMAKE_C_COMPILER=clang
		   -DUROCE_WERROR=${UROCE_WERROR})
