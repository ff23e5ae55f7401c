# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# shellcheck shell=sh
#
# To be sourced: pair PROGRAM ARGUMENT... runs a server and a client on the uroce that is installed.
set -eu

folder=${AUTOPKGTEST_TMP:-$(mktemp -d)}
port=21800

listening() {
	[ -n "$(ss -Hltn "sport = :$port")" ]
}

pair() {
	port=$((port + 1))
	timeout 60 uroce-run "$@" -p $port >"$folder/server" 2>&1 &
	server=$!
	tries=0
	while ! listening; do
		if [ $tries = 300 ] || ! kill -0 $server; then
			echo "no server: $*"
			cat "$folder/server"
			return 1
		fi
		tries=$((tries + 1))
		sleep 0.1
	done
	code=0
	timeout 60 uroce-run "$@" -p $port 127.0.0.1 >"$folder/client" 2>&1 || code=$?
	wait $server || code=$?
	echo "== $*: $code"
	[ $code = 0 ] || cat "$folder/server" "$folder/client"
	return $code
}
