// SPDX-License-Identifier: Apache-2.0
#include "model/bounds.h"
#include "model/json.h"
#include "model/json_fields.h"
#include "model/learning.h"

#include <cmath>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr const char* kProfilesSchema = "berth.profiles/1";

constexpr double kMostRows = 1e12;
// The largest square is that of a response or of misses. No sum of them is beyond it.
constexpr double kMostSum = kMostRows * kMostMisses * kMostMisses;
constexpr as::number kSum{-kMostSum, kMostSum};
constexpr as::number kSquare{0, kMostSum};
constexpr as::number kWeight{0, kMostRows};
// Sums come from additions and subtractions, each of which rounds.
constexpr double kRounding = 1e-6;
constexpr const char* kImpossible = "no observations can have these sums";

// How an array of sums is written.
struct AsSums {
  template <std::size_t N>
  void read(const JsonValue& value, std::array<double, N>& sums) const {
    std::size_t number = 0;
    value.each([&](const JsonValue& element) {
      if (number < N) kSum.read(element, sums[number]);
      ++number;
    });
    if (number != N) value.fail(fmt::format("{} numbers, not {}", number, N));
  }
  template <std::size_t N>
  void write(JsonWriter& out, const std::array<double, N>& sums) const {
    as::list(kSum).write(out, sums);
  }
};

// |sum of a b| <= sqrt(sum of a a * sum of b b): what every choice of rows obeys.
bool is_product(double ab, double aa, double bb) {
  return aa >= 0 && bb >= 0 && std::abs(ab) <= (1 + kRounding) * std::sqrt(aa) * std::sqrt(bb);
}

bool can_add_up(const RowSums& rows) {
  constexpr std::array<std::size_t, 3> kSquares{0, 3, 5};
  constexpr std::array<std::array<std::size_t, 2>, 6> kFactors{
      {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}}};
  if (!is_product(rows.y, rows.n, rows.yy)) return false;
  for (std::size_t i = 0; i < rows.x.size(); ++i) {
    const double square = rows.xx[kSquares[i]];
    if (!is_product(rows.x[i], rows.n, square) || !is_product(rows.xy[i], rows.yy, square)) return false;
  }
  for (std::size_t i = 0; i < rows.xx.size(); ++i) {
    if (!is_product(rows.xx[i], rows.xx[kSquares[kFactors[i][0]]], rows.xx[kSquares[kFactors[i][1]]]))
      return false;
  }
  return true;
}

}  // namespace

template <typename Io>
void fields(Io& io, Of<Io, RowSums>& rows) {
  io.required("n", rows.n, kWeight);
  io.required("x", rows.x, AsSums());
  io.required("xx", rows.xx, AsSums());
  io.required("xy", rows.xy, AsSums());
  io.required("y", rows.y, kSum);
  io.required("yy", rows.yy, kSum);
  if constexpr (Io::kReads) {
    if (!can_add_up(rows)) io.fail(kImpossible);
  }
}

template <typename Io>
void fields(Io& io, Of<Io, ErrorSums>& errors) {
  io.required("n", errors.n, kWeight);
  io.required("model", errors.model, kSquare);
  io.required("default", errors.fallback, kSquare);
  io.required("constant", errors.constant, kSquare);
  io.required("llc_n", errors.llc_n, kWeight);
  io.required("llc_without", errors.llc_without, kSquare);
  io.required("llc_with", errors.llc_with, kSquare);
}

template <typename Io>
void fields(Io& io, Of<Io, ProfileKey>& key) {
  io.required("service", key.service, as::name);
  io.required("response", key.response, as::one_of(kResponses, to_string));
}

template <typename Io>
void fields(Io& io, Of<Io, LearnedSums>& sums) {
  io.required("time", sums.time, as::time);
  io.required("rows", sums.rows, as::object);
  if (Io::kReads || sums.llc_rows.n > 0) io.nullable("llc_rows", sums.llc_rows, as::object);
  std::array level{sums.level_u, sums.level_sc, sums.level_ss};
  io.required("level", level, AsSums());
  if constexpr (Io::kReads) {
    sums.level_u = level[0];
    sums.level_sc = level[1];
    sums.level_ss = level[2];
    if (!(sums.level_u >= 0 && sums.level_sc >= 0 && sums.level_ss >= 0)) io.fail("level", kImpossible);
  }
  io.required("spent", sums.spent, kWeight);
  io.required("errors", sums.errors, as::object);
  io.optional("change", sums, as::part([](auto& change, auto& it) {
                change.required("rise", it.rise, kSquare);
                change.required("calm_share", it.calm_share, kSquare);
                change.required("calm_error", it.calm_error, kSquare);
                change.required("recent_error", it.recent_error, kSquare);
                change.required("strange", it.strange, kWeight);
                change.required("prior_dropped", it.prior_dropped, as::flag);
                change.nullable("forgotten_at", it.forgotten_at, as::time);
              }));
}

