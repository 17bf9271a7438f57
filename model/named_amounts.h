// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::model {

// Amounts by name, ascending, each name once. All names lie in one text: a list of ten thousand workloads,
// made anew at each tick, costs two pieces of memory instead of twenty thousand.
class NamedAmounts {
  struct Entry {
    std::size_t end = 0;  // of the name in names_
    double amount = 0;

    friend bool operator==(const Entry&, const Entry&) = default;
  };

 public:
  using value_type = std::pair<std::string_view, double>;

  class const_iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = NamedAmounts::value_type;
    using difference_type = std::ptrdiff_t;
    using reference = value_type;
    using pointer = void;

    value_type operator*() const {
      const std::size_t begin = index_ == 0 ? 0 : list_->entries_[index_ - 1].end;
      const Entry& entry = list_->entries_[index_];
      return {std::string_view(list_->names_).substr(begin, entry.end - begin), entry.amount};
    }
    const_iterator& operator++() {
      ++index_;
      return *this;
    }
    friend bool operator==(const const_iterator&, const const_iterator&) = default;

   private:
    friend class NamedAmounts;
    const_iterator(const NamedAmounts& list, std::size_t index) : list_(&list), index_(index) {}

    const NamedAmounts* list_;
    std::size_t index_;
  };
  using iterator = const_iterator;

  NamedAmounts() = default;
  NamedAmounts(const std::map<std::string, double>& amounts) {
    for (const auto& [name, amount] : amounts) append(name, amount);
  }

  // `name` comes after all names that are there.
  void append(std::string_view name, double amount) {
    names_ += name;
    entries_.push_back({names_.size(), amount});
  }

  const_iterator begin() const { return {*this, 0}; }
  const_iterator end() const { return {*this, entries_.size()}; }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

  friend bool operator==(const NamedAmounts&, const NamedAmounts&) = default;

 private:
  std::string names_;
  std::vector<Entry> entries_;
};

}  // namespace berth::model
