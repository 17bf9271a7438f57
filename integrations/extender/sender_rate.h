// SPDX-License-Identifier: Apache-2.0
// How often a host may send a snapshot. It costs time to read one, and to find the places of pods anew.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace berth::extender {

// The member `host` of a JSON object, without reading the rest of the document: at the first level, as a text
// without escapes. nullopt if there is none, or one that is no name of a node.
std::optional<std::string_view> named_host(std::string_view document);

// Takes one snapshot of each host in a time. A name may be invented, so it keeps a limited number of names,
// and forgets the oldest ones.
class SenderRate {
 public:
  // `pause_s`: between two snapshots of a host; 0 is no limit.
  explicit SenderRate(double pause_s, std::size_t most_names = 20'000)
      : pause_s_(pause_s), most_names_(most_names) {}

  // nullopt if a snapshot of the host may come now. Else the seconds until the next one may. Times are
  // seconds of a clock that never steps.
  std::optional<double> wait_s(std::string_view host, double now_s);
  // Counts a snapshot that was read and is valid. Any sender can name any host in one that is not, and so
  // would keep the host's own out.
  void count(std::string_view host, double now_s);

  std::size_t names() const { return until_s_.size(); }

 private:
  double pause_s_;
  std::size_t most_names_;
  std::map<std::string, double, std::less<>> until_s_;   // by host
  std::deque<std::pair<double, std::string>> in_order_;  // the same, the oldest first
};

}  // namespace berth::extender
