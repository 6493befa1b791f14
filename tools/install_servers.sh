#!/usr/bin/env bash
# Install what the tests of engines need and pip cannot bring: Java and a PostgreSQL server.
set -euo pipefail
wanted=()
command -v java > /dev/null || wanted+=(default-jre-headless)
command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || wanted+=(postgresql)
[ ${#wanted[@]} -eq 0 ] && exit 0
if ! command -v apt-get > /dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "make test-all needs ${wanted[*]} (names of Debian's packages); install them first" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${wanted[@]}"
