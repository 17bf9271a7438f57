# SPDX-License-Identifier: Apache-2.0
# What each part of tools/test runs: part_NAME [ITEM...]. It prints its progress, and ends with a line
# "N passed, N failed[, N skipped]". Sourced after tools/lib.sh, with the repository root as the working directory. parts.py says
# what each of them depends on.
# shellcheck shell=bash
REPORTS=$PWD/build/test
# For each compiler that a part starts, such as those of a package.
use_compiler_cache

# The short form of a part that takes long.
short() { [ "${CI:-}" = true ]; }

build_with_tests() {
  # A directory of the demonstration lacks the tests, and builds in spite of warnings.
  if [ -f build/build.ninja ] && ! { [ -d build/tests/unit ] && grep -q -e -Werror build/compile_commands.json; }; then
    meson configure build -Dtests=true -Dwerror=true || return 1
  fi
  build build -Dwerror=true
}

# What takes long to fetch rather than to compute, made beside the compilers. A part makes what is missing, and says why it cannot.
prepare_guests() {
  tests/vm/guest image --variant 6.1
  tests/vm/guest image --variant 6.12
  python3 -B tests/vm/sparkdisk.py
}

# For `quick`.
prepare_guest() { tests/vm/guest image; }

# run_meson_tests DIR NAME [TEST...]: leaves the result in REPORTS/NAME.xml and counts it.
run_meson_tests() {
  local dir=$1 name=$2
  shift 2
  # What an earlier run left says nothing of this one.
  rm -f "$dir"/*.xml "$dir"/meson-logs/testlog.{json,junit.xml,txt}
  meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 5 "$@"
  tools/count-tests --of-meson "$dir/meson-logs" "$REPORTS/$name.xml"
}

part_unit() {
  local promtool dumps
  # Without it, tests of metrics and alerts are skipped.
  promtool=$(tools/fetch-promtool) || promtool=
  # Without these, the test of other machines' topologies is skipped.
  dumps=$(tools/fetch-hwloc-dumps) || dumps=
  BERTH_HWLOC_DUMPS=$dumps PATH=$PATH${promtool:+:$promtool} run_meson_tests build unit "$@"
}

part_lint() { tests/lint/run; }

part_host() {
  tests/host/run --junitxml="$REPORTS/host.xml"
  tools/count-tests "$REPORTS/host.xml"
}

part_package() { tests/package/run; }

part_reproducible() { tests/package/run --twice; }

part_vm() {
  install_staging build build/staging || return 1
  tests/vm/run --guests 2 --staging build/staging --junitxml="$REPORTS/vm.xml" "$@"
  tools/count-tests "$REPORTS/vm.xml"
}

# Guest tests by pytest's names, for `quick`.
part_guests() {
  install_staging build build/staging || return 1
  tests/vm/run --staging build/staging --junitxml="$REPORTS/guests.xml" "$@"
  tools/count-tests "$REPORTS/guests.xml"
}

# With the seed that BERTH_SEED says.
part_properties() { run_meson_tests build properties --suite property; }

part_spark() { tests/spark/run --junitxml="$REPORTS/spark.xml"; }

part_slurm() { tests/slurm/run --junitxml="$REPORTS/slurm.xml"; }

part_kubernetes() { tests/kubernetes/run --junitxml="$REPORTS/kubernetes.xml"; }

part_bench() { tests/bench/run; }

part_sanitized() {
  # By clang, which takes half of gcc's time for it, and is the second compiler that berth has to please.
  local targets=() suites=() suite
  if short; then
    # The programs, and the tests of the modules that read what strangers write.
    suites=(model config cgroup spark)
    targets=(daemon/berthd cli/berthctl)
    for suite in "${suites[@]}"; do targets+=("tests/unit/$suite/test-$suite"); done
  fi
  build_sanitized "${targets[@]}" || return 1
  run_meson_tests build-asan unit-sanitized "${suites[@]}"
}

part_fuzz() {
  if short; then tests/fuzz/run --seconds 6; else tests/fuzz/run --seconds 60; fi
}

part_threads() {
  local suites=(os spark topology ledger observe) suite targets=()
  for suite in os spark topology; do targets+=("tests/unit/$suite/test-$suite"); done
  for suite in ledger observe; do targets+=("tests/unit/daemon/$suite/test-$suite"); done
  # What stands in for the driver of GPUs.
  for suite in libnvidia-ml.so.1 libfake-nvml-{broken,old,v3}.so; do targets+=("tests/unit/topology/$suite"); done
  use_own_cache
  CXX=$(cached clang++) CXXFLAGS=-gline-tables-only \
    build build-tsan -Db_sanitize=thread -Doptimization=0 -Db_lundef=false -- "${targets[@]}" || return 1
  # A hundred hostile drivers take more than ten minutes so, and their test has no thread of berth's.
  TSAN_OPTIONS=halt_on_error=1 GTEST_FILTER='-HostileDrivers.*' run_meson_tests build-tsan unit-threads "${suites[@]}"
}

part_tidy() {
  # The cache keeps which files were clean, so that one short run after another gets through all of them.
  local budget=()
  ! short || budget=(--budget 4)
  tests/lint/tidy "${budget[@]}"
}

part_release() {
  if build build-release -Dtests=false -Doptimization=3 -Dwerror=true; then
    echo "1 passed, 0 failed"
  else
    echo "0 passed, 1 failed"
  fi
}

part_debian13() {
  # Compilers take most of the time, and half of it to optimise.
  if short; then DEB_BUILD_OPTIONS=noopt tests/debian13/run package; else tests/debian13/run; fi
}

part_valgrind() {
  local tests=build/tests/unit/daemon log=$REPORTS/valgrind-berthd.log
  # Each leak and each use of what was not set is an error. Children have files of their own. valgrind 3.19 has
  # no pidfd_open(2), and without it nothing is evicted. So slow a daemon has no two runs to compare, either.
  if valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --trace-children=no \
    --log-file="$log" "$tests/test-daemon" --gtest_brief=1 --gtest_filter='-DaemonEvictionsTest.*:*DaemonClockTest.*'; then
    echo "1 passed, 0 failed"
  else
    tail -n 40 "$log"
    echo "0 passed, 1 failed"
  fi
}
