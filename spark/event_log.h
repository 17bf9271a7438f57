// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::spark {

// What an event log, a JSON object a line, says of which stage reads what: the only place where Spark tells
// that ("Parent IDs"). It is any user's file: whatever is not such an object is passed over.
class EventLog {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{4} << 20;  // a job of a thousand stages
  static constexpr std::size_t kMostParents = 200'000;

  // Takes the next bytes, wherever they end. Keeps the start of a line only where it is of interest.
  void take(std::string_view bytes);
  // Of stages, so far.
  const std::map<int, std::vector<int>>& parents() const { return parents_; }

 private:
  void take_line(std::string_view line);

  std::string open_;     // the start of the last line
  bool passed_ = false;  // which is of no interest
  std::map<int, std::vector<int>> parents_;
  std::size_t count_ = 0;
};

}  // namespace berth::spark
