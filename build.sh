#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#
# usage: build.sh [build | check | test | demo | bench | dist | package | nightly]
#
#   build   (default) install missing packages, build into build/
#   check   build, then what shows most mistakes within a minute; run it before each commit
#   test    build, then the whole ctest suite: unit to integration, sanitizers, fuzzers, checks
#   demo    build, then stock ibv_rc_pingpong and ib_write_bw over loopback
#   bench   build, then the measurements of tests/bench
#   dist    the source tarball of the last commit, into build/dist
#   package source and binary packages for apt and for rpm, into build/packages
#   nightly what repeats tests at greater length: fresh seeds of the day, minutes of fuzzing; hours
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$root/build
export UROCE_BUILD_DIR=$build

build() {
	"$root/buildlib/setup"
	if [ ! -f "$build/build.ninja" ]; then
		cmake -G Ninja -S "$root" -B "$build"
	fi
	ninja -C "$build"
}

# The host's limits are printed before and after, so that nobody takes them for tested.
run_tests() {
	local code=0 cannot

	cannot=$("$root/buildlib/host-check")
	export UROCE_TEST_HOST_CANNOT=$cannot
	[ -z "$cannot" ] || echo "NOT TESTED: this host cannot $cannot"
	ctest --test-dir "$build" --output-on-failure -j2 "$@" || code=$?
	[ -z "$cannot" ] || echo "NOT TESTED: this host cannot $cannot;" \
		"what needs that was skipped, see the list above"
	return "$code"
}

# Every part runs, whichever fails.
check() {
	local code=0

	ctest --test-dir "$build" --output-on-failure -j4 \
		-L '^(unit|golden|conformance|style)$' "$@" || code=1
	"$build/tests/bin/sim" --seeds 1000 || code=1
	"$build/tests/bin/cmsim" --seeds 1000 || code=1
	"$root/buildlib/demo" || code=1
	return "$code"
}

bench() {
	if [ ! -x "$root/tests/bench/run" ]; then
		echo "bench: tests/bench/run is not there" >&2
		return 1
	fi
	"$root/tests/bench/run" "$@"
}

# Where the host cannot run a test its exit code is 77.  One that hangs keeps no other from running.
long_forms() {
	local code=0 script cannot

	cannot=$("$root/buildlib/host-check")
	export UROCE_TEST_HOST_CANNOT=$cannot
	export UROCE_INTEG_LONG=1 UROCE_INTEROP=long UROCE_NET=long
	for script in "$root"/tests/{integ/*,net}/test_*.py "$root/tests/interop"; do
		"$root/buildlib/with-network" timeout 7200 /usr/bin/python3 -m pytest -q \
			-p no:cacheprovider "$script" || [ $? = 77 ] || {
			echo "nightly: FAILED $script"
			code=1
		}
	done
	return "$code"
}

# Applications of packages that CI does not install; exit code 77: they are missing.
applications() {
	local code=0 script

	for script in "$root"/tests/applications/*; do
		[ -x "$script" ] || continue
		"$root/buildlib/with-network" --own timeout 1800 "$script" || [ $? = 77 ] || {
			echo "nightly: FAILED $script"
			code=1
		}
	done
	return "$code"
}

# Runs all parts, also after one has failed.
nightly() {
	local code=0 nested_build=$root/buildlib/cmake/nested-build

	long_forms || code=1
	applications || code=1
	"$root/buildlib/dist-packages" || code=1
	"$nested_build" "$root/build-nightly" nightly -DUROCE_NIGHTLY=ON || code=1
	"$nested_build" "$root/build-nightly-asan" nightly -DUROCE_NIGHTLY=ON \
		-DUROCE_SANITIZE=address,undefined || code=1
	"$nested_build" "$root/build-nightly-fuzz" fuzz -DUROCE_FUZZ=ON \
		-DCMAKE_C_COMPILER=clang -DUROCE_FUZZ_SECONDS=600 || code=1
	return "$code"
}

command=${1:-build}
[ $# = 0 ] || shift
case "$command" in
build)
	build
	;;
check)
	build
	check "$@"
	;;
test)
	build
	run_tests "$@"
	;;
demo)
	build
	"$root/buildlib/demo"
	;;
bench)
	build
	bench "$@"
	;;
dist)
	"$root/buildlib/dist" "$build/dist"
	;;
package)
	"$root/buildlib/setup" debian packaging
	"$root/buildlib/package" "$build/packages" "$@"
	;;
nightly)
	build
	nightly
	;;
*)
	sed -n '4,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
	exit 2
	;;
esac
