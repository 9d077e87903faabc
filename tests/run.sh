#!/bin/sh
# All Python tests: those that start Spark in one process, the others in a second one beside it, for two cores.
# Usage: tests/run.sh PYTHON
set -eu
python=$1
log=build/spark-tests.log
mkdir -p build
spark="tests/spark tests/system/test_demo_search_and_rescue.py tests/system/test_pipeline_on_a_cluster.py"
ignored=""
for path in $spark; do ignored="$ignored --ignore=$path"; done

"$python" -m pytest $spark >"$log" 2>&1 &
beside=$!
trap 'kill $beside 2>/dev/null || true' INT TERM
status=0
"$python" -m pytest $ignored || status=$?
wait $beside || status=$?
echo "tests that start Spark:"
cat "$log"
exit $status
