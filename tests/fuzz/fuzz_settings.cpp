// SPDX-License-Identifier: Apache-2.0
// Settings of a bus call, "KEY=VALUE" a line: they are taken, or refused in one short line. What is taken
// keeps the limits of berth.toml(5).
#include "config/workload_settings.h"
#include "model/bounds.h"
#include "model/cpu_set.h"
#include "model/name.h"
#include "tests/fuzz/property.h"

#include <map>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::map<std::string, std::string> settings;
  for (std::string_view rest = fuzz::text_of(data, size); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t equals = std::min(line.find('='), line.size());
    settings[std::string(line.substr(0, equals))] = line.substr(std::min(equals + 1, line.size()));
  }
  const auto parsed = berth::config::parse_workload_settings(settings);
  if (!parsed) {
    fuzz::require(parsed.error().message().size() < 1000, "a refusal is short");
    return 0;
  }
  namespace model = berth::model;
  fuzz::require(!parsed->vcpus || (*parsed->vcpus >= 1 && *parsed->vcpus <= model::kMaxCpu + 1),
                "a number of vCPUs that a host may have");
  fuzz::require(!parsed->priority || std::abs(*parsed->priority) <= model::kMaxPriority, "a priority");
  fuzz::require(!parsed->deadline_s || (*parsed->deadline_s >= model::kMinDeadline_s &&
                                        *parsed->deadline_s <= model::kMaxDeadline_s),
                "a deadline");
  fuzz::require(!parsed->service ||
                    (model::is_name(*parsed->service) && parsed->service->size() <= model::kMaxServiceBytes),
                "a service has a name");
  return 0;
}
