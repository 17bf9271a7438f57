// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/straggler/naive_straggler.h"

#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

namespace berth::policies::naive {

namespace {

using model::HeldCause;
using model::Workload;

constexpr double kTiny = 1e-9;
constexpr double kMiB = 1024.0 * 1024;

bool sensitive(const Workload& w) { return w.workload_class == model::WorkloadClass::latency_sensitive; }

class Naive {
 public:
  Naive(const model::Snapshot& snapshot, const PolicySettings& settings)
      : snap_(snapshot),
        set_(settings.straggler),
        domains_(settings.interference),
        given_(testing::given_out(snapshot.topology, settings.interference)),
        min_change_(settings.safety.min_change) {}

  Help run() {
    for (const Workload& w : snap_.workloads) judge(w);
    for (const What what : {What::cpu, What::memory}) decide(what);
    return std::move(out_);
  }

 private:
  static std::vector<std::pair<double, double>> said(const Workload& w) {
    std::vector<std::pair<double, double>> points;
    for (const auto& r : w.progress) points.emplace_back(r.time, r.fraction);
    if (points.empty())
      for (const auto& s : w.usage)
        if (s.progress) points.emplace_back(s.time, *s.progress);
    return points;
  }

  void judge(const Workload& w) {
    std::vector<std::pair<double, double>> points = said(w);
    if (!sensitive(w) || (!w.deadline && points.empty())) return;
    Judged& task = out_.tasks[w.id];
    while (points.size() > 4) points.erase(points.begin());
    double gap = 0;
    for (std::size_t i = 0; i + 1 < points.size(); ++i)
      gap = std::max(gap, points[i + 1].first - points[i].first);
    double stood_since = points.empty() ? 0 : points.back().first;
    for (std::size_t i = points.size(); i-- > 0 && points[i].second == points.back().second;)
      stood_since = points[i].first;
    if (w.progressed_at) stood_since = std::min(stood_since, *w.progressed_at);
    if (points.size() > 1 && points.back().second < 1 && snap_.time - points.back().first > 2 * gap) {
      const auto [time, done] = points.back();
      const auto [earlier, less] = points[points.size() - 2];
      const bool stands = done <= less || time <= earlier;
      const bool late =
          !stands && w.deadline && snap_.time + (1 - done) * (time - earlier) / (done - less) >= *w.deadline;
      if (stands || late || snap_.time - time >= set_.restore_hold_s) points.emplace_back(snap_.time, done);
    }
    while (points.size() > 4) points.erase(points.begin());
    third_[w.id] = points.size() < 4 ? 0 : points[2].first;
    if (!w.deadline || points.size() < 4) return;
    for (std::size_t i = 0; i < 3; ++i)
      if (points[i + 1].second < points[i].second || points[i + 1].first <= points[i].first) return;
    const auto [t1, p1] = points[0];
    const auto [t2, p2] = points[1];
    const auto [t3, p3] = points[2];
    const auto [t4, p4] = points[3];
    task.v1 = (p2 - p1) / (t2 - t1);
    task.v2 = (p4 - p3) / (t4 - t3);
    if (*task.v2 > 0) task.finish = (1 - p4) / *task.v2 + t4;
    const bool gains = *task.v2 > *task.v1 * (1 + 1e-9);
    const bool in_time = task.finish.has_value() && *task.finish < *w.deadline;
    task.straggler = p4 < 1 && !gains && !in_time;
    if (snap_.time - stood_since > std::max(10 * set_.restore_hold_s, 4 * gap)) task.straggler = false;
    any_ = any_ || task.straggler;
    rho_[w.id] = set_.max_growth;
    if (*task.v2 > 0 && *w.deadline > t4)
      rho_[w.id] = std::max(1.0, std::min(set_.max_growth, (1 - p4) / (*w.deadline - t4) / *task.v2));
  }

