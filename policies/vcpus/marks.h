// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace berth::policies {

// Marks cores or tenants as seen, cleared in O(1) by a new round.
class Marks {
 public:
  explicit Marks(int size) : round_(static_cast<std::size_t>(size), 0) {}
  void clear() { ++now_; }
  bool marked(int index) const { return round_[index] == now_; }
  // True the first time in this round.
  bool mark(int index) {
    if (marked(index)) return false;
    round_[index] = now_;
    return true;
  }

 private:
  std::vector<int> round_;
  int now_ = 1;
};

}  // namespace berth::policies
