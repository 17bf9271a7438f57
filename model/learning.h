// SPDX-License-Identifier: Apache-2.0
// The data of learned interference models (docs/decisions/learning.md): observations, the sums that they add
// up to, and the models that follow from the sums.
#pragma once

#include "model/error.h"

#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace berth::model {

// A measure of how much a service suffers, best first: cycles per instruction; CPU seconds per unit of work;
// cores used per vCPU.
enum class Response { cpi, cost, cpu };
inline constexpr std::array kResponses{Response::cpi, Response::cost, Response::cpu};
const char* to_string(Response response);  // "cpi", "cost", "cpu"

// One instance over one tick. The observations of a tick have the same time.
struct Observation {
  std::string service;
  std::string instance;
  double time = 0;  // epoch seconds
  Response response = Response::cpu;
  double y = 0;               // the response; for `cpu` it is u
  double sc = 0;              // pressure of neighbours on its cores
  double ss = 0;              // pressure of neighbours elsewhere in its domain
  std::optional<double> llc;  // LLC misses a second of all others in the domain, per online vCPU of it
  double u = 0;               // cores used per vCPU

  friend bool operator==(const Observation&, const Observation&) = default;
};

// Limits of observations, far above what a host can show. They also keep every sum finite.
inline constexpr double kMostResponse = 1e9;
inline constexpr double kMostPressure = 64;  // one busy vCPU is 1
inline constexpr double kMostMisses = 1e13;  // a second and vCPU
inline constexpr double kMostUse = 1e4;      // cores per vCPU; a workload without a pin may use many

// Weighted sums over rows (x, y) with three features x = (sc, ss, llc).
struct RowSums {
  double n = 0;                // of the weights
  std::array<double, 3> x{};   // x
  std::array<double, 6> xx{};  // x x': sc sc, sc ss, sc llc, ss ss, ss llc, llc llc
  std::array<double, 3> xy{};  // x y
  double y = 0;
  double yy = 0;

  friend bool operator==(const RowSums&, const RowSums&) = default;
};

// Squared errors of predictions, each made before its observation was learned.
struct ErrorSums {
  double n = 0;
  double model = 0;     // the two-feature model
  double fallback = 0;  // the default model
  double constant = 0;
  // Of the observations that know llc: without and with that feature.
  double llc_n = 0;
  double llc_without = 0;
  double llc_with = 0;

  friend bool operator==(const ErrorSums&, const ErrorSums&) = default;
};

// The sums of all observations of one service by one response. All but the last group are additive.
struct LearnedSums {
  double time = 0;     // epoch seconds of the newest observation
  RowSums rows;        // without llc
  RowSums llc_rows;    // of the observations that know llc, with it
  double level_u = 0;  // sums of u, sc and ss themselves: rows of `cpu` are differences from the tick's mean
  double level_sc = 0;
  double level_ss = 0;
  double spent = 0;  // sum of the weights of the means that rows were made with (ticks of `cpu`)
  ErrorSums errors;

  double rise = 0;                     // the CUSUM of the model's error (docs/decisions/learning.md)
  double calm_error = 0;               // mean squared error of the model, when `rise` last was 0
  double calm_share = 0;               // of the constant's squared error, when `rise` last was 0
  double recent_error = 0;             // mean squared error of the constant over some 50 observations
  double strange = 0;                  // observations in a row that were set aside as strange
  bool prior_dropped = false;          // priors count no more, since the service has changed
  std::optional<double> forgotten_at;  // epoch seconds: when the service was last found changed

  friend bool operator==(const LearnedSums&, const LearnedSums&) = default;
};

struct ProfileKey {
  std::string service;
  Response response = Response::cpi;

  friend bool operator==(const ProfileKey&, const ProfileKey&) = default;
  friend bool operator<(const ProfileKey& a, const ProfileKey& b) {
    return std::tie(a.service, a.response) < std::tie(b.service, b.response);
  }
};
using Profiles = std::map<ProfileKey, LearnedSums>;
// A document with more profiles is refused, and berthd keeps no more.
inline constexpr std::size_t kMostProfiles = 1000;

// lowest..highest, both included.
struct Interval {
  double low = 0;
  double high = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

// A coefficient in units of utilisation, with its 90 % interval.
struct Coefficient {
  double value = 0;
  std::optional<Interval> interval;  // nullopt where the feature hardly varies, so that the default counts

  friend bool operator==(const Coefficient&, const Coefficient&) = default;
};

// The slope of a feature that has no default and is in no placement's score.
struct CacheCoefficient {
  double value = 0;  // utilisation per miss a second and vCPU
  Interval interval;

  friend bool operator==(const CacheCoefficient&, const CacheCoefficient&) = default;
};

// Root mean squared errors, in units of the response.
struct ModelErrors {
  double model = 0;
  double fallback = 0;
  double constant = 0;

  friend bool operator==(const ModelErrors&, const ModelErrors&) = default;
};

// The model that sums amount to: a berth.model/1 document.
struct LearnedModel {
  std::string service;
  Response response = Response::cpi;
  double n = 0;  // observations, older ones counting less
  bool accepted = false;
  std::string why;  // in words and numbers
  // Of the default coefficients, the part that the observations permit: it is used where they refute the
  // default, but no model is accepted. nullopt otherwise.
  struct Bounds {
    double k1 = 0;
    double k2 = 0;

    friend bool operator==(const Bounds&, const Bounds&) = default;
  };
  std::optional<Bounds> bounded = {};
  // nullopt where the sums determine none.
  struct Fit {
    double b0 = 0;     // use of the instance alone, in units of utilisation
    double alone = 0;  // the response without neighbours
    Coefficient k1;
    Coefficient k2;
    std::optional<CacheCoefficient> k3;

    friend bool operator==(const Fit&, const Fit&) = default;
  };
  std::optional<Fit> fit;
  std::optional<ModelErrors> errors;  // nullopt before any prediction

  friend bool operator==(const LearnedModel&, const LearnedModel&) = default;
};

// The fault of an observation that no learning may see, in words; nullopt where it has none.
std::optional<std::string> fault_of(const Observation& observation);

// Reads a berth.observation/1 document. Unknown members are ignored. Error invalid_input names the place.
Result<Observation> parse_observation(std::string_view text);
std::string to_json(const Observation& observation);

// Reads a berth.profiles/1 document of at most kMostProfiles profiles. Error invalid_input names the place.
// Sums that no observations can add up to are a fault.
Result<Profiles> parse_profiles(std::string_view text);
// One line, ascending by service, then by response. `host` may be empty.
std::string to_json(const Profiles& profiles, std::string_view host);

// A berth.model/1 document, on one line.
std::string to_json(const LearnedModel& model);
// A berth.models/1 document, on one line: such models without their schema.
std::string to_json(const std::vector<LearnedModel>& models);

}  // namespace berth::model
