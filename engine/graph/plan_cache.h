// SPDX-License-Identifier: Apache-2.0
// Plans by structural key, least recently used out first.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace einkern::graph {

/// A bounded map from keys to shared immutable values; safe from any thread.
template <class Value>
class PlanCache {
 public:
  explicit PlanCache(std::size_t capacity) : capacity_(capacity) {}

  /// The value of `key`, now the most recently used; null when it is not there.
  std::shared_ptr<const Value> find(std::string_view key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->second;
  }

  /// Keeps `value`; when another thread has been faster, returns that thread's value instead.
  std::shared_ptr<const Value> insert(std::string key, std::shared_ptr<const Value> value) {
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end())
      return found->second->second;
    order_.emplace_front(std::move(key), std::move(value));
    try {
      entries_.emplace(order_.front().first, order_.begin());
    } catch (...) {
      order_.pop_front();  // or it would be in the way of the next of this key
      throw;
    }
    if (order_.size() > capacity_) {
      entries_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return order_.size();
  }

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const Value>>;
  std::size_t capacity_;
  mutable std::mutex mutex_;
  std::list<Entry> order_;  // most recently used first
  std::unordered_map<std::string_view, typename std::list<Entry>::iterator> entries_;
};

}  // namespace einkern::graph
