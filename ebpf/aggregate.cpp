// SPDX-License-Identifier: Apache-2.0
#include "ebpf/aggregate.h"

#include <array>
#include <bit>
#include <cstddef>
#include <utility>

namespace berth::ebpf {

namespace {

using model::CgroupCounters;

constexpr std::size_t kLine = 64;  // bytes of a cache line

// The CPU writes its rows at any time. So every word is read once, and as a whole.
template <typename T>
T read_once(const T& from) {
  return __atomic_load_n(&from, __ATOMIC_RELAXED);
}

// Growth of a row between two readings. Of the histogram it has only the buckets that are not zero, as these
// are few. The rest of `waits`, and `counts` where nothing was counted, are never written: there is one of
// these per row.
struct Growth {
  struct Waits {
    std::uint32_t bucket;
    std::uint32_t count;
  };
  std::uint64_t run_ns = 0;
  std::uint64_t delay_ns = 0;
  std::uint32_t dispatches = 0;
  std::uint32_t buckets = 0;  // of `waits`
  std::array<Waits, model::kDelayBuckets> waits;
  std::array<double, BERTH_HARDWARE_COUNTERS> counts;
  bool counted = false;
};

void add_to(CgroupCounters& sum, const Growth& growth) {
  sum.run_ns += growth.run_ns;
  sum.run_delay_ns += growth.delay_ns;
  sum.dispatches += growth.dispatches;
  for (std::uint32_t at = 0; at < growth.buckets; ++at) {
    sum.delay[growth.waits[at].bucket] += growth.waits[at].count;
  }
  if (!growth.counted) return;
  if (!sum.hardware) sum.hardware.emplace();
  sum.hardware->instructions += growth.counts[0];
  sum.hardware->cycles += growth.counts[1];
  sum.hardware->llc_references += growth.counts[2];
  sum.hardware->llc_misses += growth.counts[3];
}

// A figure that wrapped in between counts as grown.
void take_growth(const berth_row& row, berth_row& before, Growth& growth) {
  static_assert(BERTH_DELAY_BUCKETS == model::kDelayBuckets);
  static_assert(sizeof(berth_row) == 2 * kLine);
  const auto step = [](const auto& now, auto& then) {
    const auto value = read_once(now);
    const auto grown = value - then;
    then = value;
    return grown;
  };
  growth.run_ns = step(row.run_ns, before.run_ns);
  growth.delay_ns = step(row.delay_ns, before.delay_ns);
  growth.dispatches = step(row.dispatches, before.dispatches);
  // Two buckets a load, as most did not grow.
  using Pair [[gnu::may_alias]] = std::uint64_t;
  static_assert(offsetof(berth_row, delay) % sizeof(Pair) == 0 && model::kDelayBuckets % 2 == 0);
  const auto* now = reinterpret_cast<const Pair*>(row.delay);
  const auto* then = reinterpret_cast<const Pair*>(before.delay);
  std::uint32_t counted = 0;
  const auto take_pairs = [&](std::uint32_t pair, std::uint32_t end) {
    for (; pair < end; ++pair) {
      const Pair value = read_once(now[pair]);
      if (value == then[pair]) continue;
      const auto both = std::bit_cast<std::array<std::uint32_t, 2>>(value);
      for (std::uint32_t which = 0; which < both.size(); ++which) {
        const std::uint32_t bucket = 2 * pair + which;
        const std::uint32_t count = both[which] - std::exchange(before.delay[bucket], both[which]);
        counted += count;
        if (count != 0) growth.waits[growth.buckets++] = {bucket, count};
      }
    }
  };
  constexpr std::uint32_t kShort = (kLine - offsetof(berth_row, delay)) / sizeof(Pair);
  take_pairs(0, kShort);
  // The first line has a wait for every dispatch: the second need not be fetched. If a dispatch counted
  // meanwhile hides a wait, the next reading finds it.
  if (counted != growth.dispatches) take_pairs(kShort, model::kDelayBuckets / 2);
}

// Asks for the first cache lines of `object` ahead of their use: a reading is little work on much memory.
template <typename T>
void prefetch(const T& object, std::size_t lines) {
  const char* at = reinterpret_cast<const char*>(&object);
  for (std::size_t line = 0; line < lines; ++line) __builtin_prefetch(at + line * kLine);
}
constexpr std::size_t kAhead = 8;

// A cgroup whose last threads may still be ending keeps its rows for that many collections.
constexpr std::uint32_t kGrace = 2;

}  // namespace

std::uint32_t Aggregate::add(std::uint64_t id, std::uint64_t parent) {
  std::uint32_t at = 0;
  if (vacant_.empty()) {
    at = static_cast<std::uint32_t>(nodes_.size());
    // Doubling would leave up to half of the largest table empty.
    if (at == nodes_.capacity()) nodes_.reserve(at + at / 4 + 16);
    nodes_.emplace_back();
  } else {
    at = vacant_.back();
    vacant_.pop_back();
    nodes_[at] = {};
  }
  nodes_[at].reading.id = id;
  by_id_[id] = at;
  adopt(at, parent);
  return at;
}

void Aggregate::adopt(std::uint32_t node, std::uint64_t parent) {
  nodes_[node].reading.parent = parent;
  const auto found = by_id_.find(parent);
  if (found == by_id_.end() || nodes_[node].parent != kNone) return;
  nodes_[node].parent = found->second;
  ++nodes_[found->second].children;
}

void Aggregate::learn(std::uint64_t id, std::uint64_t parent) {
  std::uint32_t hint = kNone;
  learn(id, parent, hint);
}

model::CgroupReading& Aggregate::learn(std::uint64_t id, std::uint64_t parent, std::uint32_t& hint) {
  if (hint >= nodes_.size() || nodes_[hint].reading.id != id) {
    const auto found = by_id_.find(id);
    hint = found != by_id_.end() ? found->second : add(id, parent);
  }
  Node& node = nodes_[hint];
  if (node.parent == kNone && parent != 0) adopt(hint, parent);
  if (node.scan != scan_ && !node.forgotten) ++scanned_;
  node.scan = scan_;
  return node.reading;
}

void Aggregate::forget(std::uint64_t id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || nodes_[found->second].forgotten) return;
  nodes_[found->second].forgotten = true;
  leaving_.push_back({id, collection_});
}

