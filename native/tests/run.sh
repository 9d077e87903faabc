#!/bin/sh
# Build and run the native tests in $1 with sanitizers $2 (empty: none).
set -eu
cmake=${CMAKE:-cmake}
ctest=${CTEST:-ctest}
type=RelWithDebInfo
"$cmake" -S . -B "$1" -DCMAKE_BUILD_TYPE=$type -DRINGCAST_TESTS=ON -DRINGCAST_SANITIZE="$2" >"$1.log" 2>&1 || {
  mkdir -p "$1"; cat "$1.log"; exit 1; }
"$cmake" --build "$1" --parallel 2 >"$1.log" 2>&1 || { cat "$1.log"; exit 1; }
echo "native tests (${2:-no sanitizer})"
"$ctest" --test-dir "$1" --output-on-failure --no-tests=error
