import { existsSync } from "node:fs";
import type { Command } from "commander";
import { readSeries } from "../../library/reading/series-names.ts";
import { suggestWord } from "../../model/did-you-mean.ts";
import { usageFailure } from "../../model/failure.ts";
import { indexTypes } from "../../model/stream-columns.ts";
import { streams } from "../../model/streams.ts";
import { logLevels } from "../../telemetry/logger.ts";
import { withReader } from "../../warehouse/reader.ts";
import { type CommandDoc, describeCommands, type OptionDoc } from "../output/command-table.ts";
import { QUERY_FORMATS } from "../output/row-formats.ts";
import type { CommandContext } from "../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../support/flags.ts";

export function addCompletionCommand(program: Command, context: CommandContext): void {
  const command = program
    .command("completion")
    .description(
      "Writes the completion script of a shell to stdout. Besides commands and options it completes the names of the series in " +
        "the warehouse, which `mds-sync completion series` lists.",
    )
    .argument("<shell>", "bash, zsh or fish");
  addSettingsFlags(command, "warehouse").action((shell: string) => {
    if (shell === "series") {
      const { path } = loadSettingsAndWarn(command, context).settings.warehouse;
      // A script asks: without a warehouse there is nothing to complete.
      const series = existsSync(path) ? withReader(path, readSeries) : [];
      context.stdout.write([...new Set(series.map(({ name }) => `${name}\n`))].join(""));
      return;
    }
    const known = COMPLETION_SHELLS.find((name) => name === shell);
    if (!known) {
      const remedy = suggestWord(shell, COMPLETION_SHELLS, "give bash, zsh or fish");
      throw usageFailure(`there is no completion for ${shell}`, remedy);
    }
    context.stdout.write(completionScripts[known](describeCommands(program)));
  });
}

/** Words that complete the value of an option. */
const valueWords: Readonly<Record<string, readonly string[]>> = {
  "--format": [...QUERY_FORMATS, "parquet"],
  "--index-type": indexTypes,
  "--log-level": logLevels,
  "--source": ["ticks", "ohlcv"],
  "--stream": streams,
};

/** Lists the series of the warehouse; the scripts call it for names of series. */
const SERIES_COMMAND = "mds-sync completion series 2>/dev/null";

/** How a shell completes a value: by words, by names of series, by files, or not at all. */
type Completion = readonly string[] | "series" | "files" | "nothing";

function completionOf({ long, value }: OptionDoc): Completion | undefined {
  if (value === undefined) return undefined;
  if (value === "series" || value === "id-or-name") return "series";
  return valueWords[long] ?? (value === "file" || value === "dir" ? "files" : "nothing");
}

/** Of the arguments of a command. */
function argumentCompletion(command: CommandDoc): Completion {
  const names = command.arguments.map(({ name }) => name);
  if (names.includes("series")) return "series";
  if (names.includes("file")) return "files";
  return names.includes("shell") ? COMPLETION_SHELLS : "nothing";
}

/** What a shell writes for each kind of completion. */
interface Syntax extends Readonly<Record<Exclude<Completion, readonly string[]>, string>> {
  readonly words: (list: string) => string;
}

function textFor(completion: Completion, syntax: Syntax): string {
  return typeof completion === "string" ? syntax[completion] : syntax.words(completion.join(" "));
}

const completionScripts = { bash: renderBash, zsh: renderZsh, fish: renderFish };
const COMPLETION_SHELLS = Object.keys(completionScripts) as (keyof typeof completionScripts)[];

