// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/error.h"
#include "os/worker.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace berth::os {

// irqbalance(1), which places interrupts anew every ten seconds, and its banned CPUs, onto which it places
// none. It is asked through its socket (sock_handle() in irqbalance.c, version 1.6 and later). While it reads
// the host's processors again, it gives no answer for its interval of ten seconds.
class Irqbalance {
 public:
  static constexpr const char* kDirectory = "/run/irqbalance";
  // The longest list of CPUs that ban() can tell: irqbalance 1.9.2 reads 500 bytes.
  static constexpr std::size_t kMostListBytes = 485;

  struct State {
    std::string socket;    // its name in the directory; it has the pid
    model::CpuSet banned;  // in force; a change is in force after ten seconds
  };

  // `directory`: that of its sockets.
  explicit Irqbalance(std::filesystem::path directory = kDirectory) : directory_(std::move(directory)) {}

  // nullopt where none runs. Error transient where it does not answer within `patience`: then the next calls
  // return at once, until it does.
  model::Result<std::optional<State>> ask(std::chrono::milliseconds patience);
  // Has the one of that socket ban these, and no others. An empty set: those of its own configuration. Error
  // gone where it has gone, transient as above, invalid_input as can_say().
  model::Result<void> ban(const std::string& socket, const model::CpuSet& banned,
                          std::chrono::milliseconds patience);
  // Error invalid_input where the list is too long for ban().
  static model::Result<void> can_say(const model::CpuSet& banned);
  bool has(const std::string& socket) const;
  // The next call waits again for an answer that an earlier one gave up.
  void wait_again() { worker_.wait_again(); }

 private:
  std::filesystem::path directory_;
  Worker worker_;
};

// The set of a mask in hexadecimal digits, in groups of 32 bits ("1,0000000c"). Error invalid_input.
model::Result<model::CpuSet> parse_mask(std::string_view text);

}  // namespace berth::os
