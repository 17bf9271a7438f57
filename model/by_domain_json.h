// SPDX-License-Identifier: Apache-2.0
// The forms of what a domain has, and of what best-effort work has in one.
#pragma once

#include "model/best_effort_cores.h"
#include "model/json.h"
#include "model/json_fields.h"
#include "model/number.h"

#include <map>
#include <string>

#include <fmt/core.h>

namespace berth::model {

template <typename Io>
void fields(Io& io, Of<Io, BestEffortCores>& left) {
  io.required("cpus", left.cpus, as::cpulist);
  io.required("cores", left.cores, as::integer{0, kMaxCpu + 1});
  io.if_set("fell_at", left.fell_at, as::time);
}

// By a domain's id. Accepts only the spelling that is written. Else "1" and "01" would be one domain.
template <typename How>
struct AsByDomain {
  How how;

  explicit AsByDomain(How written) : how(written) {}

  template <typename T>
  void read(const JsonValue& value, std::map<int, T>& by_domain) const {
    value.each_member([&](const std::string& name, const JsonValue& member) {
      const int id = to_number<int>(name).value_or(-1);
      if (id < 0 || std::to_string(id) != name)
        member.fail(fmt::format("{} is not the number of a domain", in_quotes(name)));
      how.read(member, by_domain[id]);
    });
  }
  template <typename T>
  void write(JsonWriter& out, const std::map<int, T>& by_domain) const {
    out.begin_object();
    for (const auto& [id, member] : by_domain) how.write(out.key(std::to_string(id)), member);
    out.end_object();
  }
};

}  // namespace berth::model