void Aggregate::begin_scan() {
  ++scan_;
  scanned_ = 0;
}

void Aggregate::end_scan() {
  if (scanned_ == by_id_.size() - leaving_.size()) return;  // as on most days
  for (const Node& node : nodes_) {
    if (node.reading.id != 0 && !node.forgotten && node.scan != scan_) forget(node.reading.id);
  }
}

void Aggregate::reset() {
  known_.clear();
  copies_.clear();
  counts_.clear();
  vacant_copies_.clear();
}

// A row that still belongs to the same cgroup keeps its last reading.
void Aggregate::look_for_rows(const Table& table, Known& known) {
  std::vector<Taken> now;
  auto before = known.taken.begin();
  for (std::uint32_t row = 0; row < table.rows.size(); ++row) {
    // Pairs with the exchange by which the CPU takes a row: its figures were zeroed before.
    const std::uint64_t id = __atomic_load_n(&table.rows[row].id, __ATOMIC_ACQUIRE);
    for (; before != known.taken.end() && before->row < row; ++before) vacant_copies_.push_back(before->copy);
    if (id == BERTH_FREE || id == BERTH_REMOVED) continue;
    if (before != known.taken.end() && before->row == row && before->id == id) {
      now.push_back(*before++);
      continue;
    }
    Taken fresh{.row = row, .id = id, .touches = read_once(table.rows[row].touches) - 1};
    if (vacant_copies_.empty()) {
      fresh.copy = static_cast<std::uint32_t>(copies_.size());
      copies_.emplace_back();
    } else {
      fresh.copy = vacant_copies_.back();
      vacant_copies_.pop_back();
      copies_[fresh.copy] = {};
      if (fresh.copy < counts_.size()) counts_[fresh.copy] = {};
    }
    now.push_back(fresh);
  }
  for (; before != known.taken.end(); ++before) vacant_copies_.push_back(before->copy);
  known.taken = std::move(now);
}

// False where the row's cgroup is not known; after a while, the row is then given back.
bool Aggregate::find_node(Taken& taken, berth_row& row) {
  const auto found = by_id_.find(taken.id);
  if (found != by_id_.end()) {
    taken.node = found->second;
    taken.unknown_in = 0;
    return true;
  }
  ++unknown_;
  taken.node = kNone;
  if (taken.unknown_in == 0) taken.unknown_in = collection_;
  if (collection_ - taken.unknown_in >= kGrace) {
    __atomic_store_n(&row.id, BERTH_REMOVED, __ATOMIC_RELEASE);
    taken.id = BERTH_REMOVED;
  }
  return false;
}

