// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/optimal/ground.h"
#include "policies/vcpus/optimal/work.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace berth::policies::optimal {

// Members of a set, by number, ascending; or as bits.
using List = std::vector<int>;
using Set = std::uint32_t;
inline Set one(int member) { return Set{1} << static_cast<unsigned>(member); }

inline constexpr double kNoBound = std::numeric_limits<double>::infinity();

// A tenant in its domain.
struct Member {
  int tenant = 0;
  int vcpus = 0;
  double pressure = 0;
  double k1 = 0;
  double k2 = 0;
};

// Domains that are all alike. The vCPUs without an owner have one pressure.
struct Shape {
  int domains = 0;
  int size = 0;     // vCPUs of each
  int threads = 0;  // of a core: one or two
  int pooled = 0;   // vCPUs without an owner, of all domains
  double busy = 0;  // their pressure

  // g, a and h of domain_bounds.cpp. `own`: cores that the member has alone.
  double rate(const Member& it, int own) const;
  double mate_rate(const Member& it, int own) const { return it.k1 - rate(it, own); }
  double fixed(const Member& it, int own, double load) const;
};

// Those of the node beside the tenants that `places` has. nullopt where domains or cores are not alike, berth
// may not use a vCPU, or a tenant spans domains.
std::optional<Shape> shape_of(const Ground& ground, const Places& places);

// How many cores of its own a member may have, and the c' of domain_bounds.cpp.
struct Own {
  int fewest = 0;
  int most = 0;
  int reference = 0;
};

// Some members that share a domain.
struct Company {
  List list;
  int pooled = 0;   // vCPUs there without an owner
  double load = 0;  // S
};

struct Prices {
  std::vector<Own> own;        // by member
  std::vector<double> member;  // of one of its vCPUs
  double pool = 0;             // of a vCPU without an owner; at most 0
};

// One that an instance may share cores with.
struct Mate {
  int member = 0;  // the pool comes last
  int vcpus = 0;
  double pressure = 0;
  double slack = 0;
  double cost = 0;
};

// Lower bounds of what the members of one domain pay. domain_bounds.cpp says why they hold.
class DomainBounds {
 public:
  // Of the tenants that `places` has; the largest is the first member.
  DomainBounds(const Ground& ground, const Places& places, const Shape& shape, Work& work);

  const std::vector<Member>& members() const { return members_; }
  const Shape& shape() const { return shape_; }
  // Any own cores that a domain has room for.
  const std::vector<Own>& any_own() const { return any_own_; }

  Company company(List list) const;
  // All members, with the load of the mean domain.
  Company everyone() const;

  // Prices that make the bound high.
  Prices prices(const Company& company, std::vector<Own> own);
  // The bound by any prices. `cheapest`: the own cores of each member then.
  double bound(const Company& company, const Prices& prices, std::vector<int>& cheapest);
  // By prices of its own, with these references first. It divides the choices of own cores by branch and
  // bound, until the bound is `enough` or there are so many branches.
  double best_bound(const Company& company, const std::vector<Own>& first, int branches, double enough);

  // Those beside which a member may lie, by these prices.
  std::vector<Mate> mates(int member, const Company& company, const Prices& prices) const;
  // a(c')
  double mate_rate(int member, const Prices& prices) const {
    return shape_.mate_rate(members_[member], prices.own[member].reference);
  }

 private:
  struct Branch;
  Branch branch(const Company& company, std::vector<Own> own, double least);
  double guess(const Member& it, const Company& company, const Own& may, int own) const;

  const Shape& shape_;
  Work& work_;
  std::vector<Member> members_;
  std::vector<Own> any_own_;
};

// The bounds of many sets by the same prices. Each costs little.
class SetBounds {
 public:
  SetBounds(const DomainBounds& domain, const Prices& prices);
  double bound(Set set) const;

 private:
  // A number of own cores of a member.
  struct Choice {
    double alone = 0;         // what it pays beside its mates, if the domain has no load
    double rate = 0;          // g
    int shared = 0;           // its vCPUs on other cores
    std::vector<Mate> mates;  // the cheapest first
  };

  const Shape& shape_;
  const std::vector<Member>& members_;
  double pool_ = 0;
  std::vector<std::vector<Choice>> choices_;  // by member
};

}  // namespace berth::policies::optimal
