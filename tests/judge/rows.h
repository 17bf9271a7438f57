// SPDX-License-Identifier: Apache-2.0
// Hosts with services and batch work, drawn at random, and what became of both.
#pragma once

#include "model/snapshot.h"
#include "model/topology.h"
#include "tests/judge/contention.h"
#include "tests/judge/loads.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::judge {

// The common part of the hosts of a row of the table.
struct Row {
  std::string name;
  int sockets = 1;
  int domains = 1;     // of a socket
  int cores = 4;       // of a domain
  int threads = 2;     // of a core
  double asked = 0.6;  // vCPUs that services ask for over all
  double use = 0.45;   // their use over what they ask for
  double work_s = 1e-3;
  double burst = 1;
  int slow_cores = 0;          // of a domain: hybrid processors
  int threads_of_service = 2;  // for each vCPU asked for
  double batch_run_s = 0;      // the mean stretch and pause of a batch thread; 0: without end
  double batch_pause_s = 0;
};
// The capacity of a slow core. Linux sees 0.4 to 0.8 on hybrid processors.
inline constexpr double kSlowCapacity = 0.6;
// The rows that the table has.
std::vector<Row> all_rows();

struct ServiceOnHost {
  int vcpus = 1;
  ServiceLoad load;  // its group is its index
  Software software;
};

// Groups are the services', then those of batch work.
struct Host {
  Hardware hardware = {};
  std::vector<CpuPlace> places;
  std::vector<ServiceOnHost> services;
  std::vector<BatchLoad> batch;
  std::vector<Software> batch_software;
  std::uint64_t seed = 0;
  // Models that berth learned of the services before (learn_on()); empty: none.
  std::map<std::string, model::ServiceProfile> learned;

  int cpus() const { return static_cast<int>(places.size()); }
  double capacity() const;  // of all vCPUs, in fast ones
  std::vector<ServiceLoad> loads() const;
  int groups() const { return static_cast<int>(services.size() + batch.size()); }
  bool is_batch(int group) const { return group >= static_cast<int>(services.size()); }
};
// A host of a row: services of one to four vCPUs until the row's share is asked for; as many batch threads as
// vCPUs.
Host draw_host(const Row& row, std::uint64_t seed);

// A host in time. `services` and `batch` may leave out some of the host's.
struct Running {
  Running(const Host& host, const Rules& rules, const std::vector<Group>& groups,
          const std::vector<ServiceLoad>& services, const std::vector<BatchLoad>& batch, std::uint64_t seed);
  // One service without neighbours, with the same requests as beside them.
  static std::unique_ptr<Running> alone(const Host& host, const Rules& rules,
                                        const std::vector<Group>& groups, std::size_t service,
                                        std::uint64_t seed);

  Simulation simulation;
  Contention contention;
};

// An agent reads this of a group after each period, with kNoise.
struct Reading {
  double cores = 0;                // used
  std::optional<double> delay_us;  // the p99 of waits for a vCPU; nullopt: no thread was dispatched
  std::optional<double> cpi;       // cycles per instruction; nullopt: it did not run
};
// The standard deviation of a figure that is read, as a share of it.
inline constexpr double kNoise = 0.03;

// A way of sharing the host: the groups at the start, and what changes later.
struct Way {
  using Change = std::function<void(Kernel&, const std::vector<Reading>&)>;

  std::string name;
  std::function<std::vector<Group>(const Host&)> begin;
  Time period = 0;  // 0: nothing changes
  // It may remember one run.
  std::function<Change(const Host&)> make = nullptr;
  bool learned = false;  // it needs Host::learned
};
std::vector<Way> all_ways();
// Everything anywhere at one priority, as the kernel has it without berth.
std::vector<Group> same_priority(const Host& host);
// Its vCPUs.
CpuMask everywhere(const Host& host);

struct Figures {
  double violations = 0;  // the share of service-windows whose p99 is above kTolerated of that alone
  // Quantiles of the answer times over those alone, each the median over services.
  double p50_ratio = 0;
  double p99_ratio = 0;
  double p999_ratio = 0;
  double worst_ratio = 0;  // the greatest p99_ratio
  double batch = 0;        // work over that of the batch alone on the host
  double emu = 0;  // cores of services in windows without a violation over those of the host, plus `batch`

  friend bool operator==(const Figures&, const Figures&) = default;
};
inline constexpr double kTolerated = 1.5;
inline constexpr Time kWindow = 20 * kSecond;

// Of the same host: what each service and the batch do alone.
struct Alone {
  struct Times {
    double p50_s = 0;
    double p99_s = 0;
    double p999_s = 0;
  };
  std::vector<Times> services;
  double batch_work_s = 0;  // a second
};
Alone alone_on(const Host& host, const Rules& rules, Time length, std::uint64_t seed);
Figures judge(const Host& host, const Way& way, const Alone& alone, const Rules& rules, Time length,
              std::uint64_t seed);
// Every way, in order. Learns first if any needs it. The same groups without changes are simulated once.
std::vector<Figures> judge_all(Host host, const std::vector<Way>& ways, const Rules& rules, Time length,
                               std::uint64_t seed);
// Every row with `seeds` seeds from `first_seed` on; calls `done` with the figures by seed and way, in the
// order of rows. Each of `jobs` threads simulates one host after the other, so that no figure depends on
// their number.
void judge_rows(const std::vector<Row>& rows, const std::vector<Way>& ways, const Rules& rules, Time length,
                std::uint64_t first_seed, std::uint64_t seeds, unsigned jobs,
                const std::function<void(std::size_t row, const std::vector<std::vector<Figures>>&)>& done);
// Lets berth learn on this host for so long. The batch comes and goes meanwhile, or neighbours would not
// vary.
std::map<std::string, model::ServiceProfile> learn_on(const Host& host, const Rules& rules, Time length,
                                                      std::uint64_t seed);

}  // namespace berth::judge
