// SPDX-License-Identifier: Apache-2.0
#include "daemon/learn/learner.h"

#include "os/staged_file.h"
#include "policies/interference/learning/learn.h"
#include "policies/interference/learning/sums.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

using model::ErrorKind;
using model::ProfileKey;

// A thousand profiles take some 2 MiB.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{16} << 20;
constexpr std::size_t kMostPriorFiles = 100;

// Adds the profiles of a file, which may be missing. Returns its fault.
std::optional<std::string> add_file(const std::filesystem::path& file, model::Profiles& to) {
  return os::read_text(file, kMostBytes, [&to](std::string_view text) -> std::optional<std::string> {
    const auto profiles = model::parse_profiles(text);
    if (!profiles) return profiles.error().message();
    policies::merge(to, *profiles);
    return std::nullopt;
  });
}

std::vector<std::filesystem::path> json_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    if (at->path().extension() == ".json") files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Learner::Learner(const std::filesystem::path& state_dir, std::filesystem::path priors_dir,
                 std::vector<std::string>& warnings)
    : file_(state_dir / "profiles.json"), priors_dir_(std::move(priors_dir)) {
  if (auto fault = add_file(file_.file(), own_)) warnings.push_back(std::move(*fault));
  read_priors(warnings);
}

void Learner::read_priors(std::vector<std::string>& warnings) {
  priors_.clear();
  judged_all_ = false;
  auto files = json_files(priors_dir_);
  if (files.size() > kMostPriorFiles) {
    warnings.push_back(fmt::format("{}: only the first {} of {} files are read", priors_dir_.string(),
                                   kMostPriorFiles, files.size()));
    files.resize(kMostPriorFiles);
  }
  for (const auto& file : files) {
    model::Profiles both = priors_;
    if (auto fault = add_file(file, both)) {
      warnings.push_back(std::move(*fault));
    } else if (both.size() > model::kMostProfiles) {
      warnings.push_back(fmt::format("{}: more than {} profiles, with those of the files before it",
                                     file.string(), model::kMostProfiles));
    } else {
      priors_ = std::move(both);
    }
  }
}

std::vector<Learner::Message> Learner::take(const model::Snapshot& snapshot,
                                            const policies::InterferenceSettings& settings) {
  if (!settings.learn) {
    if (!services_.empty()) {
      services_.clear();
      ++generation_;
      judged_all_ = false;
    }
    return {};
  }
  auto tick = observations_.take(snapshot, settings.shared_domain, moves_);
  std::vector<Message> messages;
  for (const auto& [instance, why] : tick.fallen)
    messages.push_back({instance, fmt::format("{}: {}", instance, why)});
  std::map<ProfileKey, std::vector<model::Observation>> by_key;
  for (model::Observation& seen : tick.seen) {
    const ProfileKey key{seen.service, seen.response};
    by_key[key].push_back(std::move(seen));
  }
  for (const auto& [key, seen] : by_key) learn(key, seen, settings, messages);
  if (!judged_all_ && !(snapshot.time < judged_at_ + kJudge_s)) {
    judge(settings);
    judged_at_ = snapshot.time;
  }
  return messages;
}

void Learner::learn(const ProfileKey& key, const std::vector<model::Observation>& tick,
                    const policies::InterferenceSettings& settings, std::vector<Message>& messages) {
  const auto known = own_.find(key);
  auto learned = policies::learn(key, known == own_.end() ? model::LearnedSums() : known->second,
                                 policies::find(priors_, key), tick, policies::learning_settings(settings));
  say_set_aside(key, learned.set_aside, messages);
  // One instance teaches nothing by cpu. It needs no profile.
  if (known == own_.end() && learned.sums == model::LearnedSums()) return;
  if (known == own_.end()) make_room();
  own_[key] = learned.sums;
  changed_ = true;
  judged_all_ = false;
  if (learned.changed) {
    messages.push_back(
        {tick.front().instance, fmt::format("service {} has changed, so its model by {} is forgotten: {}",
                                            key.service, model::to_string(key.response), *learned.changed)});
    judged_at_ = 0;
  }
}

void Learner::say_set_aside(const ProfileKey& key, const std::vector<policies::SetAside>& set_aside,
                            std::vector<Message>& messages) {
  if (set_aside.empty()) {
    said_.erase(key);
  } else if (said_.size() < model::kMostProfiles && said_.insert(key).second) {
    const auto& [instance, why] = set_aside.front();
    messages.push_back(
        {instance, fmt::format("{} by {}: set aside: {}", instance, model::to_string(key.response), why)});
  }
}

// Forgets the profile that was not used for longest where there are too many: names of services are made up
// by those who start workloads.
void Learner::make_room() {
  if (own_.size() < model::kMostProfiles) return;
  const auto oldest = std::min_element(
      own_.begin(), own_.end(), [](const auto& a, const auto& b) { return a.second.time < b.second.time; });
  said_.erase(oldest->first);
  own_.erase(oldest);
}

void Learner::judge(const policies::InterferenceSettings& settings) {
  const auto models = policies::judge_all(own_, priors_, policies::learning_settings(settings));
  std::map<std::string, model::ServiceProfile> services;
  for (const model::LearnedModel& model : models) {
    if (services.count(model.service) > 0) continue;
    const auto* used = policies::model_in_use(models, model.service);
    if (used == nullptr) continue;
    services[model.service] = {.pressure = std::nullopt,
                               .model = policies::interference_model(*used),
                               .learned = policies::summary(*used)};
  }
  judged_all_ = true;
  if (services == services_) return;
  services_ = std::move(services);
  ++generation_;
}

std::string Learner::profiles_json(const std::string& host) const { return model::to_json(own_, host); }

std::string Learner::models_json(const policies::InterferenceSettings& settings) const {
  return model::to_json(policies::judge_all(own_, priors_, policies::learning_settings(settings)));
}

void Learner::take_at_once() {
  changed_ = true;
  judged_all_ = false;
  judged_at_ = 0;
  saved_at_ = 0;
}

model::Result<void> Learner::import(const std::string& text) {
  const auto profiles = model::parse_profiles(text);
  if (!profiles) return model::fail(profiles.error());
  const auto fresh = std::count_if(profiles->begin(), profiles->end(),
                                   [this](const auto& entry) { return own_.count(entry.first) == 0; });
  if (own_.size() + static_cast<std::size_t>(fresh) > model::kMostProfiles) {
    return model::fail(ErrorKind::refused,
                       fmt::format("there would be more than {} profiles", model::kMostProfiles));
  }
  policies::merge(own_, *profiles);
  take_at_once();
  return {};
}

model::Result<void> Learner::forget(const std::string& service) {
  bool known = false;
  for (const model::Response response : model::kResponses) {
    const ProfileKey key{service, response};
    const bool prior = priors_.count(key) > 0;
    if (!prior && own_.count(key) == 0) continue;
    known = true;
    said_.erase(key);
    own_.erase(key);
    if (prior) own_[key].prior_dropped = true;
  }
  if (!known)
    return model::fail(ErrorKind::gone, fmt::format("nothing is learned of a service \"{}\"", service));
  take_at_once();
  return {};
}

model::Result<void> Learner::save(const std::string& host) {
  if (!changed_) return {};
  changed_ = false;
  return file_.save(profiles_json(host) + "\n");
}

model::Result<void> Learner::save_in_background(const std::string& host, double now) {
  if (file_.is_busy()) return {};
  auto before = file_.take_outcome();
  auto begun = file_.begin(profiles_json(host) + "\n");
  if (!begun) return begun;
  changed_ = false;
  saved_at_ = now;
  return before;
}

}  // namespace berth::daemon
