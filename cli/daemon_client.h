// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/problem.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace berth::cli {

// berthd over the system bus. Every answer is a JSON document of docs/contract.
class DaemonClient {
 public:
  // Waits for `events` of poll(2) on `fd`, for `timeout` at most, and does other work that is due. False
  // gives the question up.
  using Waiter = std::function<bool(int fd, short events, std::chrono::milliseconds timeout)>;

  // Problem unreachable where there is no bus or no berthd on it; never starts one.
  static Outcome<DaemonClient> connect();
  ~DaemonClient();
  DaemonClient(DaemonClient&&) noexcept;
  DaemonClient& operator=(DaemonClient&&) noexcept;

  // From now on, reads wait by `waiter`, and fail where it gives up. It must outlive the reads.
  void wait_by(Waiter waiter);

  Outcome<std::string> status();
  Outcome<std::string> workloads();
  Outcome<std::string> topology();
  Outcome<std::string> snapshot();
  // With the samples later than `since` only.
  Outcome<std::string> snapshot_since(double since);
  Outcome<std::string> plan();
  Outcome<std::string> reservations();
  Outcome<std::string> log(std::uint32_t limit);
  // Entries of the log that match (LogOptions::filter()).
  Outcome<std::string> find_log(const std::map<std::string, std::string>& filter, std::uint32_t limit);
  // Explains a workload or a decision; problem failed where there is neither.
  Outcome<std::string> explain(const std::string& subject);
  // A berth.profiles/1 and a berth.models/1 document.
  Outcome<std::string> profiles();
  Outcome<std::string> models();
  // Text, not JSON.
  Outcome<std::string> metrics();

  // These calls need authorisation; problem refused where the daemon refuses.
  Outcome<void> set_mode(const std::string& mode);
  Outcome<void> set_workload(const std::string& id, const std::map<std::string, std::string>& settings);
  // "" stands for the caller's own workload, which needs no authorisation.
  Outcome<void> report_progress(const std::string& id, double fraction);
  // Returns the decision's id.
  Outcome<std::string> evict(const std::string& id);
  // Returns a berth.admission/1 document, for a refusal too. `hold_s` 0: as the daemon is configured.
  Outcome<std::string> admit(const std::string& request, double hold_s);
  // Returns the decision that had admitted it; problem failed where no place is held for it.
  Outcome<std::string> cancel_reservation(const std::string& id);
  // The work that ran while its threads waited (berth.blame/1), since the first question; problem failed
  // where there is no such service or workload.
  Outcome<std::string> blame(const std::string& service);
  Outcome<std::string> restore();
  // Adds the profiles of a berth.profiles/1 document of at most 512 KiB.
  Outcome<void> import_profiles(const std::string& profiles);
  // Problem failed where nothing is learned of the service.
  Outcome<void> forget_profile(const std::string& service);
  Outcome<void> reload();
  // A berth.trial-begin/1 document. The trial is that of this connection, and ends with it.
  Outcome<std::string> begin_trial(const std::string& a, const std::string& b);
  Outcome<void> use_trial_side(const std::string& side, double lease_s);
  Outcome<void> end_trial(bool keep);

 private:
  struct State;
  explicit DaemonClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Connects, and asks one question.
template <typename Answer, typename... Parameters, typename... Arguments>
Outcome<Answer> ask_daemon(Outcome<Answer> (DaemonClient::*question)(Parameters...),
                           const Arguments&... arguments) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  return ((*daemon).*question)(arguments...);
}

}  // namespace berth::cli
