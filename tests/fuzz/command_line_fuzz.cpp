// Command lines of both programs: the words of the input, a line each.
#include "app/options.hpp"
#include "app/pair_options.hpp"
#include "fuzz.hpp"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

using namespace rdma_read;

namespace {

void answers_in_one_line(const app::EarlyExit& early) {
    fuzz::claim(!early.text.empty() && early.text.back() == '\n', "an answer ends its line");
    if (early.code == 0) {
        return;
    }
    fuzz::claim(early.code == app::kExitUsage && early.to_stderr, "an error is a usage error");
    const auto shown = [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); };
    fuzz::claim(std::ranges::all_of(early.text, shown), "an error can be printed");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::string> words{"program"};
    std::string word;
    for (const char c : fuzz::text_of({data, size})) {
        // No command line holds a zero byte.
        if (c == '\n' || c == '\0') {
            words.push_back(std::move(word));
            word.clear();
        } else {
            word.push_back(c);
        }
    }
    words.push_back(std::move(word));
    std::vector<const char*> arguments(words.size());
    std::ranges::transform(words, arguments.begin(), [](const auto& each) { return each.c_str(); });
    const auto count = static_cast<int>(arguments.size());

    const auto parsed = app::parse_options(count, arguments.data());
    if (const auto* const options = std::get_if<app::Options>(&parsed)) {
        fuzz::claim(!options->sizes.empty(), "there is something to read");
        fuzz::claim(options->buffer_bytes() >= app::buffer_needed(options->largest_size()),
                    "the buffer holds the largest read and its window");
        fuzz::claim(options->depth > 0 && options->qps > 0, "reads can be in flight");
        fuzz::claim(options->timeout.count() > 0, "there is time");
    } else {
        const auto& early = std::get<app::EarlyExit>(parsed);
        answers_in_one_line(early);
        fuzz::claim(early.code == 0 || std::ranges::count(early.text, '\n') == 1,
                    "an error of rdma_read_mpi is one line");
    }
    const auto pair = app::parse_pair_options(count, arguments.data());
    if (const auto* const early = std::get_if<app::EarlyExit>(&pair)) {
        answers_in_one_line(*early);
    }
    return 0;
}