  static std::optional<double> limit(const Workload& w, What what) {
    if (what == What::cpu) return w.cpu_quota_cores;
    if (w.memory_high_bytes) return static_cast<double>(*w.memory_high_bytes);
    return std::nullopt;
  }
  static bool fixed(const Workload& w, What what) { return what == What::cpu ? w.fixed.cpu : w.fixed.memory; }
  static std::optional<double> original(const Workload& w, What what) {
    if (what == What::cpu) return w.original->cpu_quota_cores;
    if (w.original->memory_high_bytes) return static_cast<double>(*w.original->memory_high_bytes);
    return std::nullopt;
  }
  static std::optional<model::HeldLimit> held(const Workload& w, What what) {
    if (!w.original || fixed(w, what)) return std::nullopt;
    return what == What::cpu ? w.held_cpu : w.held_memory;
  }
  std::optional<double> allocation(const Workload& w, What what) const {
    const auto a = granted_on_paper(w, what);
    if (!a || capacity(what) <= 0) return a;
    return std::min(*a, capacity(what));
  }
  static std::optional<double> granted_on_paper(const Workload& w, What what) {
    if (limit(w, what)) return limit(w, what);
    if (what == What::memory) {
      if (w.memory_request_bytes == 0) return std::nullopt;
      return static_cast<double>(w.memory_request_bytes);
    }
    if (!w.vcpus) return std::nullopt;
    if (!sensitive(w) || w.cpus.empty()) return *w.vcpus;
    return std::max<double>(*w.vcpus, static_cast<double>(w.cpus.size()));
  }
  static std::vector<double> uses(const Workload& w, What what) {
    std::vector<double> list;
    for (const auto& s : w.usage) {
      if (what == What::cpu) list.push_back(s.cpu_cores);
      if (what == What::memory && s.memory_bytes) list.push_back(static_cast<double>(*s.memory_bytes));
    }
    return list;
  }
  static double mean(const Workload& w, What what) {
    double sum = 0;
    for (const double use : uses(w, what)) sum += use;
    const std::size_t known = uses(w, what).size();
    if (known == 0) return 0;
    sum /= static_cast<double>(known);
    return what == What::cpu ? sum : std::ceil(sum);
  }
  static double highest(const Workload& w, What what) {
    double most = 0;
    for (const double use : uses(w, what)) most = std::max(most, use);
    return most;
  }
  double counted(const Workload& w, What what) const {
    const auto a = allocation(w, what);
    return a ? *a : mean(w, what);
  }
  double capacity(What what) const {
    if (what == What::memory) return static_cast<double>(snap_.memory.total_bytes);
    int open = 0;
    for (const int cpu : snap_.topology.usable()) {
      const bool kept_off = domains_.reserved == Reserved::strict && domains_.reserved_cpus.contains(cpu);
      if (!kept_off) ++open;
    }
    return open > 0 ? open : static_cast<double>(snap_.topology.usable().size());
  }

  // How far its limit is from its original; none is all of the node.
  double distance(const Workload& w, What what) const {
    const auto in_effect = [&](const std::optional<double>& limit) {
      if (capacity(what) <= 0) return limit.value_or(0);
      return std::min(limit.value_or(capacity(what)), capacity(what));
    };
    return std::abs(in_effect(original(w, what)) - in_effect(limit(w, what)));
  }

  // Its vCPUs are its allocation: it gets them one by one.
  static bool by_vcpus(const Workload& w, What what) {
    return what == What::cpu && !w.cpu_quota_cores && w.vcpus && !w.cpus.empty();
  }
  // A limit that changes by less is left as it is.
  double least(const Workload& w, What what) const { return min_change_ * limit(w, what).value_or(0); }

  // The most vCPUs it can have inside its domain. Where its pin lies is noted for the claims.
  double domain(const Workload& w) {
    model::CpuSet others;
    for (const Workload& other : snap_.workloads)
      if (sensitive(other) && other.id != w.id) others |= other.cpus;
    const auto may_own = [&](const model::CpuSet& cpus) {
      double count = 0;
      for (const int cpu : cpus& given_)
        if (!domains_.reserved_cpus.contains(cpu) && (!w.allowed_cpus || w.allowed_cpus->contains(cpu)))
          count += 1;
      return count;
    };
    const auto room = [&](const model::CpuSet& cpus) {
      double left = may_own(cpus - others);
      for (const auto& [region, vcpus] : claims_)
        if (region.intersects(cpus)) left -= vcpus;
      return left;
    };
    const auto level_of = [&](std::size_t asked) {
      std::vector<model::CpuSet> list;
      for (const auto& level : {snap_.topology.domains(domains_.shared_domain), snap_.topology.sockets()}) {
        std::size_t most = 0;
        for (const auto& it : level) most = std::max(most, (it.cpus & given_).size());
        if (asked > most) continue;
        for (const auto& it : level) list.push_back(it.cpus & given_);
        return list;
      }
      if (domains_.allow_cross_socket && asked <= given_.size()) list.push_back(given_);
      return list;
    };
    double most = room(given_);
    if (w.vcpus) {
      std::vector<model::CpuSet> regions = level_of(static_cast<std::size_t>(*w.vcpus));
      if (!w.cpus.empty() && may_own(w.cpus) == static_cast<double>(w.cpus.size())) {
        for (const model::CpuSet& region : level_of(w.cpus.size()))
          if (w.cpus.is_subset_of(region)) {
            regions = {region};
            place_[w.id] = region;
            break;
          }
      }
      if (!regions.empty()) most = 0;
      for (const model::CpuSet& region : regions) most = std::max(most, room(region));
    }
    double node = static_cast<double>((given_ - others).size()) -
                  static_cast<double>(std::max(1, domains_.be_min_cpus));
    for (const auto& [region, vcpus] : claims_) node -= vcpus;
    return std::max(0.0, std::min(most, node));
  }

