# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# shellcheck shell=bash
#
# Sourced by the scripts in this directory, each of which runs an application over uroce, checks the
# data, and exits 0 or 1, or 77 if the packages of the application are missing.  Nothing is
# installed.
set -euo pipefail

applications=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
run=${UROCE_BUILD_DIR:-$applications/../../build}/bin/uroce-run
name=$(basename "$0")

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# needs PACKAGE...
needs() {
	local package
	local -a missing=()

	for package; do
		installed "$package" || missing+=("$package")
	done
	[ "${#missing[@]}" -gt 0 ] || return 0
	echo "$name: skipped; apt-get install --no-install-recommends ${missing[*]}"
	exit 77
}

fail() {
	echo "$name: FAILED: $*" >&2
	exit 1
}

passed() {
	echo "$name: passed: $*, $place"
}

# Where the servers run, and how clients reach them: set by everywhere().
place=loopback
netdev=lo
address=127.0.0.1
at_server=()

# Makes a network namespace for the servers and a veth pair that joins it to ours and ends with it.
make_second_host() {
	local own peer

	own=$(readlink /proc/self/ns/net)
	unshare -n sleep 1000 2>/dev/null &
	peer=$!
	sleep 0.2
	[ "$(readlink "/proc/$peer/ns/net")" != "$own" ] || return 1
	at_server=(nsenter "--net=/proc/$peer/ns/net")
	ip link add uroce0 type veth peer name uroce0 netns "$peer" &&
		ip address add 10.79.1.1/24 dev uroce0 && ip link set uroce0 up &&
		"${at_server[@]}" ip address add 10.79.1.2/24 dev uroce0 &&
		"${at_server[@]}" ip link set uroce0 up && "${at_server[@]}" ip link set lo up ||
		return 1
	# The interfaces get their carrier some time later.
	wait_until has_carrier
	wait_until has_carrier "${at_server[@]}"
}

# has_carrier [COMMAND...]: true if uroce0 has a carrier; COMMAND enters its namespace
has_carrier() {
	"$@" ip -brief link show uroce0 | grep -q LOWER_UP
}

# Runs the function on the loopback interface, and between two hosts if this user may make one.
everywhere() {
	"$1"
	if ! make_second_host; then
		echo "$name: not run between two hosts: this user cannot make a network namespace"
		return
	fi
	place="two hosts"
	netdev=uroce0
	address=10.79.1.2
	"$1"
}

# Runs the command on uroce for at most 120 seconds.
on_uroce() {
	timeout --kill-after=5 120 "$run" "$@"
}

# start LOG COMMAND...: starts the command on uroce where servers run; its process id is in $server.
start() {
	local log=$1

	shift
	timeout --kill-after=5 300 "${at_server[@]}" "$run" "$@" >"$log" 2>&1 &
	server=$!
}

# wait_until COMMAND...: waits up to 20 seconds until the command succeeds
wait_until() {
	local try

	for ((try = 0; try < 200; try++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	fail "not true within 20 seconds: $*"
}

leave() {
	local code=$? job

	for job in $(jobs -p); do
		kill "$job" 2>/dev/null || true
	done
	wait
	if [ "$code" != 0 ] && [ "$code" != 77 ]; then
		tail -n 20 "$scratch"/*.log >&2 2>/dev/null || true
	fi
	rm -rf "$scratch"
}

scratch=$(mktemp -d)
trap leave EXIT
cd "$scratch"
[ -x "$run" ] || fail "$run is not there: build first"
