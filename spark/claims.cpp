// SPDX-License-Identifier: Apache-2.0
#include "spark/claims.h"

#include <algorithm>

#include <fmt/core.h>

namespace berth::spark {

namespace {

constexpr const char* kOf = " of ";

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
    std::vector<User> of;  // users whose executors may belong to this driver
    std::string why;
    for (const auto& [user, each] : its) {
      if (own && user != claim.user) continue;
      const std::string objection = judge.objection(claim, user, each);
      if (objection.empty()) of.push_back(user);
      if (why.empty()) why = objection;
    }
    if (!its.empty() && of.empty()) {
      why_not_.emplace(ProcessId{claim.pid, claim.started}, why);
      continue;
    }
    users_[claim.app].insert(claim.user);
    note_shared(claim.app, of, its);
    for (const User& user : of)
      if (user != claim.user) parties_[claim.app][user] = claim.user;
    if (!claim.fresh) continue;
    for (const User& user : of) left[{claim.app, user}].push_back(&claim);
    if (of.empty()) left[{claim.app, std::nullopt}].push_back(&claim);
  }
  std::set<const Claim*> rivals;  // of several drivers for the same executors, at least one is wrong
  for (const auto& [of, same] : left)
    if (same.size() > 1) rivals.insert(same.begin(), same.end());
  for (const auto& [of, same] : left) {
    if (rivals.count(same.front()) > 0) continue;
    believed_.emplace(same.front()->pid, same.front()->started);
    believed_users_[of.first].insert(same.front()->user);
  }
}

// Notes the executors of the application that processes of several of these users claim to be.
void Claims::note_shared(const std::string& app, const std::vector<User>& users,
                         const std::map<User, std::vector<const Process*>>& executors) {
  if (users.size() < 2) return;
  std::map<std::string, User> first;  // by executor
  for (const User& user : users) {
    for (const Process* process : executors.at(user)) {
      const auto [known, is_new] = first.try_emplace(process->what.executor, user);
      if (!is_new && known->second != user) shared_.emplace(app, process->what.executor);
    }
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

std::string Claims::name_of_executor(std::optional<uid_t> user, const std::string& app,
                                     const std::string& executor) const {
  const bool alone = shared_.count({app, executor}) == 0;
  const User party = party_of(user, app);
  return alone || party == user ? name_of(user, app) : app + kOf + text_of(user);
}

}  // namespace berth::spark
