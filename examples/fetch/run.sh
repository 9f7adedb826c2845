#!/bin/sh
# Starts a server on loopback, runs the plan against it, and stops the server again.
# Usage: examples/fetch/run.sh [CAPSULE [ARGUMENTS]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- cargo run --quiet --manifest-path "$here/../../Cargo.toml" --
port_file=$(mktemp)
trap 'kill "$server" 2>/dev/null || true; rm -f "$port_file"' EXIT
python3 - "$here" "$port_file" <<'PYTHON' &
import functools, http.server, sys
folder, port_file = sys.argv[1:]
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
with open(port_file, "w") as out:
    out.write(str(server.server_port))
server.serve_forever()
PYTHON
server=$!
tries=0
until [ -s "$port_file" ]; do
  tries=$((tries + 1))
  [ $tries -lt 100 ] || { echo "the server did not start" >&2; exit 1; }
  sleep 0.1
done
"$@" run "$here/plan.yaml" --policy "$here/policy.yaml" --input "port=$(cat "$port_file")"
