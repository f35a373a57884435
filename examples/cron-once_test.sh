#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Does cron-once.sh run a job once? A first copy holds while a second one comes by. Prints TAP.
#
#   cron-once_test.sh SNIB CRON_ONCE DIRECTORY
SNIB=$1 SNIB_URL=local:$3 HOLD=1ms
export SNIB SNIB_URL HOLD
script=$2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/go" "$dir/began"

# The name of the lock is the name of the job. It says that it runs, then waits until it is told to
# end.
cat >"$dir/job" <<END
#!/bin/sh
echo ran >>"$dir/log"
[ "\$1" = quick ] && exit 0
[ "\$1" = 75 ] && exit 75
echo >"$dir/began"
read -r line <"$dir/go"
exit 7
END
chmod +x "$dir/job"

failed=0
result() { # NAME EXPECTED FOUND
  number=$((${number-0} + 1))
  if [ "$2" = "$3" ]; then
    echo "ok $number - $1"
  else
    echo "not ok $number - $1"
    echo "# expected $2, found $3"
    failed=1
  fi
}

"$script" "$dir/job" slow &
first=$!
read -r line <"$dir/began"
"$script" "$dir/job" quick
result 'the second copy ends with 0 while the first holds' 0 $?
echo >"$dir/go"
wait $first
result "the first ends with its job's status" 7 $?
result 'the job ran once' 1 "$(grep -c ran "$dir/log")"
"$script" "$dir/job" quick
result 'a third copy runs when the first is done' 0 $?
result 'and the job ran again' 2 "$(grep -c ran "$dir/log")"
"$script" "$dir/job" 75
result "the job's own 75 is not taken for a lock that is busy" 75 $?
HOLD=1h "$script" "$dir/job" quick
result 'a short job ends at once' 0 $?
"$script" "$dir/job" quick
result 'a copy that comes after it ends with 0' 0 $?
result 'and did not run the job: the lock stays' 4 "$(grep -c ran "$dir/log")"
"$SNIB" force-release -q -y cron:job
echo "1..$number"
exit $failed
