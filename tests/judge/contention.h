// SPDX-License-Identifier: Apache-2.0
// How fast threads run beside others: the equations of ground_truth/machine.h, for what runs at each moment.
#pragma once

#include "tests/judge/kernel.h"
#include "tests/unit/policies/interference/ground_truth/machine.h"

#include <vector>

namespace berth::judge {

using policies::testing::Hardware;
using policies::testing::Software;

// A core's threads slow each other at once. Shares of a last-level cache and the memory's utilisation follow
// the misses of the last kMemory, because a cache fills within milliseconds.
class Contention {
 public:
  // `software`: of each group, in order.
  Contention(const Hardware& hardware, std::vector<CpuPlace> places, std::vector<Software> software,
             Time memory = Rules().cache_memory);

  // As Kernel::Speed: cycles per instruction alone on the host over those now.
  double speed(int group, int cpu, int sibling) const;
  // Cycles per instruction, alone on the host.
  double cpi_alone(int group) const { return alone_[group]; }
  // Takes `elapsed` of what runs now. Call it every millisecond or so, and Kernel::change_speeds() after it.
  void look(const Kernel& kernel, Time elapsed);

 private:
  struct Share {
    double threads = 0;  // that run, as a mean; on a slower core a part of one
    double mib = 0;      // of the last-level cache
    double misses = 0;   // per instruction, with it
  };
  const Share& at(int domain, int group) const { return shares_[domain * software_.size() + group]; }
  Share& at(int domain, int group) { return shares_[domain * software_.size() + group]; }
  // Cycles per instruction. `private_misses`: per instruction, of the core's own cache.
  double cpi(int group, double core_cpi, double private_misses, double misses, int socket) const;
  double memory_cycles(int socket) const;

  Hardware hardware_;
  Time memory_;
  std::vector<CpuPlace> places_;
  std::vector<Software> software_;
  std::vector<double> alone_;         // cycles per instruction
  std::vector<double> whole_misses_;  // with the whole of a core's cache, per instruction
  std::vector<double> half_misses_;   // beside a sibling
  std::vector<Share> shares_;         // by domain and group
  std::vector<double> sockets_;       // utilisation of the memory
  std::vector<int> socket_of_;        // by domain
};

}  // namespace berth::judge
