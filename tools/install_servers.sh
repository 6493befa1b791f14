#!/usr/bin/env bash
# Install what tests need and pip cannot bring: Java, servers of PostgreSQL and MariaDB, Chromium, npm, and R with reticulate.
set -euo pipefail
wanted=()
command -v java > /dev/null || wanted+=(default-jre-headless)
command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || wanted+=(postgresql)
command -v mariadbd > /dev/null || [ -x /usr/sbin/mariadbd ] || wanted+=(mariadb-server-core mariadb-client-core)
command -v chromium > /dev/null || wanted+=(chromium)
command -v npm > /dev/null || wanted+=(npm)
command -v Rscript > /dev/null && Rscript -e 'library(reticulate)' > /dev/null 2>&1 || wanted+=(r-base-core r-cran-reticulate)
[ ${#wanted[@]} -eq 0 ] && exit 0
if ! command -v apt-get > /dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "make test-all needs ${wanted[*]} (names of Debian's packages); install them first" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${wanted[@]}"
