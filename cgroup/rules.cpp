// SPDX-License-Identifier: Apache-2.0
#include "cgroup/rules.h"

#include "cgroup/recognise.h"
#include "model/cpu_set.h"
#include "model/glob.h"
#include "model/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>
#include <sys/xattr.h>

namespace berth::cgroup {

namespace {

using model::WorkloadClass;
using model::WorkloadRule;

std::optional<std::string> read_attribute(int fd, const char* name) {
  std::array<char, 64> value{};
  const ssize_t size = fgetxattr(fd, name, value.data(), value.size());
  // A value longer than any valid one is reported as such. Cut, it might look valid.
  if (size < 0) return errno == ERANGE ? std::optional<std::string>("(longer than 64 bytes)") : std::nullopt;
  const std::string_view text(value.data(), static_cast<std::size_t>(size));
  return std::string(model::trimmed_end(text, std::string_view("\n\0", 2)));
}

// For a message: a user's text is never sent to a terminal or journal unchanged.
std::string printable(const std::string& text) {
  std::string safe = text;
  for (char& c : safe) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  return safe;
}

// Reads booleans as systemd does.
std::optional<bool> parse_boolean(std::string_view text) {
  for (const std::string_view yes : {"1", "yes", "true", "on"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "no", "false", "off"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

template <typename T>
bool differs(const std::optional<T>& a, const std::optional<T>& b) {
  return a && a != b;
}

// Whether the glob spells out, without wildcards, the first `depth` components of `path`.
bool spells_out(std::string_view glob, std::string_view path, std::size_t depth) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < depth; ++i) end = std::min(path.find('/', i == 0 ? 0 : end + 1), path.size());
  const std::string_view head = path.substr(0, end);
  return glob.starts_with(head) && (glob.size() == head.size() || glob[head.size()] == '/') &&
         head.find_first_of("*?[") == std::string_view::npos;
}

// Whether the user who made the cgroup chose a name that the rule matches. Root's word it is where the rule
// spells out the user's outermost group.
bool is_chosen(const WorkloadRule& rule, std::string_view path, const Ownership& owner) {
  return !model::may_favour_itself(owner.ground(), model::Word::name) &&
         !spells_out(rule.match, path, owner.foreign_depth);
}

// Whether the rule matches all groups in the user's part of the tree, by whatever name.
bool takes_any_name(const WorkloadRule& rule, std::string_view path, const Ownership& owner) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < owner.foreign_depth; ++i)
    end = std::min(path.find('/', i == 0 ? 0 : end + 1), path.size());
  const std::string_view glob = rule.match;
  return (glob == "**" || glob.ends_with("/**")) &&
         model::glob_match(glob, std::string(path.substr(0, end)) + "/\x01");
}

// Whether the rule wants anything of a cgroup that does not lower it.
bool favours(const WorkloadRule& rule) {
  return rule.ignored || rule.workload_class == WorkloadClass::latency_sensitive || rule.service ||
         rule.vcpus || rule.memory_bytes || rule.priority.value_or(0) > 0 || !rule.evictable.value_or(true) ||
         rule.deadline_s || rule.progress_file;
}

std::optional<int> whole_vcpus(double cores) {
  if (!(cores > 0) || cores > model::kMaxCpu) return std::nullopt;
  return static_cast<int>(std::ceil(cores));
}

}  // namespace

RawMarks read_raw_marks(int fd) {
  return {read_attribute(fd, kClassMark), read_attribute(fd, kEvictableMark)};
}

Marks judge_marks(const RawMarks& raw, const Ownership& owner) {
  Marks marks;
  const bool own_ground = owner.trusted || owner.uid == owner.parent_uid;
  const auto refuse = [&](const char* name, const std::string& value, std::string_view why) {
    marks.refused.push_back(fmt::format("{}=\"{}\" has no effect: {}", name, printable(value), why));
  };
  const std::string whose = fmt::format("the group belongs to uid {}", owner.uid);
  if (raw.workload_class) {
    const std::string& value = *raw.workload_class;
    const bool sensitive = value == "latency-sensitive";
    if (!sensitive && value != "best-effort") {
      refuse(kClassMark, value, "it is neither latency-sensitive nor best-effort");
    } else if (sensitive && !owner.trusted) {
      refuse(kClassMark, value, whose + ", and only groups of root may take vCPUs for themselves");
    } else if (!own_ground) {
      refuse(kClassMark, value, fmt::format("{} and its parent to uid {}", whose, owner.parent_uid));
    } else {
      marks.workload_class = sensitive ? WorkloadClass::latency_sensitive : WorkloadClass::best_effort;
    }
  }
  if (raw.evictable) {
    const std::string& value = *raw.evictable;
    const auto evictable = parse_boolean(value);
    if (!evictable) {
      refuse(kEvictableMark, value, "it is neither 1 nor 0");
    } else if (!*evictable && !owner.trusted) {
      refuse(kEvictableMark, value, whose + ", and only groups of root may exempt themselves from eviction");
    } else if (!own_ground) {
      refuse(kEvictableMark, value, fmt::format("{} and its parent to uid {}", whose, owner.parent_uid));
    } else {
      marks.evictable = evictable;
    }
  }
  return marks;
}

