import { dirname, isAbsolute } from "node:path";

export interface Installation {
  readonly node: string;
  readonly program: string;
  readonly settingsFile: string;
  readonly secretFile: string;
  /** As in the settings: relative to the working directory, which is the state directory. */
  readonly warehouse: string;
}

/** Where systemd keeps what the service writes; also the working directory. */
export const stateDirectory = "/var/lib/mds-sync";

/** The shipped unit with the paths of one installation. */
export function fillUnit(template: string, installation: Installation): string {
  const { node, program, settingsFile, secretFile, warehouse } = installation;
  const command = [node, program, "run", "--config", settingsFile].map(argument).join(" ");
  const lines: Record<string, string> = {
    Documentation: `file://${encodeURI(settingsFile)}`.replaceAll("%", "%%"),
    ExecStart: command,
    LoadCredential: `client-secret:${bare(secretFile)}`,
  };
  if ([node, program, settingsFile].some(isInHome)) lines.ProtectHome = "read-only";
  const elsewhere = isElsewhere(warehouse);
  return template
    .split("\n")
    .filter((line) => !line.startsWith("#   ") && !line.startsWith("# mds-sync as a system service"))
    .flatMap((line) => {
      const key = /^(\w+)=/.exec(line)?.[1] ?? "";
      const filled = Object.hasOwn(lines, key) ? `${key}=${lines[key]}` : line;
      return elsewhere && key === "ProtectSystem"
        ? [filled, `ReadWritePaths=${argument(dirname(warehouse))}`]
        : [filled];
    })
    .join("\n");
}

/** Whether the warehouse lies outside the directory that systemd makes for the service. */
export function isElsewhere(warehouse: string): boolean {
  return isAbsolute(warehouse) && !warehouse.startsWith(`${stateDirectory}/`);
}

export function isInHome(path: string): boolean {
  return /^\/(home|root|run\/user)\//.test(path);
}

/** One word of a line that systemd splits into words. */
function argument(text: string): string {
  const plain = bare(text).replaceAll("$", "$$$$");
  return /^[\w/.:@%+-]+$/.test(plain) ? plain : `"${plain.replace(/["\\]/g, "\\$&")}"`;
}

/** Percent signs would name something else. */
function bare(text: string): string {
  return text.replaceAll("%", "%%");
}
