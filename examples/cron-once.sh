#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The same crontab on every machine, and the job runs on one. With SNIB_URL=redis://... the machines share the lock, without
# it the processes of one machine do. Not acquired (75) is no failure here: somebody else is at it.
#
#   */5 * * * *  SNIB_URL=redis://cache1 cron-once.sh /usr/local/bin/report
set -u

"${SNIB:-snib}" run -n -E 75 "cron:$(basename "$1")" -- "$@"
code=$?
[ "$code" = 75 ] && exit 0
exit "$code"