bool says_otherwise(const WorkloadRule& a, const WorkloadRule& b) {
  return a.ignored != b.ignored || differs(a.workload_class, b.workload_class) ||
         differs(a.service, b.service) || differs(a.vcpus, b.vcpus) || differs(a.isolation, b.isolation) ||
         differs(a.memory_bytes, b.memory_bytes) || differs(a.priority, b.priority) ||
         differs(a.evictable, b.evictable) || differs(a.force, b.force) ||
         differs(a.deadline_s, b.deadline_s) || differs(a.progress_file, b.progress_file);
}

bool judge_pods(const std::vector<WorkloadRule>& rules) {
  // A rule is about pods if it names kubelet's groups, or is so wide that it matches a container of a pod.
  static const std::string kId(64, '0');
  static const std::array<std::string, 3> kContainers{
      "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0.slice/cri-containerd-" + kId +
          ".scope",
      "kubepods/besteffort/pod0/" + kId, "kubepods-besteffort-pod0.slice:cri-containerd:" + kId};
  return rules.empty() || std::any_of(rules.begin(), rules.end(), [](const WorkloadRule& rule) {
           return rule.match.find("kubepods") != std::string::npos ||
                  std::any_of(kContainers.begin(), kContainers.end(), [&rule](const std::string& path) {
                    return model::glob_match(rule.match, path);
                  });
         });
}

Judgement judge(std::string_view path, const Ownership& owner, const Marks& marks,
                const std::vector<WorkloadRule>& rules, const std::function<std::optional<double>()>& quota) {
  Judgement judgement;
  if (owner.trusted && is_container_monitor(path)) return judgement;
  const WorkloadRule* rule = nullptr;
  Verdict verdict;
  // Of the rules before that one whose match a user chose.
  std::optional<std::size_t> lowering;  // the first one of class best-effort
  bool lowered_evictable = false;
  const auto lower_by = [&](std::size_t i) {
    const WorkloadRule& chosen = rules[i];
    if (favours(chosen) && !judgement.untrusted) judgement.untrusted = i;
    if (chosen.workload_class == WorkloadClass::best_effort && !lowering) lowering = i;
    lowered_evictable = lowered_evictable || chosen.evictable.value_or(false);
    if (const int priority = chosen.priority.value_or(0); priority < 0)
      verdict.priority_at_most = std::min(verdict.priority_at_most.value_or(0), priority);
  };
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!model::glob_match(rules[i].match, path)) continue;
    judgement.matches.push_back(i);
    const bool chosen = is_chosen(rules[i], path, owner);
    if (!rule && chosen && !(rules[i].ignored && takes_any_name(rules[i], path, owner))) {
      lower_by(i);
    } else if (!rule) {
      rule = &rules[i];
      verdict.rule = i;
    } else if (!chosen && !judgement.overruled && says_otherwise(rules[i], *rule)) {
      judgement.overruled = i;
    }
  }

  if (rule && rule->ignored) {
    if (!lowering) {
      judgement.ignored_by = static_cast<std::size_t>(rule - rules.data());
      return judgement;
    }
    // A rule before it gave a class, and the first one decides.
    rule = nullptr;
    verdict.rule.reset();
  }
  std::optional<WorkloadClass> found;
  if (marks.workload_class) {
    found = marks.workload_class;
    verdict.matched_by = kClassMark;
  } else if (lowering) {
    found = WorkloadClass::best_effort;
    verdict.matched_by = rules[*lowering].origin;
  } else if (rule && rule->workload_class) {
    found = rule->workload_class;
    verdict.matched_by = rule->origin;
  } else if (const auto qos = pod_qos(path); qos && judge_pods(rules)) {
    if (*qos == PodQos::best_effort) {
      found = WorkloadClass::best_effort;
    } else if (*qos == PodQos::guaranteed && owner.trusted) {
      // As kubelet's static CPU manager: whole CPUs are exclusive, fractions are not.
      const auto cores = quota();
      judgement.awaits_quota = !cores;
      if (cores && *cores == std::floor(*cores)) {
        found = WorkloadClass::latency_sensitive;
        verdict.vcpus = whole_vcpus(*cores);
      }
    }
    verdict.matched_by = kQosMatch;
  }
  if (!found) return judgement;

  verdict.workload_class = *found;
  verdict.evictable =
      marks.evictable.value_or(lowered_evictable || (rule && rule->evictable.value_or(false)));
  if (rule && rule->vcpus) verdict.vcpus = rule->vcpus;
  if (!verdict.vcpus && *found == WorkloadClass::latency_sensitive &&
      model::may_favour_itself(owner.ground(), model::Word::limit)) {
    if (const auto cores = quota()) verdict.vcpus = whole_vcpus(*cores);
    judgement.awaits_quota = !verdict.vcpus;
  }
  judgement.verdict = std::move(verdict);
  return judgement;
}

}  // namespace berth::cgroup
