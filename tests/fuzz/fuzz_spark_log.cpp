// SPDX-License-Identifier: Apache-2.0
// Any event log gives the same parents, wherever it is cut, and no more of them than the limit. First byte:
// where.
#include "spark/sparkd/event_log.h"
#include "tests/fuzz/property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using berth::spark::EventLog;
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  EventLog whole;
  whole.take(text);
  EventLog cut;
  const std::size_t step = 1 + data[0];
  for (std::size_t at = 0; at < text.size(); at += step) cut.take(text.substr(at, step));
  fuzz::require(whole.parents() == cut.parents(), "the parents do not depend on how the log is cut");
  std::size_t count = 0;
  for (const auto& [stage, parents] : whole.parents()) count += 1 + parents.size();
  fuzz::require(count <= EventLog::kMostParents, "parents have a limit");
  fuzz::require(whole.drop_open() == cut.drop_open(), "so does the unfinished line");
  return 0;
}
