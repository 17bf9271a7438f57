// SPDX-License-Identifier: Apache-2.0
// The rival of tests/bench/daemon/run: reads cpu.stat of every cgroup below a directory by kept descriptors,
// once a round. Prints the median CPU time of a round in milliseconds.
#include "os/clock.h"
#include "os/file_descriptor.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3 || std::atoi(argv[2]) <= 0) {
    std::fprintf(stderr, "usage: bench-pread-all DIRECTORY ROUNDS\n");
    return 2;
  }
  (void)berth::os::raised_file_limit();
  std::vector<berth::os::FileDescriptor> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (!entry.is_directory()) continue;
    berth::os::FileDescriptor fd(open((entry.path() / "cpu.stat").c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
      std::perror(entry.path().c_str());
      return 1;
    }
    files.push_back(std::move(fd));
  }
  std::vector<double> rounds;
  for (int round = 0; round < std::atoi(argv[2]); ++round) {
    usleep(200'000);  // the kernel has something to add up, as at a tick
    const double before = berth::os::seconds_of(CLOCK_THREAD_CPUTIME_ID);
    for (const auto& file : files) {
      std::array<char, 4096> buffer;
      if (pread(file.get(), buffer.data(), buffer.size(), 0) <= 0) return 1;
    }
    rounds.push_back((berth::os::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before) * 1000);
  }
  std::sort(rounds.begin(), rounds.end());
  std::printf("%.3f\n", rounds[rounds.size() / 2]);
}
