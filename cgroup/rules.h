// SPDX-License-Identifier: Apache-2.0
// Who says that a cgroup is a workload, and of which class: its mark, the operator's rules, its pod's QoS
// class.
#pragma once

#include "model/workload.h"
#include "model/workload_rule.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace berth::cgroup {

inline constexpr const char* kClassMark = "user.berth.class";
inline constexpr const char* kEvictableMark = "user.berth.evictable";

// Whose a cgroup is. `trusted` is the host's own: owned by root or by the owner of the whole tree, and
// writable by nobody else.
struct Ownership {
  uid_t uid = 0;
  uid_t parent_uid = 0;
  bool trusted = true;
  // Components of the path down to the first that is not trusted, that one included; 0 where all are.
  std::size_t foreign_depth = 0;
};

// What the cgroup's extended attributes say, as far as its owner may say it.
struct Marks {
  std::optional<model::WorkloadClass> workload_class;
  std::optional<bool> evictable;
  std::vector<std::string> refused;  // one sentence each, without the path
  friend bool operator==(const Marks&, const Marks&) = default;
};

// Raw attribute values; nullopt where unset.
struct RawMarks {
  std::optional<std::string> workload_class;
  std::optional<std::string> evictable;
};
// `fd` is the cgroup's directory. A file system without user attributes has no marks.
RawMarks read_raw_marks(int fd);

// Like systemd-oomd with ManagedOOMPreference= (systemd-oomd.service(8)): what is trusted may say anything;
// anybody else only what costs nobody but himself ("best-effort", evictable), and only below a group that is
// his too, so that a delegated group does not judge itself in the eyes of who delegated it.
Marks judge_marks(const RawMarks& raw, const Ownership& owner);

// What makes a cgroup a workload. `rule` indexes the rule that supplies the fields; nullopt where none
// matches.
struct Verdict {
  model::WorkloadClass workload_class = model::WorkloadClass::best_effort;
  std::string matched_by;
  std::optional<std::size_t> rule;
  std::optional<int> vcpus;
  bool evictable = false;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

struct Judgement {
  std::optional<Verdict> verdict;
  std::optional<std::size_t> overruled;  // a later rule that matches too and says something else
  // The rule would make a cgroup latency-sensitive that a user made himself under a name its glob does not
  // spell out.
  std::optional<std::size_t> untrusted;
  // The verdict may change once cpu.max is set: a guaranteed pod without quota, a latency-sensitive workload
  // without vcpus.
  bool awaits_quota = false;
};

// `quota` reads cpu.max in cores, nullopt without limit; it is called only where it matters.
Judgement judge(std::string_view path, const Ownership& owner, const Marks& marks,
                const std::vector<model::WorkloadRule>& rules,
                const std::function<std::optional<double>()>& quota);

// Whether `a` sets anything that `b` does not say in the same way.
bool says_otherwise(const model::WorkloadRule& a, const model::WorkloadRule& b);

}  // namespace berth::cgroup
