// SPDX-License-Identifier: Apache-2.0
#include "cgroup/sampler.h"

#include "cgroup/sampler_parse.h"
#include "os/clock.h"
#include "os/file_descriptor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

// Below this a rate is mostly the clock's and the kernel's rounding.
constexpr std::int64_t kShortestIntervalNs = 1'000'000;
// How much a use may exceed all vCPUs: this share, for clocks that differ, and this time of each vCPU, for
// time that the kernel accounts late.
constexpr double kExcessShare = 0.1;
constexpr double kLateAccountNs = 1e8;
// The first wait that could show in the two decimals of PSI's average over ten seconds.
constexpr std::uint64_t kNoticedWaitNs = 500'000;

// A control file that is read often.
struct KeptFile {
  const char* name;
  os::FileDescriptor fd;
  bool missing = false;  // not tried again before the settings are read next
};

// CPU time a group used so far, and when that was read.
struct Usage {
  std::uint64_t used_ns = 0;
  std::int64_t read_ns = 0;
  bool bulk = false;  // from a bulk reading: counted since that began to count, not since the group was made
  std::optional<std::uint64_t> throttled;     // periods cut short by the quota, since the group was made
  std::optional<std::uint64_t> throttled_ns;  // the time that all its run queues lost by that
};

// The same count, of the reading that cpu_throttled was last computed for.
struct Throttled {
  std::uint64_t periods = 0;
  std::optional<std::uint64_t> lost_ns;  // the time that they cost
  std::int64_t read_ns = 0;
};

struct Entry {
  explicit Entry(std::shared_ptr<Cgroup> group) : cgroup(std::move(group)) {}

  std::shared_ptr<Cgroup> cgroup;
  KeptFile cpu_stat{"cpu.stat", {}, false};
  KeptFile memory_current{"memory.current", {}, false};
  KeptFile cpu_pressure{"cpu.pressure", {}, false};
  std::optional<Usage> usage;  // of the reading before
  double interval_s = 0;       // of the last sample
  std::optional<Throttled> throttled;
  std::uint64_t period_us = 0;  // of the quota; 0 where there is none
  // Likewise; kept apart, as most of it is a histogram that a host without it need not hold.
  std::unique_ptr<model::CgroupCounters> counters;
  bool settings_due = true;
  // As last read; a list is parsed again only where its text differs.
  std::string cpus_text;
  std::string effective_text;
  Sampler::Reading* last = nullptr;   // its entry in State::readings; none before the first sample
  std::optional<std::uint32_t> user;  // within whose share it is read
  std::size_t turns = 0;              // of these, and where it began
};

// The workloads of one user, by id.
struct Turns {
  std::map<std::string_view, Entry*> entries;
  std::string last_read;
};

}  // namespace

struct Sampler::State {
  std::map<std::string, Entry> entries;
  std::map<std::uint32_t, Turns> users;  // none without entries
  std::optional<std::int64_t> share_ns;
  std::function<std::int64_t()> clock;
  Readings readings;
  std::size_t kept = 0;
  std::size_t max_kept = 0;
  std::size_t round = 0;
  bool caches_wanted = false;
  std::set<Attribute> wanted;
  std::size_t most_cores = 0;
  bool has_cpuset = true;
  bool has_cpu = true;
  bool has_memory = true;

