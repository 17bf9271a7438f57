// SPDX-License-Identifier: Apache-2.0
// A machine whose cores, caches and memory are contended for. It is the ground truth for what berth learns.
// Nothing in it is linear in the pressure of neighbours, and nothing of policies/ is used.
//
// The equations, per thread, from the core outwards:
//
// - CPI stack (Karkhanis and Smith, "A first-order superscalar processor model", ISCA 2004). Cycles per
//   instruction are those of the core, plus stalls for misses of the private cache, plus stalls for misses of
//   the last-level cache. Misses overlap, so a stall costs its latency divided by `overlap`:
//     cpi = core_cpi + mpi(private share) * llc_cycles / overlap + mpi(llc share) * memory_cycles / overlap
// - Miss curve: a power law (Hartstein et al., "Cache miss behavior: is it sqrt(2)?", CF 2006) down to the
//   working set. Beyond that only compulsory misses are left. Misses per instruction in c MiB:
//     mpi(c) = compulsory + reuse * (c^-alpha - working_set^-alpha)      for c < working_set
// - Shares of a cache follow the rates of misses (West et al., "Online cache modeling for commodity multicore
//   processors", SIGOPS OSR 2010). In the steady state each insertion evicts a random line. So
//   share_i = size * misses_i / sum of misses, and no share exceeds the working set.
// - SMT: two threads offer instructions to the same issue slots (Snavely and Tullsen, "Symbiotic
//   jobscheduling", ASPLOS 2000, measure such sharing). Thread i alone fills the share d_i = 1 / (width *
//   cpi). Together they fill the slots that at least one of them wants, and share these by demand:
//     core_cpi_i' = core_cpi_i * (d_i + d_j) / (1 - (1 - d_i) * (1 - d_j))
//   They also share the private cache, as above. The sibling is busy for a part of the time only. The
//   thread's rate is the mean of both rates, so that its CPI saturates.
// - Memory of a socket is a queue M/M/1 with utilisation rho. Accesses take longer for every domain of the
//   socket, which no figure of berth shows:
//     memory_cycles = idle_cycles * (1 + queueing * rho / (1 - rho)),     rho at most 0.95
// - A vCPU that several threads may use is theirs in turn. Waits, switches and cold private caches cost
//   nothing, so the machine flatters hosts without pins. So does its memory, which is equally far from all
//   sockets.
// - A service has a load in instructions per second. Its use is load * cpi / clock, so that it suffers and
//   disturbs more where its CPI rises. Its CPI is the response that CPI2 watches (Zhang et al., EuroSys
//   2013).
#pragma once

#include "model/cpu_set.h"
#include "model/topology.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace berth::policies::testing {

struct Hardware {
  double clock_hz = 3e9;
  double issue_width = 4;        // instructions per cycle
  double private_cache_mib = 1;  // of a core
  double llc_mib = 16;           // of a domain
  double llc_cycles = 40;
  double memory_cycles = 240;    // of an idle memory
  double memory_bytes_s = 60e9;  // of a socket
  double queueing = 0.25;        // the part of an access that waits for a bank and a channel
  double line_bytes = 64 * 1.3;  // with the lines that are written back
};

struct Software {
  double core_cpi = 0.6;  // without misses of the private cache
  double reuse = 0.004;   // misses per instruction that a cache of 1 MiB has above a huge one
  double alpha = 0.5;
  double working_set_mib = 8;
  double compulsory = 0.0002;  // misses per instruction that no cache avoids
  double overlap = 2;          // misses in flight

  // In a cache of so many MiB.
  double misses_per_instruction(double mib) const;
};

struct Running {
  Software software;
  model::CpuSet where;
  // Instructions a second on each vCPU. nullopt: it computes without end, on `threads` vCPUs together with
  // all others that do.
  std::optional<double> load;
  double threads = 0;
  // Threads that the kernel moves over `where`; `load` is that of each. 0: one is bound to each vCPU.
  double floating = 0;
  double copies = 1;  // instances that are alike, each with a working set of its own
  // vCPUs that it may use, if `where` is a sample of them; 0: `where` is all of them.
  double over = 0;
};

// How the kernel chooses vCPUs for threads that float.
struct Kernel {
  // It finds an idle core, at once, wherever one of so many vCPUs has one. All threads must float, and each
  // core must have two vCPUs. 0: threads lie anywhere, without regard to each other.
  double searched_vcpus = 0;
};

// Over one interval.
struct Figures {
  double cpi = 0;
  double cores = 0;         // used
  double instructions = 0;  // a second
  double misses = 0;        // of the last-level cache, a second
};

// The steady state: one entry for each that runs, its copies together. Those with a load come first on a vCPU
// that several use. Those without end share the rest evenly.
std::vector<Figures> steady_state(const Hardware& hardware, const model::Topology& topology,
                                  const std::vector<Running>& running, const Kernel& kernel = {});

}  // namespace berth::policies::testing
