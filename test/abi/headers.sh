#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Does every public header compile alone, in every standard of C and C++ it promises, with both
# compilers? Also the guard macro, with a way out of the block by break, return and goto. Prints
# TAP.
#
#   headers.sh INCLUDE_DIRECTORY
include=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
number=0
failed=0

cat >"$dir/macro.c" <<'END'
#include <snib/snib.h>
int use(snib_lock *lock);
int use(snib_lock *lock)
{
        struct snib_scope held = SNIB_SCOPE_INIT, outer = SNIB_SCOPE_INIT, inner = SNIB_SCOPE_INIT;
        int tries = 0;

        SNIB_WITH_LOCK(held, lock, 1000) {
                if (!snib_grant_valid(held.grant))
                        break;
                if (snib_grant_token(held.grant) == 7)
                        return 1;
                if (snib_grant_token(held.grant) == 8)
                        goto out;
                tries++;
        }
        SNIB_WITH_LOCK(outer, lock, SNIB_FOREVER)
                SNIB_WITH_LOCK(inner, lock, 0)
                        tries++;
out:
        if (held.result != 1 || held.released != 1)
                return -1;
        return tries;
}
END
cat >"$dir/options.c" <<'END'
#include <snib/snib.h>
int use(void);
int use(void)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_permits_info permits = SNIB_PERMITS_INFO_INIT;
        struct snib_value value = SNIB_VALUE_INIT;
        struct snib_engine_info engine = SNIB_ENGINE_INFO_INIT;
        struct snib_options options = SNIB_OPTIONS_INIT;
        struct snib_lock_options lock_options = SNIB_LOCK_OPTIONS_INIT;
        struct snib_multilock_options multilock_options = SNIB_MULTILOCK_OPTIONS_INIT;

        return err.code + info.held + (options.size == sizeof(options)) + (lock_options.size == sizeof(lock_options)) +
               (multilock_options.size == sizeof(multilock_options)) + (permits.size == sizeof(permits)) + (engine.size == sizeof(engine)) +
               (value.bytes == 0);
}
END
for header in "$include"/snib/*.h; do
  name=$(basename "$header" .h)
  # Twice: the guard works.
  printf '#include <snib/%s.h>\n#include <snib/%s.h>\nextern int not_empty;\n' "$name" "$name" >"$dir/header_$name.c"
done

# try COMPILER LANGUAGE STANDARD: all sources, one result.
try() {
  number=$((number + 1))
  if ! command -v "$1" >/dev/null; then
    echo "ok $number - $3 with $1 # SKIP $1 is not installed"
    return
  fi
  prototypes=
  [ "$2" = c ] && prototypes=-Wstrict-prototypes
  said=
  for source in "$dir"/*.c; do
    if ! output=$("$1" -x "$2" "-std=$3" -pedantic -Wall -Wextra -Werror $prototypes -fsyntax-only -I "$include" "$source" 2>&1); then
      said="$said$(basename "$source"): $output
"
    fi
  done
  if [ -z "$said" ]; then
    echo "ok $number - $3 with $1"
  else
    echo "not ok $number - $3 with $1"
    printf '%s' "$said" | sed 's/^/# /'
    failed=1
  fi
}

for standard in c99 c11 c17; do
  try gcc c $standard
  try clang c $standard
done
for standard in c++11 c++14 c++17 c++20; do
  try g++ c++ $standard
  try clang++ c++ $standard
done
echo "1..$number"
exit $failed
