// SPDX-License-Identifier: Apache-2.0
// Why the bound holds.
//
// If it is known who shares a domain of N vCPUs, the pressure S in it is known. An instance of r vCPUs with
// pressure u, which has c cores alone and mates with a pressure of m together on its other cores, pays
//
//     k1 * (m + 2c * u) + g(c) * (S - r * u - m),      g(c) = r * k2 / (N - 2r + 2c)
//
// With a(c) = k1 - g(c), that is h(c) + a(c) * m, if h(c) = 2c * u * k1 + g(c) * (S - r * u). So two vCPUs of
// instances i and j on one core pay a_i * u_j + a_j * u_i. Let y be any prices, one for each instance, and c'
// any choice of own cores. The pair then pays y_i + y_j, and
//
//     (a_i(c_i) - a_i(c'_i)) * u_j + slack / 2         for i, and the same for j
//     slack = a_i(c'_i) * u_j + a_j(c'_j) * u_i - y_i - y_j
//
// So an instance with c own cores pays h(c), (r - 2c) * y, and this sum for r - 2c mates, which is least for
// the cheapest ones in the domain. The least of that over c is a bound for the instance by itself. The vCPUs
// without an owner pay their price, and leave the slack to their mates.
//
// The prices of matching.h make these bounds high, and the choices c' near the best ones. Branch and bound
// divides the choices of c until they are c'. The prices of all instances together, as if they shared one
// domain, are a bound for each set of instances that fits into a domain, at a low cost. The partition into
// such sets with the least sum is then found exactly. Its sets get prices of their own, until the best
// partition has no others.
#include "policies/vcpus/optimal/domain_bounds.h"

#include "policies/vcpus/optimal/matching.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>
#include <utility>

