// SPDX-License-Identifier: Apache-2.0
// Any text is read as a cpulist or refused in one line; what was read has one canonical spelling.
#include "model/cpu_set.h"
#include "tests/fuzz/property.h"

using berth::model::CpuSet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto set = CpuSet::parse(fuzz::text_of(data, size));
  if (!set) {
    fuzz::require_line(set.error().message());
    return 0;
  }
  fuzz::require(set->size() <= berth::model::kMaxCpu + 1, "no more vCPUs than there are numbers");
  const auto again = CpuSet::parse(set->to_string());
  fuzz::require(again.has_value() && *again == *set, "the set survives");
  fuzz::require(again->to_string() == set->to_string(), "the spelling is canonical");
  return 0;
}
