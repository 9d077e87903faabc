#!/bin/sh
# Build and run the native tests in $1 with sanitizers $2 (empty: none). Without, they link CORE, the library that was built
# for use, if it is there.
set -eu
core=
if [ -z "$2" ] && [ -f "${CORE:-}" ]; then core=$CORE; fi
# Line numbers suffice for a report. What GCC's sanitizers see, they see at -Og as well, which compiles in half the time.
case "$2" in "") flags="-O2 -g1 -DNDEBUG";; *) flags="-Og -g1 -DNDEBUG";; esac
mkdir -p "$1"
cmake -S . -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Tests -DCMAKE_CXX_FLAGS_TESTS="$flags" \
  -DRINGCAST_TESTS=ON -DRINGCAST_SANITIZE="$2" -DRINGCAST_BUILT_CORE="$core" >"$1.log" 2>&1 || { cat "$1.log"; exit 1; }
cmake --build "$1" --parallel 2 >"$1.log" 2>&1 || { cat "$1.log"; exit 1; }
# A child may start threads after fork: one test is about that.
export TSAN_OPTIONS="die_after_fork=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
echo "native tests (${2:-no sanitizer})"
status=0
ctest --test-dir "$1" --parallel 2 --output-on-failure --no-tests=error || status=$?
if [ "$status" = 0 ]; then exit 0; fi
# Once more, one at a time: other tests keep the machine busy meanwhile. What a sanitizer saw, even once, is a fault.
if grep -qE 'Sanitizer:|runtime error:' "$1/Testing/Temporary/LastTest.log"; then exit "$status"; fi
failed=$(cut -d: -f2 "$1/Testing/Temporary/LastTestsFailed.log")
ctest --test-dir "$1" --rerun-failed --output-on-failure
echo "UNSTEADY, to be repaired: these passed only in a second try:" $failed
