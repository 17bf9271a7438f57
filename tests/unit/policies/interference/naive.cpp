// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/naive.h"

#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace berth::policies::naive {

namespace {

constexpr double kTie = 1e-9;

struct Instance {
  std::string id;
  int asked = 0;
  double u = 0;
  double k1 = 0;
  double k2 = 0;
  const model::Workload* workload = nullptr;
  Cpus cpus;  // empty: not placed
  Cpus home;  // its domain's online vCPUs
};

Cpus minus(const Cpus& a, const Cpus& b) {
  Cpus rest;
  for (int c : a)
    if (!b.contains(c)) rest.insert(c);
  return rest;
}
bool subset(const Cpus& a, const Cpus& b) { return minus(a, b).empty(); }
bool meet(const Cpus& a, const Cpus& b) { return minus(a, b).size() < a.size(); }

class Naive {
 public:
  Naive(const model::Snapshot& snapshot, const InterferenceSettings& settings)
      : snap_(snapshot), set_(settings) {
    for (const model::Cpu& cpu : snap_.topology.cpus()) {
      if (!cpu.online) continue;
      cpu_[cpu.cpu] = cpu;
      online_.insert(cpu.cpu);
      if (cpu.allowed) allowed_.insert(cpu.cpu);
    }
    for (int c : testing::given_out(snapshot.topology, settings)) usable_.insert(c);
    bool llc_known = true;
    for (int c : allowed_) llc_known = llc_known && cpu_[c].llc.has_value();
    // Sockets of one core each are no boundary inside a NUMA node.
    std::map<int, std::set<int>> cores_of_socket, sockets_of_node;
    for (const auto& [c, cpu] : cpu_) {
      cores_of_socket[cpu.socket].insert(cpu.core);
      sockets_of_node[cpu.numa].insert(cpu.socket);
    }
    const auto one = [](const auto& it) { return it.second.size() == 1; };
    const bool lone = std::all_of(cores_of_socket.begin(), cores_of_socket.end(), one) &&
                      !std::all_of(sockets_of_node.begin(), sockets_of_node.end(), one);
    for (auto& [c, cpu] : cpu_) {
      if (lone) cpu.socket = cpu.numa;
    }
    const bool by_llc = llc_known && !lone && set_.shared_domain == model::DomainKind::llc;
    for (int c : allowed_) {
      sockets_[cpu_[c].socket];
      domains_[by_llc ? *cpu_[c].llc : cpu_[c].socket];
    }
    for (int c : online_) {
      if (sockets_.contains(cpu_[c].socket)) sockets_[cpu_[c].socket].insert(c);
      const int id = by_llc ? cpu_[c].llc.value_or(-1) : cpu_[c].socket;
      if (domains_.contains(id)) domains_[id].insert(c);
    }
    for (const model::Workload& w : snap_.workloads)
      if (w.workload_class == model::WorkloadClass::best_effort) be_use_ += mean_use(w);
    be_min_ = static_cast<std::size_t>(std::max(1, set_.be_min_cpus));
  }

  Outcome run() {
    collect();
    keep();
    return serve();
  }

  Outcome run_beside(const std::map<std::string, Cpus>& given) {
    collect();
    for (Instance& i : all_) {
      if (!given.contains(i.id)) continue;
      i.cpus = given.at(i.id);
      for (const Cpus& region : regions(i.asked))
        if (subset(i.cpus, region)) i.home = region;
    }
    return serve();
  }

  std::vector<Request> list() {
    collect();
    keep();
    std::vector<Request> list;
    for (const Instance& i : all_) {
      Request request;
      request.id = i.id;
      request.asked = i.asked;
      request.u = i.u;
      request.k1 = i.k1;
      request.k2 = i.k2;
      request.runs = i.workload != nullptr;
      request.kept = i.cpus;
      if (request.runs) {
        request.pinned_at = i.workload->pinned_at;
        request.resized = !i.cpus.empty() && i.workload->cpus.size() != i.cpus.size();
      }
      for (int c : online_)
        if (free_to(i, c)) request.may.insert(c);
      request.regions = regions(i.asked);
      list.push_back(request);
    }
    return list;
  }