  bool seen_since(const Workload& w) const {
    const double third = third_.at(w.id);
    bool fine = !w.pinned_at || *w.pinned_at > snap_.time || *w.pinned_at <= third;
    for (const auto& h : {w.held_cpu, w.held_memory})
      if (h && h->cause == HeldCause::extended)
        fine = fine && (h->changed_at > snap_.time || h->changed_at <= third);
    return fine;
  }

  void decide(What what) {
    auto& limits = out_.limits[what];
    const auto change = [&](const Workload& w, std::optional<double> to) {
      if (to != limit(w, what)) limits[w.id] = to;
    };
    // Limits that go back at once.
    for (const Workload& w : snap_.workloads) {
      const auto h = held(w, what);
      if (!h) continue;
      const bool belongs = sensitive(w) == (h->cause == HeldCause::extended);
      bool wants = false;
      if (h->cause == HeldCause::lent && limit(w, what)) {
        wants = what == What::cpu && w.cpu_throttled && *w.cpu_throttled > 0.05;
        wants = wants || (!w.usage.empty() && uses(w, what).back() > 0 &&
                          uses(w, what).back() >= 0.95 * *limit(w, what));
      }
      if (!belongs || wants) change(w, original(w, what));
    }
    finish(what);
    // What is lacking.
    double sum = 0;
    const auto asked = [&](const model::PendingWorkload& p) {
      return what == What::cpu ? p.vcpus.value_or(0) : static_cast<double>(p.memory_request_bytes);
    };
    std::vector<std::pair<const model::PendingWorkload*, double>> awaited;
    for (const auto& p : snap_.pending) {
      if (p.workload_class != model::WorkloadClass::latency_sensitive) continue;
      sum += asked(p);
      const double room = what == What::cpu ? p.room_cpu_cores : static_cast<double>(p.room_memory_bytes);
      awaited.emplace_back(&p, std::min(asked(p), room));
    }
    // A limit that is taken back is lost from the last room that was made.
    for (const Workload& w : snap_.workloads) {
      const auto h = held(w, what);
      if (!h || !limits.contains(w.id) || h->cause != HeldCause::lent || sensitive(w)) continue;
      double recalled = distance(w, what);
      for (auto it = awaited.rbegin(); it != awaited.rend(); ++it) {
        const double lost = std::min(it->second, recalled);
        it->second -= lost;
        recalled -= lost;
      }
    }
    double room = 0;
    for (const auto& [p, made] : awaited) room += made;
    std::vector<std::pair<double, const Workload*>> waiting;
    std::map<std::string, double> wishes;
    for (const Workload& w : snap_.workloads) {
      const auto task = out_.tasks.find(w.id);
      if (task == out_.tasks.end() || !task->second.straggler || limits.contains(w.id)) continue;
      if (!seen_since(w) || !allocation(w, what)) continue;
      if (what == What::memory &&
          (!limit(w, what) || w.usage.empty() || uses(w, what).back() < 0.9 * *limit(w, what)))
        continue;
      if (what == What::cpu && !limit(w, what) && !by_vcpus(w, what)) continue;
      if (fixed(w, what) && !by_vcpus(w, what)) continue;
      waiting.emplace_back(*w.deadline, &w);
    }
    std::sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second->id < b.second->id;
    });
    for (const auto& [deadline, waits] : waiting) {
      const Workload& w = *waits;
      double e = *allocation(w, what) * (rho_.at(w.id) - 1);
      if (what == What::memory) e = std::floor(e);
      if (by_vcpus(w, what)) e = std::ceil(e - kTiny);
      if (e < least(w, what)) e = 0;
      wishes[w.id] = e;
      const double most = what == What::cpu ? domain(w) : capacity(what);
      e = std::max(0.0, std::min(e, most - *allocation(w, what)));
      if (e < least(w, what)) e = 0;
      out_.tasks[w.id].extension[what] = e;
      sum += e;
      if (what == What::memory || e <= 0 || !place_.contains(w.id)) continue;
      const double more = std::ceil(*allocation(w, what) + e - kTiny) - static_cast<double>(w.cpus.size());
      if (more > 0) claims_.emplace_back(place_.at(w.id), more);
    }
    out_.needed[what] = sum;
    double idle = capacity(what) - room;
    for (const Workload& w : snap_.workloads) {
      const auto back = limits.find(w.id);
      if (back == limits.end()) {
        idle -= counted(w, what);
      } else if (back->second) {
        idle -= *back->second;
      } else {
        Workload free = w;
        free.cpu_quota_cores.reset();
        free.memory_high_bytes.reset();
        idle -= std::max(counted(w, what), counted(free, what));
      }
    }
    idle = std::max(0.0, idle);
    out_.idle[what] = idle;
    // First, all that the payers could give is divided. Then they give as much as was granted.
    double have = idle;
    for (const auto& [id, amount] : collect(what, 1e300)) have += amount;
    double granted = 0;
    for (const auto& [deadline, w] : waiting) {
      Judged& task = out_.tasks[w->id];
      double gets = std::min(task.extension[what], have);
      if (task.extension[what] - gets <= kTiny) gets = task.extension[what];
      if (by_vcpus(*w, what)) gets = std::floor(gets + kTiny);
      if (gets < least(*w, what)) gets = 0;
      task.granted[what] = gets;
      granted += gets;
      have = std::max(0.0, have - gets);
      if (gets > kTiny && limit(*w, what)) limits[w->id] = *limit(*w, what) + gets;
      if (wishes[w->id] - gets >= (what == What::cpu ? kTiny : 1))
        out_.lacks[what][w->id] = wishes[w->id] - gets;
    }
    double lacking = 0;
    for (const auto& [p, made] : awaited) lacking += asked(*p) - made;
    const std::map<std::string, double> taken = collect(what, granted + std::min(lacking, have) - idle);
    have = idle - granted;
    for (const auto& [id, amount] : taken) have += amount;
    have = std::max(0.0, have);
    for (const Workload& w : snap_.workloads)
      if (taken.contains(w.id)) limits[w.id] = counted(w, what) - taken.at(w.id);
    for (const auto& [p, made] : awaited) {
      const double gained = std::min(asked(*p) - made, have);
      out_.room[what][p->id] = made + gained;
      have -= gained;
    }
    const bool quiet = !snap_.straggler_seen_at || snap_.time < *snap_.straggler_seen_at ||
                       snap_.time - *snap_.straggler_seen_at >= set_.restore_hold_s;
    const double all = capacity(what);
    const double spare = idle - (sum - room) - 0.05 * all;
    const bool calm = !any_ && quiet && sum <= 0;
    const double step = all > 0 ? set_.restore_step * all : 1e300;
    if (calm && step >= spare) {
      restore(what, step);
    } else if (spare > kTiny && spare >= min_change_ * all) {
      restore(what, spare);
    }
  }

