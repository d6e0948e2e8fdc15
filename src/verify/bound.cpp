// Compares what a reader measured with everything that is known to limit it.
#include "rdma_read/verify/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace rdma_read::verify {

namespace {

constexpr double kBytesPerGigabit = 1e9 / 8;

std::optional<double> usable(std::optional<double> value) {
    return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
}

std::optional<double> port_bytes_per_s(std::optional<double> gbps) {
    const auto rate = usable(gbps);
    return rate ? usable(*rate * kBytesPerGigabit) : std::nullopt;
}

std::optional<double> lesser(std::optional<double> one, std::optional<double> other) {
    if (one && other) {
        return std::min(*one, *other);
    }
    return one ? one : other;
}

// With as many digits as say something.
std::string bandwidth_text(double bytes_per_s) {
    const bool giga = bytes_per_s >= 1e9;
    return fmt::format("{:.4g} {}", bytes_per_s / (giga ? 1e9 : 1e6), giga ? "GB/s" : "MB/s");
}

std::string percent_text(double share) {
    return fmt::format("{:.0f} %", share * 100);
}

struct Candidate {
    BoundKind kind;
    double bytes_per_s;  // that it allows this reader
    double used;         // share of it
    std::string what;    // "the port, 100 Gbit/s"
};

class Candidates {
  public:
    explicit Candidates(double measured) : measured_(measured) {}

    void add(BoundKind kind, std::optional<double> bytes_per_s, std::string what) {
        if (bytes_per_s) {
            add(kind, *bytes_per_s, measured_ / *bytes_per_s, std::move(what));
        }
    }
    void add(BoundKind kind, double bytes_per_s, double used, std::string what) {
        if (std::isfinite(bytes_per_s) && bytes_per_s > 0 && used > 0 && used <= kRefutedShare) {
            list_.push_back({kind, bytes_per_s, used, std::move(what)});
        }
    }
    // The first of those of which most is used, or nullptr.
    [[nodiscard]] const Candidate* nearest() const {
        const auto found = std::ranges::max_element(list_, std::less<>{}, &Candidate::used);
        return found == list_.end() ? nullptr : &*found;
    }

  private:
    double measured_;
    std::vector<Candidate> list_;
};

void add_ports(const BoundInput& input, Candidates& candidates) {
    const auto reader = port_bytes_per_s(input.reader_rate_gbps);
    const auto server = port_bytes_per_s(input.server_rate_gbps);
    const auto port = lesser(reader, server);
    if (port) {
        const bool both = reader == server;
        const std::string_view whose = *port == reader ? "the reader's" : "the server's";
        candidates.add(
            BoundKind::port, port,
            fmt::format("{} port, {:.4g} Gbit/s", both ? "the" : whose, *port / kBytesPerGigabit));
    }
    if (server && input.readers_at_server > 1) {
        const double share = *server / input.readers_at_server;
        const auto together = usable(input.server_bytes_per_s);
        candidates.add(BoundKind::server_port, share,
                       together ? *together / *server : input.bandwidth_bytes_per_s / share,
                       fmt::format("the server's port, {:.4g} Gbit/s for {} readers",
                                   *server / kBytesPerGigabit, input.readers_at_server));
    }
}

void add_depth(const BoundInput& input, Candidates& candidates) {
    if (input.size == 0 || input.reads_in_flight == 0) {
        return;
    }
    const auto size = static_cast<double>(input.size);
    if (const auto microseconds = usable(input.latency_us)) {
        candidates.add(
            BoundKind::depth,
            usable(static_cast<double>(input.reads_in_flight) * size / *microseconds * 1e6),
            fmt::format("{} {} in flight of {:.4g} us each", input.reads_in_flight,
                        input.reads_in_flight == 1 ? "read" : "reads", *microseconds));
    }
}

void add_checking(const BoundInput& input, Candidates& candidates) {
    const auto checking = usable(input.checking_s);
    const auto phase = usable(input.phase_s);
    if (checking && phase) {
        // More than all the time: rounding, or checking went on after the last read.
        const double share = std::min(*checking / *phase, 1.0);
        candidates.add(BoundKind::checking, input.bandwidth_bytes_per_s / share, share, "checking");
    }
}

}  // namespace

std::string_view to_string(BoundKind kind) noexcept {
    switch (kind) {
        case BoundKind::port:
            return "port";
        case BoundKind::server_port:
            return "server_port";
        case BoundKind::depth:
            return "depth";
        case BoundKind::checking:
            return "checking";
        case BoundKind::unknown:
            break;
    }
    return "unknown";
}

Bound explain(const BoundInput& input) {
    Bound bound;
    const auto measured = usable(input.bandwidth_bytes_per_s);
    if (!measured) {
        bound.text = "no bandwidth was measured";
        return bound;
    }
    Candidates candidates(*measured);
    add_ports(input, candidates);
    add_depth(input, candidates);
    add_checking(input, candidates);
    const Candidate* const nearest = candidates.nearest();
    if (nearest == nullptr) {
        bound.text = "no bound is known";
        return bound;
    }
    bound.bytes_per_s = nearest->bytes_per_s;
    bound.used = nearest->used;
    if (nearest->used >= kBindingShare) {
        bound.kind = nearest->kind;
        bound.text = fmt::format("bound by {}: at most {}, {} used", nearest->what,
                                 bandwidth_text(nearest->bytes_per_s), percent_text(nearest->used));
    } else {
        bound.text = fmt::format("no known bound is reached; nearest is {}: at most {}, {} used",
                                 nearest->what, bandwidth_text(nearest->bytes_per_s),
                                 percent_text(nearest->used));
    }
    return bound;
}

}  // namespace rdma_read::verify