 private:
  Outcome serve() {
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].cpus.empty()) place(i);
    report();
    return std::move(out_);
  }

  static double mean_use(const model::Workload& w) {
    double sum = 0;
    for (const auto& sample : w.usage) sum += sample.cpu_cores;
    return w.usage.empty() ? 0 : sum / static_cast<double>(w.usage.size());
  }

  double pressure(const std::string& service) {
    const auto given = snap_.services.find(service);
    if (given != snap_.services.end() && given->second.pressure) return *given->second.pressure;
    std::vector<double> each;
    for (const model::Workload& w : snap_.workloads) {
      if (w.service != service || w.workload_class != model::WorkloadClass::latency_sensitive) continue;
      if (!w.usage.empty() && w.vcpus && *w.vcpus > 0) each.push_back(mean_use(w) / *w.vcpus);
    }
    if (each.empty()) return 0.5;
    double sum = 0;
    for (double u : each) sum += u;
    return std::min(1.0, std::max(0.0, sum / static_cast<double>(each.size())));
  }

  // A pin would cut it. Measurements of a pinned one may be a tenth too high, others 2 %.
  static bool uses_more(const model::Workload& w, int vcpus) {
    const bool pinned = std::cmp_equal(w.cpus.size(), vcpus);
    return !w.force && mean_use(w) > vcpus * (pinned ? 1.1 : 1.02);
  }

  void add(const std::string& id, const std::string& service, std::optional<int> vcpus,
           const model::Workload* workload) {
    if (!vcpus || (workload != nullptr && uses_more(*workload, *vcpus))) {
      out_.unplaceable.insert(id);
      return;
    }
    model::InterferenceModel m = set_.default_model;
    const auto given = snap_.services.find(service);
    if (given != snap_.services.end() && given->second.model) m = *given->second.model;
    all_.push_back({id, *vcpus, pressure(service), m.k1, m.k2, workload, {}, {}});
  }

  void collect() {
    std::vector<const model::Workload*> ls;
    for (const model::Workload& w : snap_.workloads)
      if (w.workload_class == model::WorkloadClass::latency_sensitive) ls.push_back(&w);
    std::sort(ls.begin(), ls.end(),
              [](auto* a, auto* b) { return std::tie(a->created, a->id) < std::tie(b->created, b->id); });
    for (const auto* w : ls) add(w->id, w->service, w->vcpus, w);
    for (const auto& p : snap_.pending)
      if (p.workload_class == model::WorkloadClass::latency_sensitive) add(p.id, p.service, p.vcpus, nullptr);
  }

  std::size_t usable_in(const Cpus& region) const { return region.size() - minus(region, usable_).size(); }

  // The regions a request of this size may lie in, in order; none where it is too large.
  std::vector<Cpus> regions(int asked) const {
    const auto fitting = [&](const std::map<int, Cpus>& level) {
      std::vector<Cpus> list;
      bool fits = false;
      for (const auto& [id, cpus] : level) {
        list.push_back(cpus);
        fits = fits || std::cmp_greater_equal(usable_in(cpus), asked);
      }
      return fits ? list : std::vector<Cpus>();
    };
    if (const auto list = fitting(domains_); !list.empty()) return list;
    if (const auto list = fitting(sockets_); !list.empty()) return list;
    if (set_.allow_cross_socket && std::cmp_greater_equal(usable_.size(), asked)) return {online_};
    return {};
  }

  Cpus owned() const {
    Cpus cpus;
    for (const Instance& i : all_) cpus.insert(i.cpus.begin(), i.cpus.end());
    return cpus;
  }

  bool free_to(const Instance& instance, int c) const {
    if (!usable_.contains(c) || set_.reserved_cpus.contains(c)) return false;
    return instance.workload == nullptr || !instance.workload->allowed_cpus ||
           instance.workload->allowed_cpus->contains(c);
  }

  // The old pins: those of the right size stay, those too large give vCPUs up, the others do not stand. Of
  // two that overlap the earlier one counts.
  void keep() {
    Cpus claimed;
    std::size_t keeping = 0;
    std::vector<std::size_t> too_large;
    for (std::size_t which = 0; which < all_.size(); ++which) {
      Instance& instance = all_[which];
      if (instance.workload == nullptr || instance.asked <= 0) continue;
      Cpus pin;
      for (int c : instance.workload->cpus) pin.insert(c);
      const auto asked = static_cast<std::size_t>(instance.asked);
      bool fine = pin.size() >= asked && !meet(pin, claimed);
      for (int c : pin) fine = fine && free_to(instance, c) && capacity(c) == capacity(*pin.begin());
      fine = fine && usable_.size() >= keeping + asked + be_min_;
      if (!fine) continue;
      for (const Cpus& region : regions(instance.asked)) {
        const std::size_t inside = pin.size() - minus(pin, region).size();
        if (pin.size() == asked ? !subset(pin, region) : inside < asked) continue;
        claimed.insert(pin.begin(), pin.end());
        keeping += asked;
        if (pin.size() > asked) {
          too_large.push_back(which);
        } else {
          instance.cpus = pin;
          instance.home = region;
        }
        break;
      }
    }
    for (const std::size_t which : too_large) {
      Cpus pin;
      for (int c : all_[which].workload->cpus) pin.insert(c);
      best_window(which, minus(online_, pin), 1);
    }
  }

  // Rank of a vCPU among the allowed threads of its core, and the lowest of these.
  std::pair<int, int> rank_and_core(int c) const {
    int rank = 0;
    int lowest = c;
    for (int other : allowed_) {
      if (cpu_.at(other).core != cpu_.at(c).core) continue;
      if (other < c) ++rank;
      lowest = std::min(lowest, other);
    }
    return {rank, lowest};
  }

  int capacity(int c) const { return cpu_.at(c).efficiency.value_or(-1); }

  // On the fastest kind of cores that has room.
  void place(std::size_t which) {
    const int asked = all_[which].asked;
    if (asked <= 0 || usable_.size() < owned().size() + static_cast<std::size_t>(asked) + be_min_) return;
    const auto step = static_cast<std::size_t>(set_.window_step);
    std::set<int, std::greater<>> kinds;
    for (int c : usable_) kinds.insert(capacity(c));
    for (const int kind : kinds) {
      Cpus taken = owned();
      for (int c : online_)
        if (capacity(c) != kind) taken.insert(c);
      if (const Cpus near = near_gpus(all_[which]); !near.empty()) {
        Cpus elsewhere = minus(online_, near);
        elsewhere.insert(taken.begin(), taken.end());
        best_window(which, elsewhere, step);
      }
      if (all_[which].cpus.empty()) best_window(which, taken, step);
      if (!all_[which].cpus.empty()) return;
    }
  }

  // The vCPUs on the NUMA nodes of the GPUs that it has, alone or with others.
  Cpus near_gpus(const Instance& instance) const {
    Cpus near;
    if (instance.workload == nullptr) return near;
    for (const model::Gpu& gpu : snap_.topology.gpus()) {
      const auto& used = instance.workload->gpus;
      if (gpu.holder != instance.id && std::count(used.begin(), used.end(), gpu.id) == 0) continue;
      for (int c : online_)
        if (gpu.numa == cpu_.at(c).numa) near.insert(c);
    }
    return near;
  }

  // The least score of all windows of its regions, in vCPUs that are not `taken`.
  void best_window(std::size_t which, const Cpus& taken, std::size_t step) {
    const int asked = all_[which].asked;
    std::optional<double> best;
    Cpus best_cpus;
    Cpus best_home;
    for (const Cpus& region : regions(asked)) {
      std::vector<int> order;
      for (int c : minus(region, taken))
        if (free_to(all_[which], c)) order.push_back(c);
      std::sort(order.begin(), order.end(),
                [&](int a, int b) { return rank_and_core(a) < rank_and_core(b); });
      for (std::size_t at = 0; at + static_cast<std::size_t>(asked) <= order.size(); at += step) {
        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(at);
        all_[which].cpus = Cpus(begin, begin + asked);
        all_[which].home = region;
        const double score = domain_score(region);
        if (!best || score < *best - kTie) {
          best = score;
          best_cpus = all_[which].cpus;
          best_home = region;
        }
        all_[which].cpus.clear();
      }
    }
    all_[which].cpus = best_cpus;
    all_[which].home = best_home;
  }

  bool same_core(int a, int b) const { return cpu_.at(a).core == cpu_.at(b).core; }
  bool on_cores_of(int c, const Cpus& cpus) const {
    return std::any_of(cpus.begin(), cpus.end(), [&](int d) { return same_core(c, d); });
  }

  Cpus pool() const {
    const Cpus rest = minus(usable_, owned());
    if (!set_.be_avoid_siblings) return rest;
    Cpus spared;
    for (int c : rest)
      if (!on_cores_of(c, owned())) spared.insert(c);
    return spared.size() >= be_min_ ? spared : rest;
  }

  double pool_use() const { return std::min(1.0, be_use_ / static_cast<double>(pool().size())); }

  // Pressure of whatever runs on each online vCPU.
  std::map<int, double> pressures() const {
    std::map<int, double> u;
    for (int c : online_) u[c] = 0;
    const double use = pool_use();
    for (int c : pool()) u[c] = use;
    for (const Instance& i : all_)
      for (int c : i.cpus) u[c] = i.u;
    return u;
  }

  Score score_of(const Instance& i, const std::map<int, double>& u) const {
    Score s;
    if (set_.weighting == Weighting::request) {
      double sc_sum = 0, sc_count = 0, ss_sum = 0, ss_count = 0;
      for (const Instance& j : all_) {
        if (&i == &j || j.cpus.empty()) continue;
        const bool shares_core =
            std::any_of(j.cpus.begin(), j.cpus.end(), [&](int c) { return on_cores_of(c, i.cpus); });
        if (shares_core) {
          sc_sum += j.asked * j.u;
          sc_count += j.asked;
        } else if (meet(j.cpus, i.home)) {
          ss_sum += j.asked * j.u;
          ss_count += j.asked;
        }
      }
      s.cpu_sc = sc_count > 0 ? sc_sum / sc_count : 0;
      s.cpu_ss = ss_count > 0 ? ss_sum / ss_count : 0;
    } else {
      double sc = 0, ss = 0, others = 0;
      for (int c : i.cpus)
        for (int sibling : online_)
          if (sibling != c && same_core(sibling, c)) sc += u.at(sibling);
      for (int c : i.home) {
        if (on_cores_of(c, i.cpus)) continue;
        ss += u.at(c);
        others += 1;
      }
      s.cpu_sc = sc / i.asked;
      s.cpu_ss = others > 0 ? ss / others : 0;
    }
    s.score = i.k1 * s.cpu_sc + i.k2 * s.cpu_ss;
    return s;
  }

  double domain_score(const Cpus& region) const {
    const std::map<int, double> u = pressures();
    double sum = 0;
    for (const Instance& i : all_) {
      const std::size_t inside = i.cpus.size() - minus(i.cpus, region).size();
      if (inside > 0) sum += static_cast<double>(inside) * score_of(i, u).score;
    }
    return sum / static_cast<double>(region.size());
  }

  // Everybody everywhere: each placed instance looks about from each usable vCPU in turn.
  std::optional<double> unpinned() const {
    double load = std::min(be_use_, static_cast<double>(online_.size()));
    for (const Instance& i : all_)
      if (!i.cpus.empty()) load += i.asked * i.u;
    const double even = std::min(1.0, load / static_cast<double>(online_.size()));
    double node = 0;
    for (const Instance& i : all_) {
      if (i.cpus.empty()) continue;
      for (int c : usable_) {
        double on_core = 0, in_domain = 0;
        const bool sibling =
            std::any_of(online_.begin(), online_.end(), [&](int d) { return d != c && same_core(c, d); });
        bool domain = false;
        for (const auto& [id, cpus] : domains_)
          domain = domain || (cpus.contains(c) &&
                              std::any_of(cpus.begin(), cpus.end(), [&](int d) { return !same_core(c, d); }));
        if (set_.weighting == Weighting::overlap) {
          for (int d : online_)
            if (d != c && same_core(c, d)) on_core += even;
          if (domain) in_domain = even;
        } else {
          double sum = 0, count = 0;
          for (const Instance& j : all_) {
            if (&i == &j || j.cpus.empty()) continue;
            sum += j.asked * j.u;
            count += j.asked;
          }
          const double others = count > 0 ? sum / count : 0;
          if (sibling)
            on_core = others;
          else if (domain)
            in_domain = others;
        }
        node += i.asked * (i.k1 * on_core + i.k2 * in_domain) / static_cast<double>(usable_.size());
      }
    }
    if (out_.placed.empty()) return std::nullopt;
    return node / static_cast<double>(online_.size());
  }

  void report() {
    const std::map<int, double> u = pressures();
    for (const Instance& i : all_) {
      if (i.cpus.empty()) {
        out_.unplaceable.insert(i.id);
        continue;
      }
      out_.placed[i.id] = i.cpus;
      out_.scores[i.id] = score_of(i, u);
      out_.node += i.asked * score_of(i, u).score / static_cast<double>(online_.size());
    }
    out_.node_unpinned = unpinned();
    for (const auto& [id, cpus] : domains_) out_.domains[id] = domain_score(cpus);
    out_.pool = pool();
    out_.pool_utilisation = pool_use();
  }

  const model::Snapshot& snap_;
  const InterferenceSettings& set_;
  std::map<int, model::Cpu> cpu_;
  Cpus online_, allowed_, usable_;  // given out of those that berth may use
  std::map<int, Cpus> domains_, sockets_;
  std::vector<Instance> all_;
  double be_use_ = 0;
  std::size_t be_min_ = 1;
  Outcome out_;
};

}  // namespace

Outcome place(const model::Snapshot& snapshot, const InterferenceSettings& settings) {
  return Naive(snapshot, settings).run();
}

Outcome place_beside(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                     const std::map<std::string, Cpus>& given) {
  return Naive(snapshot, settings).run_beside(given);
}

std::vector<Request> requests(const model::Snapshot& snapshot, const InterferenceSettings& settings) {
  return Naive(snapshot, settings).list();
}

}  // namespace berth::policies::naive
