// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::spark {

// Reads the parents of each stage from an event log ("Parent IDs"), a JSON object a line. Spark tells that
// nowhere else. The file is any user's: a line that is no such object is skipped.
class EventLog {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{4} << 20;  // a job of a thousand stages
  static constexpr std::size_t kMostParents = 100'000;

  // Takes the next bytes, cut at any place. Keeps the start of an unfinished line only where it may matter.
  void take(std::string_view bytes);
  // Forgets the start of an unfinished line; returns its bytes. They come again: berth keeps no part of a
  // line of another user from one round to the next.
  std::size_t drop_open();
  // By stage, so far.
  const std::map<int, std::vector<int>>& parents() const { return parents_; }
  // Memory, about.
  std::size_t bytes() const;

 private:
  void take_line(std::string_view line);
  void release_open();

  std::string open_;     // the start of the last line, where it may matter
  bool passed_ = false;  // that line does not matter
  std::map<int, std::vector<int>> parents_;
  std::size_t count_ = 0;
};

}  // namespace berth::spark
