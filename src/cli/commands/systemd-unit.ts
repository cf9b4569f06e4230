import { dirname, isAbsolute } from "node:path";

interface Installation {
  readonly node: string;
  readonly program: string;
  readonly settingsFile: string;
  readonly secretFile: string;
  /** As in the settings; relative to the working directory, which is the state directory. */
  readonly warehouse: string;
}

/** The directory that systemd creates for the service; also its working directory. */
export const STATE_DIRECTORY = "/var/lib/mds-sync";

/** Inserts the paths of one installation into the shipped unit. */
export function fillUnit(template: string, installation: Installation): string {
  const { node, program, settingsFile, secretFile, warehouse } = installation;
  const command = [node, program, "run", "--config", settingsFile].map(quoteArgument).join(" ");
  const lines: Record<string, string> = {
    Documentation: `file://${encodeURI(settingsFile)}`.replaceAll("%", "%%"),
    ExecStart: command,
    LoadCredential: `client-secret:${escapePercent(secretFile)}`,
  };
  if ([node, program, settingsFile].some(isInHome)) lines.ProtectHome = "read-only";
  const needsWritePath = isOutsideStateDirectory(warehouse);
  return template
    .split("\n")
    .filter((line) => !line.startsWith("#   ") && !line.startsWith("# mds-sync as a system service"))
    .flatMap((line) => {
      const key = /^(\w+)=/.exec(line)?.[1] ?? "";
      const filled = Object.hasOwn(lines, key) ? `${key}=${lines[key]}` : line;
      return needsWritePath && key === "ProtectSystem"
        ? [filled, `ReadWritePaths=${quoteArgument(dirname(warehouse))}`]
        : [filled];
    })
    .join("\n");
}

export function isOutsideStateDirectory(warehouse: string): boolean {
  return isAbsolute(warehouse) && !warehouse.startsWith(`${STATE_DIRECTORY}/`);
}

export function isInHome(path: string): boolean {
  return /^\/(home|root|run\/user)\//.test(path);
}

/** Quotes one word of a line that systemd splits into words. */
function quoteArgument(text: string): string {
  const escaped = escapePercent(text).replaceAll("$", "$$$$");
  return /^[\w/.:@%+-]+$/.test(escaped) ? escaped : `"${escaped.replace(/["\\]/g, "\\$&")}"`;
}

/** In a unit file, a percent sign starts a specifier. */
function escapePercent(text: string): string {
  return text.replaceAll("%", "%%");
}
