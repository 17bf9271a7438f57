// SPDX-License-Identifier: Apache-2.0
// Decides whether a cgroup is a workload, and of which class, by its mark, the operator's rules, and its
// pod's QoS class.
#pragma once

#include "model/ground.h"
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
// Verdict::matched_by of a container whose class follows from its pod.
inline constexpr const char* kQosMatch = "kubepods QoS";

// The owner of a cgroup. A `trusted` cgroup is owned by root or by the owner of the whole tree, and no other
// user may write to it.
struct Ownership {
  uid_t uid = 0;
  uid_t parent_uid = 0;
  bool trusted = true;
  // Number of components of the path down to the first that is not trusted, that one included; 0 where all
  // are trusted.
  std::size_t foreign_depth = 0;
  // Number of components of the path.
  std::size_t depth = 0;

  model::Ground ground() const {
    if (trusted) return {};
    return {.user = uid, .outermost = depth > 0 && foreign_depth == depth};
  }
};

// The cgroup's extended attributes, as far as its owner may set them.
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

// Follows systemd-oomd's ManagedOOMPreference= (systemd-oomd.service(8)). A trusted cgroup may have any mark.
// Any other cgroup may only have marks at its own cost ("best-effort", evictable), and only below a group of
// the same owner. So a delegated group does not judge itself for the user that delegated it.
Marks judge_marks(const RawMarks& raw, const Ownership& owner);

// The decision that a cgroup is a workload. `rule` indexes the rule that supplies the fields; nullopt where
// none matches, or where only its user's choice of a name made it match.
struct Verdict {
  model::WorkloadClass workload_class = model::WorkloadClass::best_effort;
  std::string matched_by;
  std::optional<std::size_t> rule;
  std::optional<int> vcpus;
  bool evictable = false;
  // The priority is this at most, by rules that a user's choice of a name made match.
  std::optional<int> priority_at_most;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

struct Judgement {
  std::optional<Verdict> verdict;
  std::vector<std::size_t> matches;      // all rules that match, in their order; the first one applies
  std::optional<std::size_t> overruled;  // a later rule that matches too and differs
  // The first rule that wants to give the cgroup more than a lower rank, although its user chose the name,
  // and the glob does not spell that name out.
  std::optional<std::size_t> untrusted;
  // The first rule that matches has class "ignored": there is no verdict.
  std::optional<std::size_t> ignored_by;
  // The verdict may change once cpu.max is set. So it is for a guaranteed pod without quota, and for a
  // latency-sensitive workload without vcpus.
  bool awaits_quota = false;
};

// Whether the rules leave the QoS classes of Kubernetes' pods in force: there is no rule at all, or one of
// them is about pods. With rules for other cgroups alone, berth touches nothing of Kubernetes.
bool judge_pods(const std::vector<model::WorkloadRule>& rules);

// In a user's part of the tree, the user chooses names. A rule that does not spell out the user's outermost
// group counts there only as far as it lowers: class "best-effort", `evictable`, a priority below 0. All
// others of its fields, and class "ignored", have no effect. The search goes on, so that no name hides a
// workload from a later rule that lowers it more, or that spells its path out.
//
// `quota` reads cpu.max in cores, nullopt without limit; it is called only where it matters.
Judgement judge(std::string_view path, const Ownership& owner, const Marks& marks,
                const std::vector<model::WorkloadRule>& rules,
                const std::function<std::optional<double>()>& quota);

// Whether `a` sets a member that `b` does not set to the same value.
bool says_otherwise(const model::WorkloadRule& a, const model::WorkloadRule& b);

}  // namespace berth::cgroup
