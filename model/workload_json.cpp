// SPDX-License-Identifier: Apache-2.0
#include "model/workload_json.h"

#include "model/usage_json.h"

#include <algorithm>

namespace berth::model {

void SamplesSince::read(const JsonValue& value, UsageWindow& usage) const {
  value.each([&usage](const JsonValue& element) {
    UsageSample sample;
    as::object.read(element, sample);
    usage.push_back(sample);
  });
}

void SamplesSince::write(JsonWriter& out, const UsageWindow& usage) const {
  std::size_t known = 0;  // samples at the beginning that are not later
  const auto& times = usage.times();
  if (since >= 0) {
    known = times.size();
    while (known > 0 && times.begin()[known - 1] > since) --known;
  }
  out.begin_array();
  auto sample = usage.end();
  for (std::size_t left = times.size() - known; left > 0; --left) --sample;
  for (; sample != usage.end(); ++sample) as::object.write(out, *sample);
  out.end_array();
}

void WorkloadsSince::read(const JsonValue& value, std::vector<Workload>& workloads) const {
  value.each([&workloads](const JsonValue& element) {
    Workload& workload = workloads.emplace_back();
    FieldReader io(element);
    fields(io, workload);
    io.optional("usage", workload.usage, SamplesSince());
  });
}

void WorkloadsSince::write(JsonWriter& out, const std::vector<Workload>& workloads) const {
  std::vector<const Workload*> by_id;
  by_id.reserve(workloads.size());
  for (const Workload& workload : workloads) by_id.push_back(&workload);
  std::stable_sort(by_id.begin(), by_id.end(),
                   [](const Workload* a, const Workload* b) { return a->id < b->id; });
  out.begin_array();
  for (const Workload* workload : by_id) write_workload(out, *workload, since);
  out.end_array();
}

void write_workload(JsonWriter& out, const Workload& workload, double since) {
  out.begin_object();
  FieldWriter io(out);
  fields(io, workload);
  io.required("usage", workload.usage, SamplesSince{since});
  out.end_object();
}

}  // namespace berth::model