  std::map<std::string, double> collect(What what, double missing) {
    std::map<std::string, double> taken;
    std::vector<std::pair<double, const Workload*>> lenders;
    std::vector<const Workload*> others;
    for (const Workload& w : snap_.workloads) {
      if (sensitive(w) || out_.limits[what].contains(w.id)) continue;
      if (!fixed(w, what)) others.push_back(&w);
      const auto a = allocation(w, what);
      if (!a || *a <= 0 || w.usage.empty()) continue;
      if (highest(w, what) / *a >= set_.expected_utilisation) continue;
      double spare = *a - highest(w, what) / set_.expected_utilisation;
      if (what == What::memory) spare = std::floor(spare);
      if (spare < kTiny) continue;
      if (fixed(w, what)) {
        out_.keeping.insert(w.id);
        continue;
      }
      if (w.pressed_at && what == What::memory) {
        out_.keeping.insert(w.id);
        continue;
      }
      if (w.pressed_at && snap_.time >= *w.pressed_at && snap_.time - *w.pressed_at < set_.restore_hold_s) {
        out_.keeping.insert(w.id);
        continue;
      }
      out_.reclaimable[what][w.id] = spare;
      lenders.emplace_back(spare, &w);
    }
    std::sort(lenders.begin(), lenders.end(), [](const auto& x, const auto& y) {
      return x.first != y.first ? x.first > y.first : x.second->id < y.second->id;
    });
    for (const auto& [spare, w] : lenders) {
      if (missing <= kTiny) break;
      const double keep = what == What::cpu ? 0.01 : std::max(16 * kMiB, std::ceil(1.1 * highest(*w, what)));
      const double amount = std::min({missing, spare, counted(*w, what) - keep});
      if (amount <= kTiny) continue;
      taken[w->id] += amount;
      missing -= amount;
    }
    const auto rest = [&](const Workload& w) {
      const double keep = what == What::cpu ? std::max(0.01, set_.preempt_floor_cores)
                                            : std::max(16 * kMiB, std::ceil(1.1 * uses(w, what).back()));
      return counted(w, what) - keep - (taken.contains(w.id) ? taken.at(w.id) : 0);
    };
    if (what == What::memory) std::erase_if(others, [](const Workload* w) { return w->usage.empty(); });
    // By what is left after lending: it is computed before any is preempted.
    std::vector<std::tuple<int, double, std::string, const Workload*>> order;
    for (const Workload* w : others) order.emplace_back(w->priority, -rest(*w), w->id, w);
    std::sort(order.begin(), order.end());
    for (const auto& [priority, less, id, w] : order) {
      if (missing <= kTiny) break;
      const double amount = std::min(missing, rest(*w));
      if (amount <= kTiny) continue;
      taken[w->id] += amount;
      missing -= amount;
    }
    return taken;
  }