function renderBash(commands: readonly CommandDoc[]): string {
  const reply = (words: string) =>
    `COMPREPLY=($(compgen -W "${words}" -- "$exchange$cur")); COMPREPLY=("\${COMPREPLY[@]#"$exchange"}")`;
  const replies = {
    words: reply,
    series: reply(`$(${SERIES_COMMAND})`),
    files: 'COMPREPLY=($(compgen -f -- "$cur"))',
    nothing: ":",
  };
  // Options of the same name take the same kind of value in every command.
  const options = new Map(commands.flatMap((command) => command.options.map((each) => [each.long, each])));
  const valueCases = [...options.values()].flatMap((option) => {
    const completion = completionOf(option);
    return completion ? [`    ${option.long}) ${textFor(completion, replies)}; return ;;`] : [];
  });
  const commandCases = commands.map((command) => {
    const flags = command.options.map(({ long }) => long).join(" ");
    const complete = textFor(argumentCompletion(command), replies);
    return `    ${command.name}) if [[ $cur == -* ]]; then ${reply(flags)}; else ${complete}; fi ;;`;
  });
  return `# bash completion of mds-sync, written by \`mds-sync completion bash\`
_mds_sync() {
  local at=$COMP_CWORD exchange= cur=\${COMP_WORDS[COMP_CWORD]} command=\${COMP_WORDS[1]}
  # Bash splits Kraken:BTC/USD at the colon.
  if [[ $cur == : ]]; then ((at--)); exchange=\${COMP_WORDS[at]}: cur=
  elif [[ \${COMP_WORDS[at-1]} == : ]]; then ((at -= 2)); exchange=\${COMP_WORDS[at]}:; fi
  local prev=\${COMP_WORDS[at-1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(" ")} --help --version" -- "$cur"))
    return
  fi
  case $prev in
${valueCases.join("\n")}
  esac
  case $command in
${commandCases.join("\n")}
  esac
}
complete -F _mds_sync mds-sync
`;
}

function renderZsh(commands: readonly CommandDoc[]): string {
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const bracketed = (text: string) => text.replaceAll(/[[\]:\\]/g, "\\$&");
  const actions = {
    words: (list: string) => `(${list})`,
    series: "_mds_sync_series",
    files: "_files",
    nothing: "",
  };
  const action = (option: OptionDoc): string => {
    const completion = completionOf(option);
    return completion ? `:${option.value}:${textFor(completion, actions)}` : "";
  };
  const cases = commands.map((command) => {
    const specs = command.options.map((option) =>
      quote(`*${option.long}[${bracketed(option.help)}]${action(option)}`),
    );
    const completion = argumentCompletion(command);
    if (completion !== "nothing")
      specs.push(
        quote(`*:${typeof completion === "string" ? completion : "word"}:${textFor(completion, actions)}`),
      );
    return `    ${command.name})\n      _arguments ${specs.join(" \\\n        ")} ;;`;
  });
  const names = commands.map(({ name, summary }) => quote(`${name}:${summary.replaceAll(":", "\\:")}`));
  return `#compdef mds-sync
# zsh completion of mds-sync, written by \`mds-sync completion zsh\`
_mds_sync_series() {
  local -a names
  names=(\${(f)"$(${SERIES_COMMAND})"})
  compadd -a names
}
_mds_sync() {
  local -a commands
  commands=(
    ${names.join("\n    ")}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local name=$words[2]
  shift words
  ((CURRENT--))
  case $name in
${cases.join("\n")}
  esac
}
compdef _mds_sync mds-sync
`;
}

function renderFish(commands: readonly CommandDoc[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const by = (prefix: string, others: { readonly files: string; readonly nothing: string }) => ({
    words: (list: string) => `${prefix} -a ${quote(list)}`,
    series: `${prefix} -a '(${SERIES_COMMAND})'`,
    ...others,
  });
  const lines = commands.flatMap((command) => {
    const seen = `complete -c mds-sync -n '__fish_seen_subcommand_from ${command.name}'`;
    const argument = textFor(argumentCompletion(command), by("", { files: " -F", nothing: "" }));
    const options = command.options.map((option) => {
      const completion = completionOf(option);
      const value = completion ? textFor(completion, by(" -x", { files: " -r -F", nothing: " -x" })) : "";
      return `${seen} -l ${option.long.slice(2)}${value} -d ${quote(option.help)}`;
    });
    return [
      `complete -c mds-sync -n __fish_use_subcommand -a ${command.name} -d ${quote(command.summary)}`,
      ...(argument === "" ? [] : [seen + argument]),
      ...options,
    ];
  });
  return `# fish completion of mds-sync, written by \`mds-sync completion fish\`\ncomplete -c mds-sync -f\n${lines.join("\n")}\n`;
}
