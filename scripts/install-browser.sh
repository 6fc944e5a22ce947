#!/usr/bin/env bash
# Chromium for the tests that open the pages in a real browser. Quiet, and nothing to do where it is there already.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if ! command -v apt-get >/dev/null; then
  echo "install-browser: no apt-get here; install Chromium by hand to run the browser tests" >&2
  exit 1
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then as_root="sudo -n"; fi
export DEBIAN_FRONTEND=noninteractive
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
if ! { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends chromium; } >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  echo "install-browser: Chromium could not be installed" >&2
  exit 1
fi
