#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The same crontab on every machine, and the job runs on one. With SNIB_URL=redis://... the machines
# share the lock, without it the processes of one machine do. The lock stays for HOLD (50s) even if
# the job was over sooner: a machine whose clock is a little late must not run it again. Choose it
# below the time between two runs. Not acquired is no failure here: another machine is at it, or was
# (-E 0). Any other code is the job's own, or snib's.
#
#   */5 * * * *  SNIB_URL=redis://cache1 cron-once.sh /usr/local/bin/report
set -u

exec "${SNIB:-snib}" run -q -n -E 0 --hold-at-least "${HOLD:-50s}" "cron:$(basename "$1")" -- "$@"