// True where there is something to collect and a cgroup to credit.
bool Aggregate::moved(const Table& table, Taken& taken) {
  const std::uint32_t touches = read_once(table.rows[taken.row].touches);
  const bool known = taken.node != kNone && (!dropped_ || nodes_[taken.node].reading.id == taken.id);
  if (known && taken.touches == touches) return false;
  if (!known && !find_node(taken, table.rows[taken.row])) return false;
  // Read before the figures: a later change makes the row count as moved again.
  taken.touches = touches;
  return true;
}

bool Aggregate::is_kept_with_others(std::uint32_t node) const {
  if (keepers_.empty() || node == kNone) return false;
  for (std::uint32_t up = nodes_[node].parent; up != kNone; up = nodes_[up].parent) {
    if (keepers_.contains(nodes_[up].reading.id)) return true;
  }
  return false;
}

void Aggregate::collect_row(const Table& table, const Taken& taken) {
  Copy& before = copies_[taken.copy];
  Growth growth;
  take_growth(table.rows[taken.row], before, growth);
  if (!table.counts.empty()) {
    growth.counted = true;
    auto& then = counts_[taken.copy].count;
    for (std::size_t which = 0; which < BERTH_HARDWARE_COUNTERS; ++which) {
      const std::uint64_t now = read_once(table.counts[taken.row].count[which]);
      growth.counts[which] = static_cast<double>(now - std::exchange(then[which], now)) * table.scale[which];
    }
  }
  for (std::uint32_t up = taken.node; up != kNone; up = nodes_[up].parent) {
    add_to(nodes_[up].reading.subtree, growth);
  }
}

void Aggregate::collect_table(const Table& table, Known& known) {
  if (!known.complete || known.count != table.taken) look_for_rows(table, known);
  known.complete = true;
  known.count = table.taken;
  if (!table.counts.empty()) counts_.resize(copies_.size());
  moved_.clear();
  given_back_.clear();
  std::size_t left = 0;
  for (std::size_t at = 0; at < known.taken.size(); ++at) {
    if (at + kAhead < known.taken.size()) prefetch(table.rows[known.taken[at + kAhead].row], 1);
    Taken& taken = known.taken[at];
    const bool has_news = moved(table, taken);
    if (taken.id == BERTH_REMOVED) {
      vacant_copies_.push_back(taken.copy);
      continue;
    }
    if (has_news) moved_.push_back(static_cast<std::uint32_t>(left));
    if (gives_back_ > 0 && is_kept_with_others(taken.node))
      given_back_.push_back(static_cast<std::uint32_t>(left));
    known.taken[left++] = taken;
  }
  known.taken.resize(left);
  for (std::size_t at = 0; at < moved_.size(); ++at) {
    if (at + kAhead < moved_.size()) {
      const Taken& later = known.taken[moved_[at + kAhead]];
      prefetch(copies_[later.copy], 1);
      prefetch(nodes_[later.node], 2);
    }
    collect_row(table, known.taken[moved_[at]]);
  }
  // A switch of this very moment may still write to the row; so little is lost.
  for (const std::uint32_t at : given_back_) {
    __atomic_store_n(&table.rows[known.taken[at].row].id, BERTH_REMOVED, __ATOMIC_RELEASE);
    vacant_copies_.push_back(known.taken[at].copy);
    known.taken[at].id = BERTH_REMOVED;
  }
  if (!given_back_.empty())
    std::erase_if(known.taken, [](const Taken& taken) { return taken.id == BERTH_REMOVED; });
}

void Aggregate::collect(std::span<const Table> tables) {
  ++collection_;
  unknown_ = 0;
  known_.resize(tables.size());
  for (std::size_t which = 0; which < tables.size(); ++which) collect_table(tables[which], known_[which]);
  dropped_ = false;
  if (gives_back_ > 0) --gives_back_;
  drop_left();
}

// Children first, as the kernel removes them. A parent that still has a child waits for another collection.
void Aggregate::drop_left() {
  std::deque<Leaving> later;
  for (const Leaving& leaving : leaving_) {
    const auto found = by_id_.find(leaving.id);
    if (found == by_id_.end()) continue;
    const std::uint32_t at = found->second;
    Node& node = nodes_[at];
    if (collection_ - leaving.since < kGrace || node.children != 0) {
      later.push_back(leaving);
      continue;
    }
    if (node.parent != kNone) --nodes_[node.parent].children;
    node = {};
    vacant_.push_back(at);
    by_id_.erase(found);
    dropped_ = true;
  }
  leaving_ = std::move(later);
}

const model::CgroupReading* Aggregate::find(std::uint64_t id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || nodes_[found->second].forgotten || is_kept_with_others(found->second))
    return nullptr;
  return &nodes_[found->second].reading;
}

}  // namespace berth::ebpf