namespace berth::policies::optimal {

namespace {

constexpr double kNoPair = 1e6;  // the weight of a pair that cannot be

// Sets the costs of mates at this rate of pressure, and sorts them.
void sort_by_cost(double rate, std::vector<Mate>& mates) {
  for (Mate& mate : mates) mate.cost = rate * mate.pressure + mate.slack;
  std::sort(mates.begin(), mates.end(), [](const Mate& a, const Mate& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.member < b.member;
  });
}

}  // namespace

double Shape::rate(const Member& it, int own) const {
  const int outside = size - threads * it.vcpus + 2 * own;
  return outside > 0 ? it.vcpus * it.k2 / outside : 0.0;
}

double Shape::fixed(const Member& it, int own, double load) const {
  return 2 * own * it.pressure * it.k1 + rate(it, own) * (load - it.vcpus * it.pressure);
}

std::optional<Shape> shape_of(const Ground& ground, const Places& places) {
  const Node& node = ground.node();
  const bool fixed_pool = ground.weighting() == Weighting::overlap && !ground.best_effort().avoid_siblings;
  if (!fixed_pool || ground.spanning()) return std::nullopt;
  if (node.domain_count() == 0 || node.usable_count() != node.size()) return std::nullopt;
  Shape shape{.domains = node.domain_count(),
              .size = node.size() / node.domain_count(),
              .threads = static_cast<int>(node.core_threads(0).size()),
              .pooled = node.size()};
  for (int domain = 0; domain < shape.domains; ++domain) {
    if (static_cast<int>(node.region(domain).cpus.size()) != shape.size) return std::nullopt;
  }
  for (int core = 0; core < node.core_count(); ++core) {
    if (static_cast<int>(node.core_threads(core).size()) != shape.threads) return std::nullopt;
  }
  if (shape.threads > 2 || shape.domains * shape.size != node.size()) return std::nullopt;
  for (const Place& place : places) shape.pooled -= static_cast<int>(place.cpus.size());
  shape.busy = pool_state(shape.pooled, 0, ground.best_effort()).utilisation;
  return shape;
}

DomainBounds::DomainBounds(const Ground& ground, const Places& places, const Shape& shape, Work& work)
    : shape_(shape), work_(work) {
  for (int tenant = 0; tenant < static_cast<int>(places.size()); ++tenant) {
    if (!places[tenant].taken()) continue;
    const Tenant& it = ground.tenant(tenant);
    members_.push_back(
        {.tenant = tenant, .vcpus = it.vcpus, .pressure = it.pressure, .k1 = it.model.k1, .k2 = it.model.k2});
  }
  std::stable_sort(members_.begin(), members_.end(),
                   [](const Member& a, const Member& b) { return a.vcpus > b.vcpus; });
  for (const Member& it : members_) {
    const int fewest = shape_.threads == 2 ? std::max(0, it.vcpus - shape_.size / 2) : 0;
    const int most = shape_.threads == 2 ? it.vcpus / 2 : 0;
    any_own_.push_back({.fewest = fewest, .most = most, .reference = fewest});
  }
}

Company DomainBounds::company(List list) const {
  Company it{.list = std::move(list), .pooled = shape_.size};
  for (const int i : it.list) it.pooled -= members_[i].vcpus;
  it.load = it.pooled * shape_.busy;
  for (const int i : it.list) it.load += members_[i].vcpus * members_[i].pressure;
  return it;
}

Company DomainBounds::everyone() const {
  Company it{.list = List(members_.size()), .pooled = shape_.pooled, .load = shape_.pooled * shape_.busy};
  std::iota(it.list.begin(), it.list.end(), 0);
  for (const Member& member : members_) it.load += member.vcpus * member.pressure;
  it.load /= shape_.domains;
  return it;
}

Prices DomainBounds::prices(const Company& company, std::vector<Own> own) {
  Prices prices{.own = std::move(own), .member = std::vector<double>(members_.size(), 0.0)};
  if (shape_.threads == 1) return prices;
  // Behind the members and the pool come the own cores of each: things that only it may have.
  const List& list = company.list;
  work_.spend(0.5 * static_cast<double>(list.size()));
  const auto pool = static_cast<int>(list.size());
  std::vector<int> counts;
  std::vector<std::pair<int, double>> alone;  // whose, and the price of half a core
  std::vector<int> alone_counts;
  for (int at = 0; at < pool; ++at) {
    const Member& it = members_[list[at]];
    const Own& may = prices.own[list[at]];
    counts.push_back(it.vcpus - 2 * may.fewest);
    const int cores = may.most - may.fewest;
    if (cores == 0) continue;
    const double more = guess(it, company, may, may.most) - guess(it, company, may, may.fewest);
    alone.emplace_back(at, more / (2 * cores));
    alone_counts.push_back(2 * cores);
  }
  counts.push_back(company.pooled);
  counts.insert(counts.end(), alone_counts.begin(), alone_counts.end());

  const auto rate = [&](int at) { return at == pool ? 0.0 : mate_rate(list[at], prices); };
  const auto loud = [&](int at) { return at == pool ? shape_.busy : members_[list[at]].pressure; };
  const auto kinds = static_cast<int>(counts.size());
  PairWeights weights(kinds);
  for (int a = 0; a < kinds; ++a) {
    for (int b = a; b < kinds; ++b) {
      double weight = a >= pool && (b > pool) == (a > pool) ? 0.0 : kNoPair;
      if (b <= pool && a != b) weight = rate(a) * loud(b) + rate(b) * loud(a);
      weights.set(a, b, weight);
    }
  }
  for (int i = 0; i < static_cast<int>(alone.size()); ++i)
    weights.set(alone[i].first, pool + 1 + i, alone[i].second);
  const std::vector<double> found = pair_prices(counts, weights, work_);
  for (int at = 0; at < pool; ++at) prices.member[list[at]] = found[at];
  prices.pool = std::min(0.0, found[pool]);
  return prices;
}

double DomainBounds::bound(const Company& company, const Prices& prices, std::vector<int>& cheapest) {
  double sum = company.pooled * prices.pool;
  for (const int i : company.list) {
    const Member& it = members_[i];
    const Own& may = prices.own[i];
    std::vector<Mate> found = mates(i, company, prices);
    double least = kNoBound;
    for (int own = may.fewest; own <= may.most; ++own) {
      double cost = shape_.fixed(it, own, company.load);
      int shared = shape_.threads == 2 ? it.vcpus - 2 * own : 0;
      cost += shared * prices.member[i];
      sort_by_cost(shape_.mate_rate(it, own) - mate_rate(i, prices), found);
      for (auto mate = found.begin(); mate != found.end() && shared > 0; ++mate) {
        const int some = std::min(shared, mate->vcpus);
        cost += some * mate->cost;
        shared -= some;
      }
      if (cost >= least) continue;
      least = cost;
      cheapest[i] = own;
    }
    sum += least;
  }
  return std::max(0.0, sum);
}

// A part of the choices of own cores.
struct DomainBounds::Branch {
  double bound = 0;
  std::vector<Own> own;
  std::vector<int> cheapest;
  int width(int member) const { return own[member].most - own[member].fewest; }
  // The one with the least bound comes first.
  bool operator<(const Branch& other) const { return bound > other.bound; }
};

DomainBounds::Branch DomainBounds::branch(const Company& company, std::vector<Own> own, double least) {
  Branch found{.bound = least, .own = std::move(own), .cheapest = std::vector<int>(members_.size(), 0)};
  found.bound = std::max(least, bound(company, prices(company, found.own), found.cheapest));
  return found;
}

double DomainBounds::best_bound(const Company& company, const std::vector<Own>& first, int branches,
                                double enough) {
  std::priority_queue<Branch> open;
  open.push(branch(company, first, 0));
  for (; branches > 0 && work_.left() > 0 && open.top().bound < enough; --branches) {
    const Branch parent = open.top();
    int widest = company.list.front();
    for (const int i : company.list) {
      if (parent.width(i) > parent.width(widest)) widest = i;
    }
    if (parent.width(widest) == 0) break;
    open.pop();
    const Own whole = parent.own[widest];
    const int at = parent.cheapest[widest];
    for (const auto& [fewest, most] : {std::pair(whole.fewest, at - 1), {at, at}, {at + 1, whole.most}}) {
      if (fewest > most) continue;
      std::vector<Own> own = parent.own;
      own[widest] = {.fewest = fewest, .most = most};
      for (const int i : company.list)
        own[i].reference = std::clamp(parent.cheapest[i], own[i].fewest, own[i].most);
      open.push(branch(company, std::move(own), parent.bound));
    }
  }
  return open.top().bound;
}

// About what a member pays beside its prices, with mates of the mean pressure.
double DomainBounds::guess(const Member& it, const Company& company, const Own& may, int own) const {
  const double mean = (company.load - it.vcpus * it.pressure) / std::max(1, shape_.size - it.vcpus);
  const double more = shape_.mate_rate(it, own) - shape_.mate_rate(it, may.reference);
  return shape_.fixed(it, own, company.load) + more * (it.vcpus - 2 * own) * mean;
}

std::vector<Mate> DomainBounds::mates(int member, const Company& company, const Prices& prices) const {
  const Member& it = members_[member];
  const double rate = mate_rate(member, prices);
  std::vector<Mate> found;
  for (const int other : company.list) {
    if (other == member) continue;
    const Member& mate = members_[other];
    const double slack = rate * mate.pressure + mate_rate(other, prices) * it.pressure -
                         prices.member[member] - prices.member[other];
    found.push_back({.member = other, .vcpus = mate.vcpus, .pressure = mate.pressure, .slack = slack / 2});
  }
  if (company.pooled == 0) return found;
  const double slack = rate * shape_.busy - prices.member[member] - prices.pool;
  found.push_back({.member = static_cast<int>(members_.size()),
                   .vcpus = company.pooled,
                   .pressure = shape_.busy,
                   .slack = slack});
  return found;
}

SetBounds::SetBounds(const DomainBounds& domain, const Prices& prices)
    : shape_(domain.shape()), members_(domain.members()), pool_(prices.pool) {
  const Company all = domain.everyone();
  for (const int i : all.list) {
    const Member& it = members_[i];
    std::vector<Choice>& choices = choices_.emplace_back();
    for (int own = prices.own[i].fewest; own <= prices.own[i].most; ++own) {
      Choice& choice = choices.emplace_back();
      choice.shared = shape_.threads == 2 ? it.vcpus - 2 * own : 0;
      choice.alone = shape_.fixed(it, own, 0) + choice.shared * prices.member[i];
      choice.rate = shape_.rate(it, own);
      choice.mates = domain.mates(i, all, prices);
      sort_by_cost(shape_.mate_rate(it, own) - domain.mate_rate(i, prices), choice.mates);
    }
  }
}

double SetBounds::bound(Set set) const {
  int pooled = shape_.size;
  double load = 0;
  for (Set rest = set; rest != 0; rest &= rest - 1) {
    const Member& it = members_[std::countr_zero(rest)];
    pooled -= it.vcpus;
    load += it.vcpus * it.pressure;
  }
  load += pooled * shape_.busy;
  const Set present = set | one(static_cast<int>(members_.size()));
  double sum = pooled * pool_;
  for (Set rest = set; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    double least = kNoBound;
    for (const Choice& choice : choices_[i]) {
      double cost = choice.alone + choice.rate * load;
      int shared = choice.shared;
      for (auto mate = choice.mates.begin(); shared > 0 && mate != choice.mates.end(); ++mate) {
        if ((present & one(mate->member)) == 0) continue;
        const bool pool = mate->member == static_cast<int>(members_.size());
        const int some = std::min(shared, pool ? pooled : mate->vcpus);
        cost += some * mate->cost;
        shared -= some;
      }
      least = std::min(least, cost);
    }
    sum += least;
  }
  return std::max(0.0, sum);
}

}  // namespace berth::policies::optimal