template <typename Io>
void fields(Io& io, Of<Io, Observation>& seen) {
  io.schema("berth.observation/1");
  io.required("service", seen.service, as::name);
  io.required("instance", seen.instance, as::name);
  io.required("time", seen.time, as::time);
  io.required("response", seen.response, as::one_of(kResponses, to_string));
  io.required("y", seen.y, as::number{0, kMostResponse});
  io.required("sc", seen.sc, as::number{0, kMostPressure});
  io.required("ss", seen.ss, as::number{0, kMostPressure});
  io.nullable("llc", seen.llc, as::number{0, kMostMisses});
  io.required("u", seen.u, as::number{0, kMostUse});
}

Result<Observation> parse_observation(std::string_view text) { return parse_document<Observation>(text); }

std::string to_json(const Observation& seen) { return document_text(seen); }

namespace {

// How all profiles are written: a list of objects, each with its key and its sums.
struct AsProfiles {
  void read(const JsonValue& value, Profiles& profiles) const {
    value.each([&profiles](const JsonValue& element) {
      if (profiles.size() >= kMostProfiles)
        return element.fail(fmt::format("more than the {} profiles accepted", kMostProfiles));
      FieldReader io(element);
      ProfileKey key;
      LearnedSums sums;
      fields(io, key);
      fields(io, sums);
      if (!io.failed() && !profiles.emplace(std::move(key), sums).second)
        element.fail("a profile of this service and response stands before it");
    });
  }
  void write(JsonWriter& out, const Profiles& profiles) const {
    out.begin_array();
    for (const auto& [key, sums] : profiles) {
      out.begin_object();
      FieldWriter io(out);
      fields(io, key);
      fields(io, sums);
      out.end_object();
    }
    out.end_array();
  }
};

// How an interval is written: [low, high].
struct AsInterval {
  void write(JsonWriter& out, const Interval& interval) const {
    out.begin_array().value(interval.low).value(interval.high).end_array();
  }
};

void write_fit(FieldWriter& io, const LearnedModel::Fit* fit) {
  using Figure = std::optional<double>;
  const auto* k3 = fit != nullptr && fit->k3 ? &*fit->k3 : nullptr;
  io.nullable("b0", fit != nullptr ? Figure(fit->b0) : Figure(), as::figure);
  io.nullable("k1", fit != nullptr ? Figure(fit->k1.value) : Figure(), as::figure);
  io.nullable("k2", fit != nullptr ? Figure(fit->k2.value) : Figure(), as::figure);
  io.nullable("k3", k3 != nullptr ? Figure(k3->value) : Figure(), as::figure);
  io.nullable("alone", fit != nullptr ? Figure(fit->alone) : Figure(), as::figure);
  FieldWriter interval(io.out().key("interval").begin_object());
  interval.nullable("k1", fit != nullptr ? fit->k1.interval : std::nullopt, AsInterval());
  interval.nullable("k2", fit != nullptr ? fit->k2.interval : std::nullopt, AsInterval());
  interval.nullable("k3", k3 != nullptr ? std::optional(k3->interval) : std::nullopt, AsInterval());
  io.out().end_object();
}

}  // namespace

static void fields(FieldReader& io, Profiles& profiles) {
  io.schema(kProfilesSchema);
  io.required("profiles", profiles, AsProfiles());
}

static void fields(FieldWriter& io, const LearnedModel::Bounds& bounds) {
  io.required("k1", bounds.k1, as::figure);
  io.required("k2", bounds.k2, as::figure);
}

static void fields(FieldWriter& io, const ModelErrors& errors) {
  io.required("model", errors.model, as::figure);
  io.required("default", errors.fallback, as::figure);
  io.required("constant", errors.constant, as::figure);
}

static void fields(FieldWriter& io, const LearnedModel& model) {
  io.required("service", model.service, as::name);
  io.required("response", model.response, as::one_of(kResponses, to_string));
  io.required("n", model.n, as::amount);
  io.required("accepted", model.accepted, as::flag);
  io.required("why", model.why, as::text);
  write_fit(io, model.fit ? &*model.fit : nullptr);
  io.nullable("bounded", model.bounded, as::object);
  io.nullable("error", model.errors, as::object);
}

Result<Profiles> parse_profiles(std::string_view text) { return parse_document<Profiles>(text); }

std::string to_json(const Profiles& profiles, std::string_view host) {
  JsonWriter out;
  out.begin_object();
  FieldWriter io(out);
  io.schema(kProfilesSchema);
  io.required("host", host, as::line);
  io.required("profiles", profiles, AsProfiles());
  return out.end_object().take();
}

std::string to_json(const LearnedModel& model) {
  JsonWriter out;
  out.begin_object();
  FieldWriter io(out);
  io.schema("berth.model/1");
  fields(io, model);
  return out.end_object().take();
}

std::string to_json(const std::vector<LearnedModel>& models) {
  JsonWriter out;
  out.begin_object();
  FieldWriter io(out);
  io.schema("berth.models/1");
  io.required("models", models, as::list(as::object));
  return out.end_object().take();
}

}  // namespace berth::model