  // Content of the file in `buffer`; nullopt with errno where it cannot be read.
  std::optional<std::string_view> read(const Entry& entry, KeptFile& file, std::array<char, 4096>& buffer) {
    os::FileDescriptor opened;
    int fd = file.fd.get();
    if (!file.fd) {
      if (file.missing) {
        errno = ENOENT;
        return std::nullopt;
      }
      opened = os::FileDescriptor(openat(entry.cgroup->fd(), file.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      if (!opened) {
        file.missing = errno == ENOENT;
        return std::nullopt;
      }
      fd = opened.get();
    }
    ssize_t size = -1;
    do {
      size = pread(fd, buffer.data(), buffer.size(), 0);
    } while (size < 0 && errno == EINTR);
    if (size < 0) {
      const int error = errno;
      drop(file);
      file.missing = error != EAGAIN;
      errno = error;
      return std::nullopt;
    }
    if (opened && kept < max_kept) {
      file.fd = std::move(opened);
      ++kept;
    }
    return std::string_view(buffer.data(), static_cast<std::size_t>(size));
  }

  void drop(KeptFile& file) {
    if (!file.fd) return;
    file.fd = os::FileDescriptor();
    --kept;
  }

  void drop_all(Entry& entry) {
    drop(entry.cpu_stat);
    drop(entry.memory_current);
    drop(entry.cpu_pressure);
  }

  static void take_stops(Usage& usage, std::string_view cpu_stat) {
    usage.throttled = parse_nr_throttled(cpu_stat);
    usage.throttled_ns = parse_throttled_ns(cpu_stat);
  }

  // nullopt where it cannot be read; then sets `gone` if the group is gone.
  std::optional<Usage> read_usage(Entry& entry) {
    std::array<char, 4096> buffer;
    const auto text = read(entry, entry.cpu_stat, buffer);
    if (!text) {
      // Every living cgroup has cpu.stat; only a tree that is not cgroupfs may lack it and still be there.
      entry.last->gone = errno == ENODEV || (errno == ENOENT && !entry.cgroup->is_current());
      return std::nullopt;
    }
    const std::int64_t read_ns = os::monotonic_ns();
    const auto usage_usec = parse_cpu_usage_usec(*text);
    if (!usage_usec) return std::nullopt;
    Usage usage{*usage_usec * 1000, read_ns, false, std::nullopt, std::nullopt};
    if (entry.period_us != 0) take_stops(usage, *text);
    return usage;
  }

  // The usage of a bulk reading; throttling from the file where the bulk reading has none.
  std::optional<Usage> taken_usage(Entry& entry, const model::CgroupReading& known, std::int64_t read_ns) {
    Usage usage{known.subtree.run_ns, read_ns, true, std::nullopt, std::nullopt};
    if (entry.period_us == 0) return usage;
    usage.throttled = known.accounts.throttled;
    usage.throttled_ns = known.accounts.throttled_ns;
    if (usage.throttled) return usage;
    std::array<char, 4096> buffer;
    if (const auto text = read(entry, entry.cpu_stat, buffer)) take_stops(usage, *text);
    return usage;
  }

  // `usage` may be counted from the beginning of bulk readings. The kernel counts from the making of the
  // group.
  static void take_cpu_time(Entry& entry, const std::optional<Usage>& usage, const model::CgroupReading* bulk,
                            bool due) {
    std::optional<double>& time = entry.last->cpu_time_s;
    if (usage && !usage->bulk) {
      time = static_cast<double>(usage->used_ns) * 1e-9;
    } else if (bulk != nullptr && bulk->accounts.usage_ns) {
      time = static_cast<double>(*bulk->accounts.usage_ns) * 1e-9;
    } else if (due || !time) {
      const auto used = parse_cpu_usage_usec(entry.cgroup->read("cpu.stat").value_or(""));
      time = used ? std::optional(static_cast<double>(*used) * 1e-6) : std::nullopt;
    }
  }

  static void take_throttling(Entry& entry, const std::optional<Usage>& usage) {
    std::optional<double>& share = entry.last->cpu_throttled;
    std::optional<double>& lacked = entry.last->cpu_lacked;
    if (!usage || !usage->throttled || entry.period_us == 0) {
      share.reset();
      lacked.reset();
      entry.throttled.reset();
      return;
    }
    const Throttled now{*usage->throttled, usage->throttled_ns, usage->read_ns};
    const auto before = entry.throttled;
    if (before && now.periods >= before->periods) {
      const std::int64_t interval_ns = now.read_ns - before->read_ns;
      if (interval_ns < kShortestIntervalNs) return;
      const double cut_ns =
          static_cast<double>(now.periods - before->periods) * static_cast<double>(entry.period_us) * 1000;
      share = std::min(1.0, cut_ns / static_cast<double>(interval_ns));
      lacked.reset();
      if (now.lost_ns && before->lost_ns && *now.lost_ns >= *before->lost_ns)
        lacked = static_cast<double>(*now.lost_ns - *before->lost_ns) / static_cast<double>(interval_ns);
    } else {
      share.reset();
      lacked.reset();
    }
    entry.throttled = now;
  }

  bool is_impossible(std::uint64_t used_ns, std::int64_t interval_ns) const {
    const double each_ns = (1 + kExcessShare) * static_cast<double>(interval_ns) + kLateAccountNs;
    return most_cores > 0 && static_cast<double>(used_ns) > static_cast<double>(most_cores) * each_ns;
  }

  // Makes the sample of the usage since the reading before. Returns whether there was any; unknown counts as
  // yes.
  bool take_usage(Entry& entry, const std::optional<Usage>& usage, double now) const {
    entry.last->impossible_cores.reset();
    entry.last->sample.reset();
    entry.last->cpi.reset();
    entry.last->llc_misses_per_s.reset();
    if (!usage || !entry.usage || usage->bulk != entry.usage->bulk || usage->used_ns < entry.usage->used_ns) {
      entry.usage = usage;
      return true;
    }
    const std::uint64_t used_ns = usage->used_ns - entry.usage->used_ns;
    const std::int64_t interval_ns = usage->read_ns - entry.usage->read_ns;
    if (interval_ns < kShortestIntervalNs) return used_ns > 0;
    if (is_impossible(used_ns, interval_ns)) {
      entry.last->impossible_cores = static_cast<double>(used_ns) / static_cast<double>(interval_ns);
      entry.usage = usage;
      return true;
    }
    model::UsageSample& sample = entry.last->sample.emplace();
    sample.time = now;
    sample.cpu_cores = static_cast<double>(used_ns) / static_cast<double>(interval_ns);
    entry.interval_s = static_cast<double>(interval_ns) * 1e-9;
    entry.usage = usage;
    return used_ns > 0;
  }

  // Completes the sample by figures that only a bulk reading has. Returns whether threads waited since the
  // one before; unknown counts as yes.
  static bool take_counters(Entry& entry, const model::CgroupReading* bulk) {
    if (bulk == nullptr) {
      entry.counters.reset();
      return true;
    }
    const model::CgroupCounters& counters = bulk->subtree;
    if (!entry.counters) {
      entry.counters = std::make_unique<model::CgroupCounters>(counters);
      return true;
    }
    if (entry.last->impossible_cores) *entry.counters = counters;  // the next rates begin at the jump, too
    if (!entry.last->sample) return true;
    const model::CgroupCounters& before = *entry.counters;
    const bool idle = counters.dispatches == before.dispatches && counters.run_ns == before.run_ns &&
                      counters.run_delay_ns == before.run_delay_ns;
    if (idle) return false;  // no bucket of the histogram grew either
    model::UsageSample& sample = *entry.last->sample;
    if (counters.dispatches == before.dispatches) {
      sample.runq_latency_us = sample.runq_latency_p50_us = 0.0F;  // its threads ran on, and none waited
    } else {
      sample.runq_latency_us = model::delay_quantile_us(before.delay, counters.delay, 0.99);
      sample.runq_latency_p50_us = model::delay_quantile_us(before.delay, counters.delay, 0.5);
    }
    sample.llc_mpki = model::llc_mpki(*entry.counters, counters);
    entry.last->cpi = model::cycles_per_instruction(*entry.counters, counters);
    // Counters of idle ticks were not kept, and nothing was missed in these.
    if (const auto misses = model::llc_misses(*entry.counters, counters))
      entry.last->llc_misses_per_s = *misses / entry.interval_s;
    const bool waited = counters.run_delay_ns - entry.counters->run_delay_ns > kNoticedWaitNs;
    *entry.counters = counters;
    return waited;
  }

  void read_memory(Entry& entry, const model::CgroupReading* bulk) {
    if (!entry.last->sample || !has_memory) return;
    if (bulk != nullptr && bulk->accounts.memory_bytes) {
      entry.last->sample->memory_bytes = bulk->accounts.memory_bytes;
      return;
    }
    std::array<char, 4096> buffer;
    const auto text = read(entry, entry.memory_current, buffer);
    entry.last->sample->memory_bytes = text ? parse_bytes(*text) : std::nullopt;
  }

  void read_pressure(Entry& entry, bool due) {
    std::optional<double>& pressure = entry.last->cpu_pressure_some_avg10;
    if (!due && pressure && *pressure == 0) return;
    std::array<char, 4096> buffer;
    const auto text = read(entry, entry.cpu_pressure, buffer);
    pressure = text ? parse_some_avg10(*text) : std::nullopt;
  }

  // Empty where the file cannot be read: without the controller there is none.
  static std::string_view setting(const Cgroup& cgroup, const char* file, std::array<char, 4096>& buffer) {
    return cgroup.peek(file, buffer).value_or("");
  }

  static void read_cpus(const Cgroup& cgroup, const char* file, std::string& text, model::CpuSet& cpus) {
    std::array<char, 4096> buffer;
    const std::string_view seen = setting(cgroup, file, buffer);
    if (seen == text) return;
    // A list of thousands of single vCPUs is longer than the buffer.
    std::string fresh = seen.size() < buffer.size() ? std::string(seen) : cgroup.read(file).value_or("");
    if (fresh == text) return;
    cpus = model::CpuSet::parse(fresh).value_or(model::CpuSet());
    text = std::move(fresh);
  }

  static void read_quota(Entry& entry) {
    std::array<char, 4096> buffer;
    const std::string_view seen = setting(*entry.cgroup, "cpu.max", buffer);
    const CpuMax limit = parse_cpu_max(seen).value_or(CpuMax());
    if (limit == entry.last->cpu_max) return;
    entry.last->cpu_max = limit;
    entry.last->cpu_quota_cores = cores_of(limit);
    const std::uint64_t period_us = limit.quota_us ? limit.period_us : 0;
    if (period_us != entry.period_us) entry.throttled.reset();  // counted in other units
    entry.period_us = period_us;
  }

  bool has(Attribute attribute) const {
    const std::string_view name = controller(attribute);
    return name == "cpuset" ? has_cpuset : name == "cpu" ? has_cpu : has_memory;
  }

  void read_asked(Entry& entry, Attribute attribute) const {
    // Most have no quota, and a burst is nothing without one.
    const bool idle_burst = attribute == Attribute::cpu_burst && !entry.last->cpu_max.quota_us &&
                            !entry.last->asked.contains(attribute);
    auto value = wanted.contains(attribute) && has(attribute) && !idle_burst
                     ? std::optional(read_value(*entry.cgroup, attribute))
                     : std::nullopt;
    if (value && *value) {
      entry.last->asked.insert_or_assign(attribute, std::move(**value));
    } else {
      entry.last->asked.erase(attribute);
    }
  }

  void read_settings(Entry& entry) const {
    const Cgroup& cgroup = *entry.cgroup;
    if (has_cpuset) {
      read_cpus(cgroup, "cpuset.cpus", entry.cpus_text, entry.last->cpus);
      read_cpus(cgroup, "cpuset.cpus.effective", entry.effective_text, entry.last->effective_cpus);
    }
    if (has_cpu) read_quota(entry);
    for (const Attribute attribute : kAttributes) {
      if (is_asked(attribute)) read_asked(entry, attribute);
    }
    if (has_memory) {
      std::array<char, 4096> buffer;
      entry.last->memory_high_bytes = parse_bytes(setting(cgroup, "memory.high", buffer));
    }
    for (KeptFile* file : {&entry.cpu_stat, &entry.memory_current, &entry.cpu_pressure})
      file->missing = false;
    entry.settings_due = false;
    entry.last->settings_known = true;
  }

  void read_cache(Entry& entry, bool due) const {
    std::optional<std::uint64_t>& cache = entry.last->cache_bytes;
    if (!caches_wanted || !has_memory) {
      cache.reset();
    } else if (due || !cache) {
      cache = parse_inactive_file(entry.cgroup->read("memory.stat").value_or(""));
    }
  }

  // `turn`: reads also the files that are read in every kSettingsPeriod-th sample only.
  void read_entry(Entry& entry, double now, const BulkReading& bulk, bool turn) {
    const bool due = turn || entry.settings_due;
    if (due) read_settings(entry);
    read_cache(entry, due);
    const auto* known = bulk.find ? bulk.find(entry.cgroup->id()) : nullptr;
    const auto usage = known != nullptr ? taken_usage(entry, *known, bulk.read_ns) : read_usage(entry);
    if (entry.last->gone) {
      drop_all(entry);
      return;
    }
    take_cpu_time(entry, usage, known, turn);
    take_throttling(entry, usage);
    const bool moved = take_usage(entry, usage, now);
    const bool waited = take_counters(entry, known);
    read_memory(entry, known);
    read_pressure(entry, (moved && waited) || turn);
  }

  void take(Entry& entry, double now, const BulkReading& bulk, bool turn) {
    entry.last->fresh = true;
    if (!entry.last->gone) read_entry(entry, now, bulk, turn);
    if (entry.last->gone) {
      *entry.last = {};
      entry.last->gone = true;
    }
  }

  // It was not its turn.
  static void leave(Entry& entry) {
    Reading& last = *entry.last;
    last.fresh = false;
    if (entry.settings_due) last.settings_known = false;
    last.sample.reset();
    last.cpu_pressure_some_avg10.reset();
    last.cpu_throttled.reset();
    last.cpu_lacked.reset();
    last.cpi.reset();
    last.llc_misses_per_s.reset();
    last.cache_bytes.reset();
    last.impossible_cores.reset();
  }

  // Reads for `most_ns`, from the workload after the last one that was read.
  void take_turns(Turns& turns, std::int64_t most_ns, double now, const BulkReading& bulk) {
    const std::int64_t begin_ns = clock();
    auto next = turns.entries.upper_bound(turns.last_read);
    for (std::size_t read = 0; read < turns.entries.size(); ++read) {
      if (read > 0 && read % kLeastOfUser == 0 && clock() - begin_ns >= most_ns) break;
      if (next == turns.entries.end()) next = turns.entries.begin();
      turns.last_read = next->first;
      Entry& entry = *next->second;
      take(entry, now, bulk, ++entry.turns % kSettingsPeriod == 0);
      ++next;
    }
  }

  void take_users(double now, const BulkReading& bulk) {
    std::vector<Turns*> fewest_first;
    for (auto& [user, turns] : users) {
      for (auto& [id, entry] : turns.entries) leave(*entry);
      fewest_first.push_back(&turns);
    }
    std::stable_sort(fewest_first.begin(), fewest_first.end(),
                     [](const Turns* a, const Turns* b) { return a->entries.size() < b->entries.size(); });
    std::int64_t left_ns = *share_ns;
    auto waiting = std::ssize(fewest_first);
    for (Turns* turns : fewest_first) {
      const std::int64_t begin_ns = clock();
      take_turns(*turns, left_ns / waiting--, now, bulk);
      left_ns = std::max<std::int64_t>(0, left_ns - (clock() - begin_ns));
    }
  }
};

std::int64_t Sampler::thread_cpu_ns() { return os::nanoseconds_of(CLOCK_THREAD_CPUTIME_ID); }

Sampler::Sampler() : state_(std::make_unique<State>()) { state_->max_kept = os::raised_file_limit() / 8 * 3; }
Sampler::Sampler(const std::set<std::string>& controllers) : Sampler() {
  state_->has_cpuset = controllers.contains("cpuset");
  state_->has_cpu = controllers.contains("cpu");
  state_->has_memory = controllers.contains("memory");
}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

void Sampler::add(const std::string& id, std::shared_ptr<Cgroup> cgroup, std::optional<std::uint32_t> user) {
  const auto found = state_->entries.find(id);
  if (found != state_->entries.end()) {
    if (found->second.cgroup->id() == cgroup->id() &&
        (found->second.last == nullptr || !found->second.last->gone) && found->second.user == user) {
      return;
    }
    remove(id);
  }
  const auto added = state_->entries.emplace(id, Entry(std::move(cgroup))).first;
  added->second.user = user;
  if (!user) return;
  auto& entries = state_->users[*user].entries;
  added->second.turns = entries.size();  // so that their settings are not read in one sample
  entries.emplace(added->first, &added->second);
}

void Sampler::remove(const std::string& id) {
  const auto found = state_->entries.find(id);
  if (found == state_->entries.end()) return;
  state_->drop_all(found->second);
  if (const auto user = found->second.user) {
    auto& entries = state_->users.at(*user).entries;
    entries.erase(id);
    if (entries.empty()) state_->users.erase(*user);
  }
  state_->entries.erase(found);
  state_->readings.erase(id);
}

void Sampler::refresh(const std::string& id) {
  const auto found = state_->entries.find(id);
  if (found != state_->entries.end()) found->second.settings_due = true;
}

void Sampler::set_share(std::int64_t share_ns, std::function<std::int64_t()> clock) {
  state_->share_ns = share_ns;
  state_->clock = std::move(clock);
}

void Sampler::set_most_cores(std::size_t cores) { state_->most_cores = cores; }

void Sampler::want_caches(bool wanted) { state_->caches_wanted = wanted; }

void Sampler::want(Attribute attribute, bool wanted) {
  if (state_->wanted.contains(attribute) == wanted) return;
  if (wanted) {
    state_->wanted.insert(attribute);
  } else {
    state_->wanted.erase(attribute);
  }
  for (auto& [id, entry] : state_->entries) entry.settings_due = true;
}

std::optional<Value> Sampler::Reading::value(Attribute attribute) const {
  if (is_asked(attribute)) {
    const auto known = asked.find(attribute);
    return known != asked.end() ? std::optional(known->second) : std::nullopt;
  }
  if (attribute == Attribute::cpus) return cpus;
  if (attribute == Attribute::cpu_quota) return cpu_max;
  return memory_high(memory_high_bytes);
}

const Sampler::Readings& Sampler::readings() const { return state_->readings; }

const Sampler::Readings& Sampler::sample(double now, const BulkReading& bulk) {
  const std::size_t period =
      std::max(kSettingsPeriod, (state_->entries.size() + kMostTurns - 1) / kMostTurns);
  std::size_t position = state_->round++ % period;
  for (auto& [id, entry] : state_->entries) {
    const bool turn = position++ % period == 0;
    if (entry.last == nullptr) entry.last = &state_->readings[id];
    if (!entry.user || !state_->share_ns) state_->take(entry, now, bulk, turn);
  }
  if (state_->share_ns) state_->take_users(now, bulk);
  return state_->readings;
}

const Sampler::Readings& Sampler::read_new() {
  for (auto& [id, entry] : state_->entries) {
    if (entry.last != nullptr) continue;
    entry.last = &state_->readings[id];
    state_->read_settings(entry);
    entry.settings_due = true;
  }
  return state_->readings;
}

}  // namespace berth::cgroup
