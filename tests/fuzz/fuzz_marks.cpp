// SPDX-License-Identifier: Apache-2.0
// Marks and names that a user may give a cgroup. First byte: whose it is; first line the mark of its class,
// second its mark of evictable, third its path. A cgroup of a user never claims vCPUs, nor safety from
// eviction.
#include "cgroup/leaf.h"
#include "cgroup/rules.h"
#include "tests/fuzz/property.h"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  if (size == 0) return 0;
  std::string_view rest = fuzz::text_of(data + 1, size - 1);
  const auto next = [&rest] {
    const auto end = rest.find('\n');
    const std::string line(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    return line;
  };
  // read_raw_marks() reads no more of a mark.
  constexpr std::size_t kMostMarkBytes = 64;
  const cgroup::RawMarks raw{.workload_class = next().substr(0, kMostMarkBytes),
                             .evictable = next().substr(0, kMostMarkBytes)};
  const cgroup::Ownership owner{.uid = 1000, .parent_uid = data[0] % 2 == 0 ? 1000U : 0U, .trusted = false};
  const auto marks = cgroup::judge_marks(raw, owner);
  fuzz::require(marks.workload_class != model::WorkloadClass::latency_sensitive, "no vCPUs by a mark");
  fuzz::require(marks.evictable != false, "no safety by a mark");
  if (owner.parent_uid != owner.uid)
    fuzz::require(!marks.workload_class && !marks.evictable, "no marks below another owner");
  for (const auto& sentence : marks.refused) fuzz::require_line(sentence);

  const std::string path = next();
  const auto verdict = cgroup::judge(path, owner, marks, {}, [] { return std::optional(1.0); }).verdict;
  fuzz::require(!verdict || verdict->workload_class == model::WorkloadClass::best_effort,
                "no vCPUs by a name");
  if (const auto leaf = cgroup::leaf_at(path)) {
    const std::string same = cgroup::leaf_path(*leaf, cgroup::is_scope(path));
    fuzz::require(cgroup::leaf_at(same) == leaf, "a leaf has one name");
  }
  return 0;
}
