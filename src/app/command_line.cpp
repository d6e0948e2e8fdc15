// A command line of named options: splits it, and ends it in one line when it is wrong.
#include "app/command_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#ifndef RDMA_READ_VERSION
#define RDMA_READ_VERSION "unknown"
#endif

namespace rdma_read::app {
namespace {

constexpr std::size_t kHelpColumn = 24;

OptionSpec help_flag() {
    return {"--help", "", "", "Print this and exit."};
}

OptionSpec version_flag() {
    return {"--version", "", "", "Print the version and exit."};
}

std::string all_names(const std::vector<OptionSpec>& options) {
    std::vector<std::string> names;
    names.reserve(options.size());
    for (const auto& option : options) {
        names.push_back(option.name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

/// CLI11 takes whatever follows an option as its value, also the next option, and lets `--name=`
/// take the next word. Both are slips of the user.
void reject_missing_values(const std::vector<OptionSpec>& options,
                           const std::vector<std::string>& words) {
    const auto find = [&](const std::string& name) {
        return std::find_if(options.begin(), options.end(),
                            [&](const auto& option) { return option.name == name; });
    };
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        const std::string name = words[i].substr(0, equals);
        const auto option = find(name);
        if (option == options.end()) {
            continue;
        }
        const bool is_flag = option->value_name.empty();
        if (equals != std::string::npos) {
            const std::string value = words[i].substr(equals + 1);
            if (is_flag) {
                throw UsageError(name, value, "takes no value", name + " alone");
            }
            if (value.empty()) {
                throw UsageError(name, value, "the value is empty", option->allowed);
            }
            continue;
        }
        if (is_flag) {
            continue;
        }
        if (i + 1 == words.size()) {
            throw UsageError(
                fmt::format("{}: a value is missing; allowed: {}", name, option->allowed));
        }
        if (words[i + 1].starts_with("--") || find(words[i + 1]) != options.end()) {
            throw UsageError(fmt::format("{}: a value is missing before {}; allowed: {}", name,
                                         printable(words[i + 1]), option->allowed));
        }
        ++i;
    }
}

[[noreturn]] void reject_unknown(const std::vector<OptionSpec>& options, const std::string& word) {
    const auto* const problem =
        word.starts_with('-') ? "unknown option" : "a word that belongs to no option";
    throw UsageError(
        fmt::format("{}: {}; allowed: {}", printable(word), problem, all_names(options)));
}

}  // namespace

UsageError::UsageError(std::string_view option, std::string_view value, std::string_view problem,
                       std::string_view allowed)
    : std::runtime_error(
        fmt::format("{} {}: {}; allowed: {}", option, printable(value), problem, allowed)) {}

std::string printable(std::string_view value) {
    constexpr std::size_t kLongest = 100;
    std::string text;
    bool plain = !value.empty();
    for (const char c : value.substr(0, kLongest)) {
        if (c == '\'' || c == '\\') {
            text += '\\';
            text += c;
            plain = false;
        } else if (c < ' ' || c > '~') {
            text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
            plain = false;
        } else {
            text += c;
            plain = plain && c != ' ';
        }
    }
    if (value.size() > kLongest) {
        text += "...";
    }
    return plain ? text : "'" + text + "'";
}

CommandLine::CommandLine(const CommandLineSpec& spec, int argc, const char* const* argv) {
    std::vector<std::string> words;
    for (int i = 1; i < argc; ++i) {
        words.emplace_back(argv[i]);
    }
    std::vector<OptionSpec> options = spec.options;
    options.push_back(version_flag());
    options.push_back(help_flag());
    reject_missing_values(options, words);

    CLI::App app(spec.description, spec.usage);
    app.set_help_flag("");
    app.allow_extras();
    app.footer(spec.footer);
    app.get_formatter()->column_width(kHelpColumn);
    app.get_formatter()->label("OPTIONS", "options");
    std::map<std::string, std::vector<std::string>> given;
    std::map<std::string, bool> flags;
    for (const auto& option : options) {
        if (option.value_name.empty()) {
            app.add_flag(option.name, flags[option.name], option.help)
                ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        } else {
            app.add_option(option.name, given[option.name], option.help)
                ->expected(1)
                ->allow_extra_args(false)
                ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                ->option_text(option.value_name);
        }
    }
    try {
        std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants it
        app.parse(std::move(reversed));
    } catch (const CLI::ParseError& error) {
        std::string line = error.what();
        std::replace(line.begin(), line.end(), '\n', ' ');
        throw UsageError(line);
    }
    if (flags["--help"]) {
        early_exit_ = EarlyExit{.code = 0, .text = app.help(), .to_stderr = false};
        return;
    }
    if (const auto extras = app.remaining(); !extras.empty()) {
        reject_unknown(options, extras.front());
    }
    if (flags["--version"]) {
        early_exit_ = EarlyExit{
            .code = 0, .text = spec.program + " " RDMA_READ_VERSION "\n", .to_stderr = false};
        return;
    }
    for (const auto& option : options) {
        if (option.value_name.empty()) {
            if (app.count(option.name) > 1) {
                throw UsageError(option.name + ": given twice; allowed: once");
            }
            if (flags[option.name]) {
                values_.emplace(option.name, "");
            }
            continue;
        }
        const auto& values = given[option.name];
        if (values.size() > 1) {
            throw UsageError(fmt::format("{} {}: given twice, {} before; allowed: once",
                                         option.name, printable(values[1]), printable(values[0])));
        }
        if (!values.empty()) {
            values_.emplace(option.name, values.front());
        }
    }
}

const std::string* CommandLine::value(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
}

}  // namespace rdma_read::app