  void finish(What what) {
    for (const Workload& w : snap_.workloads) {
      const auto h = held(w, what);
      if (!sensitive(w) || !h || h->cause != HeldCause::extended || out_.limits[what].contains(w.id))
        continue;
      const auto points = said(w);
      const bool none = !w.deadline || points.empty() || points.back().second >= 1;
      const bool quiet = !w.straggled_at || snap_.time < *w.straggled_at ||
                         snap_.time - *w.straggled_at >= set_.restore_hold_s;
      const auto task = out_.tasks.find(w.id);
      if (task != out_.tasks.end() && task->second.straggler) continue;
      if ((none || quiet) && limit(w, what) != original(w, what)) out_.limits[what][w.id] = original(w, what);
    }
  }

  void restore(What what, double left) {
    std::vector<const Workload*> order;
    for (const Workload& w : snap_.workloads) {
      if (sensitive(w) || !held(w, what) || !limit(w, what) || out_.limits[what].contains(w.id)) continue;
      if (limit(w, what) != original(w, what)) order.push_back(&w);
    }
    std::sort(order.begin(), order.end(), [&](const Workload* x, const Workload* y) {
      const bool px = held(*x, what)->cause == HeldCause::preempted;
      const bool py = held(*y, what)->cause == HeldCause::preempted;
      if (px != py) return px;
      if (held(*x, what)->since != held(*y, what)->since)
        return held(*x, what)->since < held(*y, what)->since;
      return x->id < y->id;
    });
    for (const Workload* w : order) {
      const double now = *limit(*w, what);
      const double goal = std::min(capacity(what), original(*w, what).value_or(capacity(what)));
      const double way = std::max(0.0, goal - now);
      if (way <= left + kTiny) {
        out_.limits[what][w->id] = original(*w, what);
        left = std::max(0.0, left - way);
      } else if (left > kTiny) {
        out_.limits[what][w->id] = now + left;
        left = 0;
      }
    }
  }

  const model::Snapshot& snap_;
  const StragglerSettings& set_;
  const InterferenceSettings& domains_;
  model::CpuSet given_;
  double min_change_;
  std::map<std::string, double> third_;
  std::map<std::string, double> rho_;
  std::map<std::string, model::CpuSet> place_;            // the region that a standing pin lies in
  std::vector<std::pair<model::CpuSet, double>> claims_;  // vCPUs set aside in a region
  bool any_ = false;
  Help out_;
};

}  // namespace

Help help(const model::Snapshot& snapshot, const PolicySettings& settings) {
  return Naive(snapshot, settings).run();
}

}  // namespace berth::policies::naive
