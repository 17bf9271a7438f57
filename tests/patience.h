// SPDX-License-Identifier: Apache-2.0
// How long tests wait for an event.
#pragma once

#include <chrono>

#include <poll.h>

namespace berth::test {

// The longest wait before a test fails. Success ends a wait at once, so that it may be long: on a slow or
// busy machine every event comes, only later.
inline constexpr std::chrono::seconds kPatience{60};

// Whether `done` becomes true within kPatience.
template <typename Done>
[[nodiscard]] bool eventually(const Done& done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 2);
  }
  return true;
}

}  // namespace berth::test
