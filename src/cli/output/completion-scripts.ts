import { indexTypes } from "../../model/stream-columns.ts";
import { streams } from "../../model/streams.ts";
import { logLevels } from "../../telemetry/logger.ts";
import type { CommandDoc, OptionDoc } from "./command-table.ts";
import { QUERY_FORMATS } from "./row-formats.ts";

export const COMPLETION_SHELLS = ["bash", "zsh", "fish"] as const;
export type CompletionShell = (typeof COMPLETION_SHELLS)[number];

/** Words that complete the value of an option. */
const valueWords: Readonly<Record<string, readonly string[]>> = {
  "--format": [...QUERY_FORMATS, "parquet"],
  "--index-type": indexTypes,
  "--log-level": logLevels,
  "--source": ["ticks", "ohlcv"],
  "--stream": streams,
};

/** Placeholders of values that are names of series. */
const seriesValues: ReadonlySet<string> = new Set(["series", "id-or-name"]);

/** Lists the series of the warehouse; the scripts call it for names of series. */
export const SERIES_COMMAND = "mds-sync completion series 2>/dev/null";

function completesFile({ value }: OptionDoc): boolean {
  return value === "file" || value === "dir";
}

/** The words that complete the arguments of a command. */
function argumentWords(command: CommandDoc): readonly string[] | "files" | "series" | undefined {
  const names = command.arguments.map(({ name }) => name);
  if (names.includes("series")) return "series";
  if (names.includes("file")) return "files";
  return names.includes("shell") ? COMPLETION_SHELLS : undefined;
}

export const completionScripts: Readonly<
  Record<CompletionShell, (commands: readonly CommandDoc[]) => string>
> = {
  bash: renderBash,
  zsh: renderZsh,
  fish: renderFish,
};

function renderBash(commands: readonly CommandDoc[]): string {
  const options = uniqueOptions(commands);
  const valueCases = options.flatMap((option) => {
    if (option.value === undefined) return [];
    const words = valueWords[option.long];
    if (words)
      return [`    ${option.long}) COMPREPLY=($(compgen -W "${words.join(" ")}" -- "$cur")); return ;;`];
    if (seriesValues.has(option.value))
      return [`    ${option.long}) COMPREPLY=($(compgen -W "$(${SERIES_COMMAND})" -- "$cur")); return ;;`];
    return completesFile(option)
      ? [`    ${option.long}) COMPREPLY=($(compgen -f -- "$cur")); return ;;`]
      : [`    ${option.long}) return ;;`];
  });
  const commandCases = commands.map((command) => {
    const flags = command.options.map(({ long }) => long).join(" ");
    const words = argumentWords(command);
    const complete =
      words === "series"
        ? `COMPREPLY=($(compgen -W "$(${SERIES_COMMAND})" -- "$cur"))`
        : words === "files"
          ? 'COMPREPLY=($(compgen -f -- "$cur"))'
          : words
            ? `COMPREPLY=($(compgen -W "${words.join(" ")}" -- "$cur"))`
            : ":";
    return `    ${command.name}) if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "${flags}" -- "$cur")); else ${complete}; fi ;;`;
  });
  return `# bash completion of mds-sync, written by \`mds-sync completion bash\`
_mds_sync() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]}
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
  const action = (option: OptionDoc): string => {
    if (option.value === undefined) return "";
    const words = valueWords[option.long];
    if (words) return `:${option.value}:(${words.join(" ")})`;
    if (seriesValues.has(option.value)) return `:${option.value}:_mds_sync_series`;
    return completesFile(option) ? `:${option.value}:_files` : `:${option.value}:`;
  };
  const cases = commands.map((command) => {
    const specs = command.options.map((option) =>
      quote(`*${option.long}[${bracketed(option.help)}]${action(option)}`),
    );
    const words = argumentWords(command);
    if (words === "series") specs.push(quote("*:series:_mds_sync_series"));
    else if (words === "files") specs.push(quote("*:file:_files"));
    else if (words) specs.push(quote(`*:word:(${words.join(" ")})`));
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
  const lines = commands.flatMap((command) => {
    const seen = `complete -c mds-sync -n '__fish_seen_subcommand_from ${command.name}'`;
    const words = argumentWords(command);
    const completesArguments =
      words === "series"
        ? [`${seen} -a '(${SERIES_COMMAND})'`]
        : words === "files"
          ? [`${seen} -F`]
          : words
            ? [`${seen} -a ${quote(words.join(" "))}`]
            : [];
    const options = command.options.map((option) => {
      const choices = valueWords[option.long];
      const value =
        option.value === undefined
          ? ""
          : choices
            ? ` -x -a ${quote(choices.join(" "))}`
            : seriesValues.has(option.value)
              ? ` -x -a '(${SERIES_COMMAND})'`
              : completesFile(option)
                ? " -r -F"
                : " -x";
      return `${seen} -l ${option.long.slice(2)}${value} -d ${quote(option.help)}`;
    });
    return [
      `complete -c mds-sync -n __fish_use_subcommand -a ${command.name} -d ${quote(command.summary)}`,
      ...completesArguments,
      ...options,
    ];
  });
  return `# fish completion of mds-sync, written by \`mds-sync completion fish\`\ncomplete -c mds-sync -f\n${lines.join("\n")}\n`;
}

/** Options of the same name take the same kind of value in every command. */
function uniqueOptions(commands: readonly CommandDoc[]): OptionDoc[] {
  return [
    ...new Map(commands.flatMap(({ options }) => options).map((option) => [option.long, option])).values(),
  ];
}
