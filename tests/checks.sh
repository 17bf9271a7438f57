# SPDX-License-Identifier: Apache-2.0
# Checks of scripts, one line each, and the line that counts them; sourced.
# shellcheck shell=bash
passed=0 failed=0

# check NAME COMMAND...: one line a check, its output where it fails.
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s\n%s\n' "$name" "$output"
    return 1
  fi
}

# Ends the script.
finish() {
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" -eq 0 ]
  exit
}
