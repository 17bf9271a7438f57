// SPDX-License-Identifier: Apache-2.0
#include "spark/claims.h"

#include <algorithm>

#include <fmt/core.h>

namespace berth::spark {

namespace {

using User = std::optional<uid_t>;
using Executors = std::map<User, std::vector<const Process*>>;  // of one application, by user

std::string text_of(User user) { return user ? fmt::format("user {}", *user) : "an unknown user"; }

bool listens_at(const std::vector<std::string>& endpoints, const std::string& address) {
  if (endpoints.size() >= DriverPlace::kMostEndpoints) return true;  // the rest is not known
  const std::string port = address.substr(address.rfind(':'));
  return std::any_of(endpoints.begin(), endpoints.end(),
                     [&](const std::string& endpoint) { return endpoint.ends_with(port); });
}

class Judge {
 public:
  explicit Judge(const std::set<UserAddress>& listening) : listening_(listening) {}

  // Why the driver is not that of these executors, which belong to one user; empty where it may be.
  std::string objection(const Claim& claim, User user, const std::vector<const Process*>& executors) const {
    for (const Process* executor : executors) {
      const std::string& address = executor->what.driver;
      const auto refuse = [&](const std::string& why) {
        return fmt::format("it claims {}, but executor {} (pid {}) has its driver at {}, {}", claim.app,
                           executor->what.executor, executor->pid, address.empty() ? "no address" : address,
                           why);
      };
      if (address.empty() && user == claim.user) continue;
      if (!claim.user || listening_.count({*claim.user, address}) == 0)
        return refuse(fmt::format("where {} has no socket of this host", text_of(claim.user)));
      if (user != claim.user && owners(address) > 1) return refuse("where sockets of several users listen");
      if (claim.endpoints && !listens_at(*claim.endpoints, address))
        return refuse("where another process listens");
    }
    return "";
  }

 private:
  std::size_t owners(const std::string& address) const {
    return static_cast<std::size_t>(
        std::count_if(listening_.begin(), listening_.end(),
                      [&](const UserAddress& each) { return each.second == address; }));
  }

  const std::set<UserAddress>& listening_;
};

}  // namespace

Claims::Claims(const std::vector<Claim>& claims, const std::vector<Process>& processes,
               const std::set<UserAddress>& listening) {
  std::map<std::string, Executors> executors;
  for (const Process& process : processes) {
    if (process.what.kind != ProcessKind::executor) continue;
    executors[process.what.app][process.user].push_back(&process);
    users_[process.what.app].insert(process.user);
  }
  const Judge judge(listening);
  // Claims without an objection, by application and by the user of its executors, if there are any.
  std::map<std::pair<std::string, std::optional<User>>, std::vector<const Claim*>> left;
  for (const Claim& claim : claims) {
    const Executors& its = executors[claim.app];
    const bool own = claim.user && its.count(claim.user) > 0;
    std::vector<User> of;
    std::string why;
    for (const auto& [user, each] : its) {
      if (own && user != claim.user) continue;
      const std::string objection = judge.objection(claim, user, each);
      if (objection.empty()) of.push_back(user);
      if (why.empty()) why = objection;
    }
    if (of.size() > 1)
      why = fmt::format("it claims {}, and executors of several users here do so, too", claim.app);
    if (!its.empty() && of.size() != 1) {
      why_not_.emplace(ProcessId{claim.pid, claim.started}, why);
      continue;
    }
    users_[claim.app].insert(claim.user);
    const std::optional<User> executors_user = its.empty() ? std::nullopt : std::optional<User>(of.front());
    if (executors_user && *executors_user != claim.user) parties_[claim.app][*executors_user] = claim.user;
    if (claim.fresh) left[{claim.app, executors_user}].push_back(&claim);
  }
  for (const auto& [of, same] : left) {
    if (same.size() > 1) continue;  // at least one is wrong
    believed_.emplace(same.front()->pid, same.front()->started);
    believed_users_[of.first].insert(same.front()->user);
  }
}

// The user that stands for the application: that of the driver, if the user's executors belong to it.
Claims::User Claims::party_of(User user, const std::string& app) const {
  const auto parties = parties_.find(app);
  if (parties == parties_.end()) return user;
  const auto found = parties->second.find(user);
  return found == parties->second.end() ? user : found->second;
}

std::string Claims::why_not(const ProcessId& driver) const {
  const auto found = why_not_.find(driver);
  return found == why_not_.end() ? "" : found->second;
}

std::string Claims::name_of(std::optional<uid_t> user, const std::string& app) const {
  constexpr const char* kOf = " of ";
  std::set<User> parties;
  if (const auto users = users_.find(app); users != users_.end())
    for (const User each : users->second) parties.insert(party_of(each, app));
  const auto found = believed_users_.find(app);
  const bool only_believed = found != believed_users_.end() && found->second.size() == 1 &&
                             found->second.count(party_of(user, app)) > 0;
  // An id that looks like such a name gets its own user's: no user can take the name of another one.
  if ((parties.size() <= 1 || only_believed) && app.find(kOf) == std::string::npos) return app;
  return app + kOf + text_of(party_of(user, app));
}

}  // namespace berth::spark
