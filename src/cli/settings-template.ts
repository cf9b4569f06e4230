/** The commented settings file with values put in; `values` are YAML by the path of their setting (`service.baseUrl`). */
export function fillSettings(template: string, values: ReadonlyMap<string, string>): string {
  let section = "";
  return template
    .split("\n")
    .map((line) => {
      section = /^(\w+):/.exec(line)?.[1] ?? section;
      const [, key = "", comment = ""] = /^ {2}(?:# )?(\w+):.*?( +#.*)?$/.exec(line) ?? [];
      const value = values.get(`${section}.${key}`);
      if (value === undefined) return line;
      const setting = `  ${key}: ${value}`;
      return comment === ""
        ? setting
        : `${setting.padEnd(line.length - comment.trimStart().length - 1)} ${comment.trimStart()}`;
    })
    .join("\n");
}

/** Plain where it cannot be read as anything but text. */
export function yamlText(value: string): string {
  return /^[\w/.](?:[\w/.-]|:(?=[\w/.-]))*$/.test(value) ? value : JSON.stringify(value);
}
